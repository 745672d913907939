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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.criteria.base import Bench, NotScorableError, Scored, ScoreRequest, mean, status_of
from workbench.criteria.description import read_options
from workbench.criteria.judged.descriptions import SimulatorOptions
from workbench.criteria.judged.outcome import case_result, first_failure, short, turn_result
from workbench.criteria.judged.turn_texts import answer_text, user_text
from workbench.criteria.judged.verdicts import (
    Verdict,
    open_votes,
    read_verdict,
    verdict_details,
    verdict_of,
    verdict_reason,
)
from workbench.criteria.judged.voting import SampledQuestion, ask
from workbench.criteria.prompts import user_message as prompt
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation
from workbench.judges.base import Judge


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
    history = [entry for turn in request.actual for entry in _messages(turn)]
    questions = [
        prompt.question(scenario, history[: 2 * index], user_text(turn), signal)
        for index, turn in enumerate(request.actual)
        if index
    ]
    questions.append(prompt.question(scenario, history, signal, signal))
    *sampled, stop = await asyncio.gather(
        *(ask(judge, question, read_verdict, open_votes, all_votes=bench.all_votes) for question in questions)
    )
    turns = [_first_turn(criterion, request.actual[0], str(scenario.get("starting_prompt") or ""))]
    turns += [_later_turn(criterion, judge, *pair) for pair in zip(request.actual[1:], sampled, strict=True)]
    return _case(request, judge, turns, stop)


def _messages(turn: Invocation) -> list[dict[str, str]]:
    return [{"role": "user", "text": user_text(turn)}, {"role": "agent", "text": answer_text(turn)}]


def _first_turn(criterion: Criterion, turn: Invocation, starting_prompt: str) -> MetricResult:
    message = user_text(turn)
    details = {"compared": True, "message": message}
    if not (turn.get("user_content") or {}).get("parts"):
        return turn_result(criterion, None, "the first message has no content to compare", details)
    same = message.strip() == starting_prompt.strip()
    reason = "the starting prompt" if same else "the first message is not the starting prompt"
    return turn_result(criterion, float(same), reason, details)


def _later_turn(
    criterion: Criterion, judge: Judge, turn: Invocation, sampled: SampledQuestion[Verdict]
) -> MetricResult:
    verdict = verdict_of(sampled)
    details = {**verdict_details(sampled, judge), "message": user_text(turn)}
    return turn_result(
        criterion, None if verdict is None else float(verdict), verdict_reason(sampled, verdict), details
    )


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
