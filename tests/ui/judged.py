"""Executions with judged criteria and simulated users, built by hand in the documented shapes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.ui.transcripts import content
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    MetricResult,
    MetricScored,
    MetricStatus,
    PlannedCase,
    RunStarted,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.judges.base import JudgeFault, JudgeIdentity, Question, Reply, record, reply_record
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.store import Store

GEMINI = JudgeIdentity("gemini-2.5-flash", "gemini", base_url="http://127.0.0.1:8123")
FUNCTION = JudgeIdentity("python:desk.judge:decide", "python", "a Python function", by="function")
REF = CaseRef("order_desk", "order_desk/judged.evalset.json", "judged", "late_parcel")
MATCH, RUBRICS = "final_response_match_v2", "rubric_based_final_response_quality_v1"
CLAIMS, USER = "hallucinations_v1", "per_turn_user_simulator_quality_v1"
SOURCE = {"kind": "result", "name": "find_order", "event": 1, "call_id": "call-1"}
SENTENCES: list[dict[str, Any]] = [
    {
        "text": "Your order A-7 was shipped on Monday.",
        "label": "supported",
        "rationale": "The tool result gives Monday as the day of shipping.",
        "supporting": '"shipped": "2026-11-16 (Monday)"',
        "contradicting": "",
        "source": SOURCE,
    },
    {
        "text": "It will arrive tomorrow before noon, and you need not be at home for it.",
        "label": "contradictory",
        "rationale": "The tool result says that it arrives on Friday; nothing is said of the time of day.",
        "supporting": "",
        "contradicting": '"expected": "2026-11-20 (Friday)"',
        "source": SOURCE,
    },
    {
        "text": "ご不便をおかけして申し訳ございません。",
        "label": "not_applicable",
        "rationale": "An apology claims nothing.",
        "supporting": "",
        "contradicting": "",
        "source": None,
    },
    {
        "text": "The refund is 12.50 € including the fee.",
        "label": "disputed",
        "rationale": "One result includes the fee, the other one does not.",
        "supporting": '"refund": 12.5',
        "contradicting": '"fee": "not refundable"',
        "source": SOURCE,
    },
    {
        "text": "Our office is open on Sundays.",
        "label": "unsupported",
        "rationale": "",
        "supporting": "",
        "contradicting": "",
        "source": {"kind": "instructions", "name": "order_desk", "event": None, "call_id": None},
    },
    {"text": "Goodbye!", "label": "unlabelled", "rationale": "", "supporting": "", "contradicting": "", "source": None},
]


def judge_question(
    kind: Any, texts: Sequence[Any], judge: JudgeIdentity = GEMINI, *, prompt: str = ""
) -> dict[str, Any]:
    """Build a question with its replies.

    A reply is what was read from it (a text is a verdict with its reason), a fault, or None if it could not be read.
    """
    replies = []
    for sample, verdict in enumerate(texts, 1):
        word = verdict if isinstance(verdict, str) else "…"
        reply = Reply(
            f'{{"reasoning": "Both answers say that the parcel is late, in other words.", "verdict": "{word}"}}',
            model_version="gemini-2.5-flash-SCRIPTED",
            input_tokens=812,
            output_tokens=44,
            seconds=0.4,
        )
        unread = ""
        if isinstance(verdict, JudgeFault):
            reply, verdict = Reply(None, verdict, attempts=5), None
        elif verdict is None:
            reply = Reply("I think so.", model_version="gemini-2.5-flash-SCRIPTED", seconds=0.2, cached=True)
            unread = "it is no JSON object"
        if isinstance(verdict, str):
            verdict = {"verdict": verdict, "rationale": "Both answers say that the parcel is late, in other words."}
        replies.append(reply_record(sample, reply, verdict, unread))
    default = "Compare the answer with the reference.\n\nReference:\nYour refund is on its way.\n\nAnswer:\n…"
    return record(Question(kind, prompt or default * 4), judge, replies)


def rubric(number: int, verdict: str, *, text: str = "", rationale: str = "", **votes: int) -> dict[str, Any]:
    many = sum(votes.values())
    return {
        "rubric_id": f"rubric_{number}",
        "text": text or f"The answer names the day of the delivery ({number}).",
        "origin": ("config", "case", "turn")[number % 3],
        "score": {"yes": 1.0, "no": 0.0}.get(verdict),
        "verdict": verdict,
        "votes": {"yes": 0, "no": 0, "unclear": 0, "missing": 0, **votes},
        "rationale": rationale or "It says Friday, as the tool result does; the customer can rely on that.",
        "asked": many,
        "of": 5,
    }


def result(
    name: str, status: MetricStatus, score: float | None, threshold: float, details: dict[str, Any], reason: str = ""
) -> MetricResult:
    return MetricResult(name, status, score, threshold, reason, details)


def claims(judge: JudgeIdentity = GEMINI, sentences: Sequence[dict[str, Any]] = tuple(SENTENCES)) -> MetricScored:
    """Build two texts by two authors in the first turn, and nothing to judge in the second."""
    first = [
        {"author": "researcher", "step": 1, "final": False, "text": "…", "score": 1.0, "unread": "",
         "sentences": [SENTENCES[0]]},
        {"author": "order_desk", "step": None, "final": True, "text": "…", "score": 1 / 3, "unread": "",
         "sentences": list(sentences)},
    ]  # fmt: skip
    common = {"asked": 1, "of": 1, "split": False}
    questions = [judge_question("sentences", [["…"]], judge), judge_question("claims", [["supported"]], judge)]
    questions += [judge_question("sentences", [["…"] * 6], judge), judge_question("claims", [["supported"] * 6], judge)]
    details = {**common, "questions": questions, "texts": first, "share": 0.43}
    turns = (
        result(CLAIMS, "failed", 2 / 3, 0.8, details, "3 of 7 sentences are grounded"),
        result(CLAIMS, "not_evaluated", None, 0.8, {**common, "questions": [], "texts": []}, "the answer is empty"),
    )
    whole = {"judge": judge.as_json(), "tally": TALLY, "share": 0.43, "of_sentences": 7}
    return MetricScored(REF, result(CLAIMS, "failed", 2 / 3, 0.8, whole, "0.67 on average"), turns)


TALLY = {"calls": 2, "cached": 1, "input_tokens": 2436, "output_tokens": 132, "seconds": 1.2}


def match(judge: JudgeIdentity = GEMINI) -> MetricScored:
    """Build a split vote, and one without an answer."""
    quota = JudgeFault("quota", "Resource has been exhausted (e.g. check quota).", "429 RESOURCE_EXHAUSTED")
    first = {
        "asked": 5,
        "of": 5,
        "split": True,
        "votes": {"valid": 3, "invalid": 1, "unread": 1},
        "questions": [judge_question("final_response_match", ["valid", "invalid", "valid", None, "valid"], judge)],
    }
    second = {
        "asked": 3,
        "of": 5,
        "split": False,
        "votes": {"valid": 0, "invalid": 0, "unread": 3},
        "questions": [judge_question("final_response_match", [quota, quota, quota], judge)],
    }
    reason = "turn 2: no reply could be read: quota 429 RESOURCE_EXHAUSTED"
    turns = (
        result(MATCH, "passed", 1.0, 0.5, first, "3 of 5 votes say valid"),
        result(MATCH, "error", None, 0.5, second, reason),
    )
    return MetricScored(
        REF, result(MATCH, "error", 1.0, 0.5, {"judge": judge.as_json(), "tally": TALLY}, reason), turns
    )


def rubrics(count: int = 3, judge: JudgeIdentity = GEMINI) -> MetricScored:
    """Build rubrics: met unanimously, not met with a split vote, and unreadable."""
    kinds = [
        rubric(0, "yes", yes=3),
        rubric(1, "no", text="返金の金額と日付を明記している。", no=3, yes=2, rationale="金額はあるが日付がない。"),
        rubric(2, "unread", missing=3, rationale=" "),
    ]
    rows = [{**kinds[number % 3], "rubric_id": f"rubric_{number}"} for number in range(count)]
    votes = [
        {row["rubric_id"]: {"verdict": ("yes", "no", "no")[sample], "rationale": f"Because {sample}."} for row in rows}
        for sample in range(3)
    ]
    questions = [judge_question("rubrics", votes, judge)]
    details = {"asked": 5, "of": 5, "split": True, "questions": questions, "rubrics": rows}
    turns = (result(RUBRICS, "failed", 0.5, 0.8, details, f"1 of {count} met"),)
    whole = [{"rubric_id": row["rubric_id"], "text": row["text"], "score": row["score"]} for row in rows]
    case = {"judge": judge.as_json(), "tally": TALLY, "rubrics": whole}
    return MetricScored(REF, result(RUBRICS, "failed", 0.5, 0.8, case, f"turn 1: 1 of {count} met"), turns)


def transcript(ref: CaseRef = REF) -> Iterator[Event]:
    """Build two turns, the first with a tool call and its result."""
    call = {"function_call": {"id": "call-1", "name": "find_order", "args": {"id": "A-7"}}}
    response = {"shipped": "2026-11-16 (Monday)", "expected": "2026-11-20 (Friday)"}
    reply = {"function_response": {"id": "call-1", "name": "find_order", "response": response}}
    events = [
        {"author": "order_desk", "content": {"role": "model", "parts": [call]}},
        {"author": "order_desk", "content": {"role": "user", "parts": [reply]}},
        {"author": "order_desk"},
    ]
    answers = ["".join(f"{item['text']} " for item in SENTENCES), "You are welcome."]
    for index, (user, answer) in enumerate(zip(["Where is my parcel?", "Thank you!"], answers, strict=True)):
        yield TurnStarted(ref, index, content(user, "user"))
        data = {"invocation_events": events if not index else []}
        made = {"user_content": content(user, "user"), "intermediate_data": data, "final_response": content(answer)}
        yield TurnFinished(ref, index, made)


CRITERIA: dict[str, Any] = {MATCH: 0.5, RUBRICS: {"threshold": 0.8}, CLAIMS: {"threshold": 0.8}}
SCENARIO: dict[str, Any] = {
    "starting_prompt": "Where is my parcel?",
    "conversation_plan": "Ask for order A-7. If it is late, ask for the money back. Then say thank you, and end.",
    "user_persona": {
        "id": "NOVICE",
        "description": "Knows little of the shop's words and asks one thing at a time.",
        "behaviors": [
            {
                "name": "short",
                "description": "Writes one sentence.",
                "behavior_instructions": [],
                "violation_rubrics": [],
            }
        ],
    },
}


def events(
    scored: Sequence[MetricScored], *, ref: CaseRef = REF, status: CaseStatus = "failed", ends: bool = True
) -> Iterator[Event]:
    """Build a whole run of one case."""
    yield RunStarted("run-1", "/shop", "2026-11-21T10:30:00Z", (PlannedCase(ref, None, "test_config.json"),))
    expected = tuple({"user_content": content(text, "user")} for text in ("Where is my parcel?", "Thank you!"))
    yield CaseStarted(ref, 0.0, expected, CRITERIA)
    yield from transcript(ref)
    yield from scored
    if ends:
        yield CaseFinished(ref, status, None, 2.5, Usage(3, 900, 120, judge_calls=5, judge_calls_cached=1))


def scenario_events(*, ended: str = "stop_signal", ends: bool = True, judge: JudgeIdentity = GEMINI) -> Iterator[Event]:
    """Build a simulated conversation: one message as planned, and one that breaks the plan."""
    yield RunStarted("run-1", "/shop", "2026-11-21T10:30:00Z", (PlannedCase(REF, None, "test_config.json"),))
    yield CaseStarted(REF, 0.0, None, {USER: 0.7}, SCENARIO)
    made = list(transcript(REF))
    question = judge_question("simulated_user", ["Thank you!"], judge, prompt="You are the user. " * 30)
    yield UserSimulated(REF, 0, "", {})
    yield from made[:2]
    yield UserSimulated(REF, 1, "", question)
    yield made[2]
    if not ends:
        return
    yield made[3]
    error = None
    if ended == "error":
        error = CaseError("simulator", "the judge of the simulated user is out of quota", "Wait, or use another key.")
    else:
        yield UserSimulated(REF, 2, "stop_signal" if ended == "stop_signal" else "turn_limit", question)
        yield user_quality(judge)
    yield CaseFinished(REF, "error" if error else "failed", error, 2.5, Usage(3, 900, 120, 6, 0))


def user_quality(judge: JudgeIdentity = GEMINI) -> MetricScored:
    votes = {"valid": 1, "invalid": 4, "unread": 0}
    turns = (
        result(USER, "passed", 1.0, 0.7, {"compared": True, "message": "Where is my parcel?", "questions": []}),
        result(
            USER,
            "failed",
            0.0,
            0.7,
            {"asked": 5, "of": 5, "split": True, "votes": votes, "message": "Thank you!",
             "questions": [judge_question("user_message", ["invalid"] * 4 + ["valid"], judge)]},
            "it did not ask for the money back",
        ),
    )  # fmt: skip
    stop = {"verdict": "valid", "votes": {"valid": 3, "invalid": 0, "unread": 0}, "asked": 3, "of": 5, "questions": []}
    details = {"judge": judge.as_json(), "tally": TALLY, "stop": stop, **SCENARIO}
    return MetricScored(REF, result(USER, "failed", 0.5, 0.7, details, "turn 2 breaks the plan"), turns)


def record_of(happened: Iterator[Event]) -> CaseRecord:
    """Return the record that a store makes of the events."""
    store = Store()
    for event in happened:
        store.apply(event)
    return read_details(store.records[REF])


def judged_case(judge: JudgeIdentity = GEMINI, **more: Any) -> CaseRecord:
    """Build a finished case with three judged criteria."""
    return record_of(events([match(judge), rubrics(judge=judge), claims(judge)], **more))


_KEPT = frozenset({"kind", "label", "verdict", "origin", "ended", "id", "name", "status"})
"""Fields with fixed texts of the program. Another text would only be an unknown value."""


def only(case: CaseRecord, criterion: str) -> CaseRecord:
    """Return the case with the results of one criterion."""
    case.scores = {name: result for name, result in case.scores.items() if name == criterion}
    for turn in case.turns:
        turn.metrics = {name: result for name, result in turn.metrics.items() if name == criterion}
    return case


def with_text(case: CaseRecord, text: str) -> CaseRecord:
    """Return the record with each text from outside replaced."""
    case.scores = {name: _result_with_text(result, text) for name, result in case.metrics.items()}
    for turn in case.turns:
        turn.metrics = {name: _result_with_text(result, text) for name, result in turn.metrics.items()}
        turn.user = content(text, "user")
    case.scenario = _replace_texts(case.scenario, text)
    case.simulated = [replace(step, question=_replace_texts(step.question, text)) for step in case.simulated]
    return case


def _result_with_text(result: MetricResult, text: str) -> MetricResult:
    return replace(result, reason=text, details=_replace_texts(result.details, text))


def _replace_texts(value: Any, text: str, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _replace_texts(item, text, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace_texts(item, text, key) for item in value]
    return text if isinstance(value, str) and key not in _KEPT else value
