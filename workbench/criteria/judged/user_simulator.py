"""per_turn_user_simulator_quality_v1: did the simulated user follow its scenario, and stop in time?

The first message is compared with the starting prompt, ignoring blanks around both. Each later message, and stopping
after the last turn, is decided by most of the judge's votes (a tie is invalid). Stopping wrongly sets the last turn to
0. The case scores the share of valid turns among those that could be judged. A message without any vote, or a stop
without any, makes the criterion an error.

Details of a turn: as for final_response_match_v2, and `message`; the first turn has `compared` and `message` only.
Details of the case: `judge`, `stop` {"verdict", "votes", "questions", "asked", "of", "split"}, `plan`,
`starting_prompt`, `persona`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.criteria.base import Bench, NotScorableError, Scored, ScoreRequest, mean, status_of
from workbench.criteria.description import read_options
from workbench.criteria.judged.descriptions import SimulatorOptions
from workbench.criteria.judged.evidence import answer_text, as_json, blocks, user_text
from workbench.criteria.judged.final_response_match import SCHEMA
from workbench.criteria.judged.voting import (
    SampledQuestion,
    Verdict,
    ask,
    case_result,
    first_failure,
    judged_result,
    open_votes,
    read_verdict,
    short,
    verdict_details,
    verdict_of,
    verdict_reason,
    verdict_result,
)
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation
from workbench.judges.base import Judge, Question

_TASK = """\
An AI agent is being tested, and a program plays its user. The program has a plan for the conversation, sometimes also a
persona, and ends the conversation by sending the stop signal. Decide whether its next message is what a user with this
plan would say at this point.

The message is valid if all of this holds:
- It goes on with the plan: it takes the next step, or answers what the agent asked, or repeats or insists where the
  agent has not done what was wanted.
- What it tells about the user, the goal and the circumstances comes from the plan or from the conversation so far,
  or is a harmless detail that neither contradicts.
- It does not jump ahead of the plan, give away what the plan says to hold back, or ask for what the plan leaves out.
- It speaks as the user. It does not do the agent's work, answer in its place, or speak of being a test or a program.
- It keeps the conversation open while something in the plan is still to be done and the agent can still do it.
"""
_PERSONA = """\
- It fits the persona: it behaves as described, and does nothing that the persona lists as a violation.
"""
_STOP = """
Here the next message is the stop signal: the program ends the conversation. That is valid if everything in the plan has
been done or was refused for good, or if the plan says to give up at this point. It is invalid if a step of the plan is
still open, or the agent's last question waits for an answer that the plan has.
"""
_REPLY = """
Think first, then decide. Reply with one JSON object and nothing else:
{"reasoning": "why, in one to three sentences", "verdict": "valid" or "invalid"}
"""


def message_question(
    scenario: Mapping[str, Any], history: Sequence[Mapping[str, str]], message: str, stop_signal: str
) -> Question:
    """Return the question that asks whether `message` is what the simulated user should say now.

    If `message` is the stop signal, the question is about ending the conversation. The data is `{"plan": str,
    "starting_prompt": str, "history": [{"role": "user" | "agent", "text": str}], "message": str, "stop_signal": str,
    "persona": object | str | null}`, the reply `{"reasoning": str, "verdict": "valid" | "invalid"}`.
    """
    persona = scenario.get("user_persona")
    data: dict[str, Any] = {
        "plan": scenario.get("conversation_plan") or "",
        "starting_prompt": scenario.get("starting_prompt") or "",
        "history": [dict(entry) for entry in history],
        "message": message,
        "stop_signal": stop_signal,
        "persona": persona,
    }
    stops = message == stop_signal
    task = _TASK + (_PERSONA if persona else "") + (_STOP if stops else "") + "\n"
    pieces: dict[str, str] = {"plan": data["plan"], "stop signal": stop_signal}
    if persona:
        pieces["persona"] = persona if isinstance(persona, str) else as_json(persona)
    pieces["conversation so far"] = as_json(data["history"]) if history else ""
    pieces["next message"] = message
    return Question("user_message", task + blocks(pieces.items()) + _REPLY, SCHEMA, data)


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Judge each message of the simulated user, and whether it stopped in time.

    Raises:
        NotScorableError: There is no scenario, or an option is refused.
        NotAvailableError: The judge cannot be used here.
    """
    criterion, scenario = request.criterion, request.scenario
    if scenario is None:
        raise NotScorableError(f"{criterion.name} judges simulated users, and this case has none")
    options = read_options(SimulatorOptions, criterion)
    signal = options.stop_signal
    judge = bench.judge(options.judge_model_options.as_judge_options())
    history = [
        {"role": role, "text": text_of(turn)}
        for turn in request.actual
        for role, text_of in (("user", user_text), ("agent", answer_text))
    ]
    questions = [
        message_question(scenario, history[: 2 * index], user_text(turn), signal)
        for index, turn in enumerate(request.actual)
        if index
    ]
    questions.append(message_question(scenario, history, signal, signal))
    *sampled, stop = await asyncio.gather(
        *(ask(judge, question, read_verdict, open_votes, all_votes=bench.all_votes) for question in questions)
    )
    turns = [_first_turn(criterion, request.actual[0], str(scenario.get("starting_prompt") or ""))]
    turns += [
        verdict_result(criterion, judge, each, message=user_text(turn))
        for turn, each in zip(request.actual[1:], sampled, strict=True)
    ]
    return _case(request, judge, turns, stop)


def _first_turn(criterion: Criterion, turn: Invocation, starting_prompt: str) -> MetricResult:
    message = user_text(turn)
    details = {"compared": True, "message": message}
    if not (turn.get("user_content") or {}).get("parts"):
        return judged_result(criterion, None, "the first message has no content to compare", details)
    same = message.strip() == starting_prompt.strip()
    reason = "the starting prompt" if same else "the first message is not the starting prompt"
    return judged_result(criterion, float(same), reason, details)


def _case(request: ScoreRequest, judge: Judge, turns: Sequence[MetricResult], stop: SampledQuestion[Verdict]) -> Scored:
    criterion, scenario = request.criterion, request.scenario or {}
    verdict = verdict_of(stop)
    stop_reason = f"stopping after the last turn: {verdict_reason(stop, verdict)}"
    if verdict is False:
        status = status_of(0.0, criterion.threshold)
        turns = [*turns[:-1], replace(turns[-1], score=0.0, status=status, reason=short(stop_reason))]
    named = {None: "unread", True: "valid", False: "invalid"}
    details: dict[str, Any] = {
        "judge": judge.identity.as_json(),
        "stop": {"verdict": named[verdict], **verdict_details(stop, judge)},
        "plan": scenario.get("conversation_plan"),
        "starting_prompt": scenario.get("starting_prompt"),
        "persona": scenario.get("user_persona"),
    }
    overall = mean(turn.score for turn in turns)
    fine = "the simulated user followed its plan and stopped in time"
    unjudged = stop_reason if verdict is None else ""
    return case_result(criterion, turns, overall, first_failure(turns, fine), details, unjudged=unjudged)
