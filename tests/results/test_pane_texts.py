"""Whole panes as text: their lines, the cursor, and what each item leads to."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.results.golden_texts import compare, joined, names, written
from tests.results.test_trace import SPANS
from tests.results.test_trace import record as traced
from tests.run.forking.recorded import REF, original
from tests.ui.judged import (
    CLAIMS,
    FUNCTION,
    MATCH,
    RUBRICS,
    SENTENCES,
    claims,
    events,
    judged_case,
    only,
    record_of,
    rubric,
    rubrics,
    scenario_events,
)
from tests.ui.transcripts import RAISED, Call, execute, late_parcel, recorded, turn
from workbench.criteria.base import ScoreRequest
from workbench.criteria.trajectory import score
from workbench.events.events import CaseError, MetricResult, PlannedCase, SpansRecorded
from workbench.files.criteria import Criterion
from workbench.files.prices import Price, Prices
from workbench.freshness.changed_files import ChangedFile
from workbench.results import evidence, judges, trace
from workbench.results.change_causes import Cause
from workbench.results.changed_verdicts import Change
from workbench.results.document import Document, Subject
from workbench.results.error import error_lines
from workbench.results.forked import compared, conversation
from workbench.results.lines import View
from workbench.results.run_comparison import ChangedCase, ComparedCase
from workbench.run.forking import Point
from workbench.store.execution import CaseRecord

CALLS = "tool_trajectory_avg_score"
FIND: Call = ("find_order", {"id": "A-7"})
TRACK: Call = ("track_parcel", {"id": "A-7"})
REFUND: Call = ("refund", {"id": "A-7", "amount": 12.5})
TEXT_REFUND: Call = ("refund", {"id": "A-7", "amount": "12.50"})
PAID = "Your refund of 12.50 € for order A-7 is on its way."
Build = Callable[[Subject, View], Document]


def all_open(build: Build, subject: Subject, width: int, kind: str = "") -> str:
    """Return the pane with all items open, or all of a kind."""
    keys = frozenset(item.key for item in build(subject, View(width)).items if item.key.startswith(kind))
    return written(build(subject, View(width, opened=keys)))


def of_judges(record: CaseRecord, width: int = 76, *opened: str) -> str:
    return written(judges.build(Subject(record), View(width, opened=frozenset(opened))))


def of_evidence(record: CaseRecord, width: int = 79, *, full: bool = False, **options: Any) -> str:
    return written(evidence.build(Subject(record), View(width, full, **{"signs": True, **options})))


def of_trace(record: CaseRecord, width: int = 76, *opened: str, prices: Prices | None = None) -> str:
    return written(trace.build(Subject(record, prices=prices), View(width, opened=frozenset(opened))))


def one_turn(expected: Sequence[Call], actual: Sequence[Call], answer: str = PAID, said: str = PAID) -> CaseRecord:
    return execute([turn("hi", expected, answer)], [recorded("hi", actual, said)])


# Judges


def odd_claims() -> CaseRecord:
    """Return a case with sentences that the judge left out, reworded or invented, and sources that are not known."""
    dropped = {**SENTENCES[1], "text": "No refunds.", "origin": "dropped", "counts": True}
    hello = {**SENTENCES[2], "text": "Hello.", "origin": "dropped", "counts": False}
    reworded = {**SENTENCES[0], "text": "It left.", "origin": "reworded", "counts": True}
    own, unfound = {**SENTENCES[0], "added": True}, {**SENTENCES[1], "source": None}
    apology = {**SENTENCES[2], "label": "unsupported"}
    record = record_of(events([claims(sentences=[dropped, hello, reworded, own, unfound, apology])]))
    result = record.metrics[CLAIMS]
    record.metrics[CLAIMS] = replace(result, details={**result.details, "adk_score": 1.0, "share": None})
    return record


def unread_claims() -> CaseRecord:
    record = only(judged_case(), CLAIMS)
    result = record.turns[0].metrics[CLAIMS]
    text = {"author": "desk", "final": True, "text": "All is well.", "unread": "no reply could be read"}
    details = {**result.details, "texts": [{**text, "sentences": []}]}
    record.turns[0].metrics[CLAIMS] = MetricResult(CLAIMS, "error", None, 0.8, "", details)
    return record


def without_verdicts() -> str:
    why = "gemini-2.5-flash needs a key: set GOOGLE_API_KEY in order_desk/.env"
    parts = []
    for status in ("not_evaluated", "not_applicable", "error"):
        record = judged_case()
        record.scores = {CLAIMS: MetricResult(CLAIMS, status, None, 0.8, why)}
        for made in record.turns:
            made.metrics.clear()
        parts.append(of_judges(record))
    return "".join(parts)


def of_the_service() -> CaseRecord:
    record = judged_case()
    fault = {"kind": "quota", "code": "429", "message": "too many"}
    details = {"explanation": "Nothing in it is unsafe.", "error": None, "seconds": 1.0, "attempts": 1, "cached": False}
    record.scores = {"safety_v1": MetricResult("safety_v1", "error", None, 0.8, "429", {})}
    record.turns[0].metrics = {"safety_v1": MetricResult("safety_v1", "passed", 1.0, 0.8, "", details)}
    record.turns[1].metrics = {"safety_v1": MetricResult("safety_v1", "error", None, 0.8, "429", {"error": fault})}
    return record


def unused_rubrics() -> CaseRecord:
    record = record_of(events([rubrics(3)]))
    record.metrics[RUBRICS].details["unused"] = ["tone", 3]
    return record


def long_reason() -> CaseRecord:
    record = record_of(events([rubrics(1)]))
    long = rubric(0, "yes", yes=3, rationale="It says Friday. " * 20)
    record.turns[0].metrics[RUBRICS].details["rubrics"] = [long]
    return record


def long_plan() -> CaseRecord:
    record = record_of(scenario_events())
    assert record.scenario is not None
    record.scenario = {**record.scenario, "conversation_plan": "Ask again. " * 60}
    return record


def failed_simulation() -> CaseRecord:
    record = record_of(scenario_events())
    asked = next(event for event in record.simulated if event.question and not event.ended)
    error = CaseError("simulator", "the simulated user said nothing: the reply was empty")
    left = [event for event in record.simulated if not event.ended]
    return replace(record, simulated=[*left, replace(asked, turn=len(record.turns))], error=error, state="error")


JUDGES: dict[str, Callable[[], str]] = {
    "claims": lambda: of_judges(only(judged_case(), CLAIMS)),
    "claims-open-narrow": lambda: all_open(judges.build, Subject(only(judged_case(), CLAIMS)), 44, "claim"),
    "claims-odd": lambda: of_judges(odd_claims(), 100),
    "claims-unread": lambda: of_judges(unread_claims()),
    "judges-without-verdicts": without_verdicts,
    "judges-function": lambda: of_judges(judged_case(FUNCTION), 100),
    "judges-service": lambda: of_judges(of_the_service()),
    "questions": lambda: of_judges(only(judged_case(), MATCH)),
    "questions-open": lambda: all_open(judges.build, Subject(only(judged_case(), MATCH)), 76),
    "rubrics": lambda: of_judges(unused_rubrics(), 90),
    "rubrics-long": lambda: of_judges(long_reason(), 60) + all_open(judges.build, Subject(long_reason()), 60),
    "simulated": lambda: of_judges(record_of(scenario_events())),
    "simulated-open": lambda: all_open(judges.build, Subject(record_of(scenario_events())), 120),
    "simulated-turn-limit": lambda: of_judges(record_of(scenario_events(ended="turn_limit"))),
    "simulated-long-plan": lambda: (
        of_judges(long_plan(), 60) + all_open(judges.build, Subject(long_plan()), 60, "simulated/setting")
    ),
    "simulated-failed": lambda: all_open(judges.build, Subject(failed_simulation()), 76),
}


# Evidence


def refund_in_turn_two() -> CaseRecord:
    turns = [("hello", (), (), "Hi."), ("Then I want my money back.", (FIND, REFUND), (FIND, TEXT_REFUND), PAID)]
    turns.append(("thanks", (), (), "Bye."))
    return execute(
        [turn(user, calls, answer) for user, calls, _, answer in turns],
        [recorded(user, calls, answer) for user, _, calls, answer in turns],
    )


def each_relation_of_calls() -> str:
    pairs: list[tuple[list[Call], list[Call]]] = [
        ([FIND, TRACK], [FIND]),
        ([FIND], [FIND, TRACK]),
        ([TRACK, FIND], [FIND, TRACK]),
        ([FIND, TRACK], [TRACK]),
        ([FIND] * 9 + [REFUND], [FIND] * 9 + [TEXT_REFUND]),
        ([("log", None)], [("log", {})]),
        ([("say", {"to": "Ann Lee"})], [("say", {"to": "Ann\u00a0Lee"})]),
        ([("refund", {"amount": 1, "to": {"iban": "DE1"}})], [("refund", {"amount": 2, "to": {"iban": "DE2"}})]),
        ([("f", {"x": dict.fromkeys("abcdefgh", 1)})], [("f", {"x": dict.fromkeys("abcdefgh", 2)})]),
    ]
    without = execute([turn("hi", [("a", {})])], [recorded("hi", [("b", {}), ("a", {})])], criteria=())
    return "".join(of_evidence(record) for record in (*(one_turn(*pair) for pair in pairs), without))


def returning(result: object, **args: Any) -> CaseRecord:
    """Return a case whose call returns this result."""
    call = ("track_parcel", {"id": "A-7", **args})
    record = one_turn([call], [call])
    actual = record.turns[0].actual
    assert actual is not None
    made = actual["intermediate_data"]["invocation_events"]
    (told,) = [part["function_call"] for event in made for part in event.get("content", {}).get("parts", [])]
    response = {"id": told.get("id"), "name": told["name"], "response": result}
    made.append({"author": "desk", "content": {"role": "user", "parts": [{"function_response": response}]}})
    return record


def results_of_tools() -> str:
    found = returning({"status": "in transit", "eta": "Tuesday"})
    without_room = returning({"status": "sent"}, note="x" * 9)
    return of_evidence(found) + of_evidence(found, 100) + of_evidence(found, full=True) + of_evidence(without_room, 59)


def huge_arguments() -> str:
    items = [{"sku": f"S-{number}", "quantity": number} for number in range(12)]
    other = [{**item, "quantity": "7"} if item["quantity"] == 7 else item for item in items]
    record = one_turn([("ship", {"items": items})], [("ship", {"items": other})])
    return of_evidence(record) + of_evidence(record, full=True)


def inside_an_agent_tool() -> str:
    inner = {"call": None, "tool": "ask", "agent": "clerk", "name": "find_order", "args": {"id": "A-8"}}
    made = recorded("hi", [("ask", {}), REFUND])
    criterion = Criterion(CALLS, 1.0, 1.0, {"include_agent_tools": True})
    expected = turn("hi", [("ask", {}), FIND, ("refund", {"amount": 1})])
    result = score(ScoreRequest(criterion, (expected,), (made,), inner_calls=((inner,),)))
    record = execute([expected], [made], criteria=())
    record.turns[0].inner_calls = (inner,)
    record.turns[0].metrics = {CALLS: result.turns[0]}
    return of_evidence(record)


def whole_case() -> str:
    record = one_turn([FIND], [FIND])
    values = [{"path": "state.total", "expected": 12.5, "actual": "12.50"}]
    record.metrics["state"] = MetricResult("state", "failed", 0.0, 1.0, "state.total differs", {"differences": values})
    other = one_turn([FIND], [TRACK])
    other.metrics["limits"] = MetricResult("limits", "failed", 0.0, 1.0, "3 tool calls, limit 1")
    polite = one_turn([], [])
    polite.metrics["politeness"] = MetricResult("politeness", "failed", 0.1, 0.5, "no greeting at all")
    return "".join(map(of_evidence, (record, other, polite)))


def undecided() -> str:
    why = "safety_v1 needs a project: set GOOGLE_CLOUD_PROJECT in order_desk/.env"
    found = ""
    for state in ("passed", "not_evaluated"):
        record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Hello")])
        record.scores = {"safety_v1": MetricResult("safety_v1", "not_evaluated", None, 0.8, why)}
        record.state = state
        found += of_evidence(record)
    return found


def errors() -> str:
    expected = [turn("hi", [FIND], "Found."), turn("and now?", (), "Gone.")]
    raised = execute(expected, [recorded("hi", [FIND])], error=RAISED, unfinished=True)
    broken = one_turn([FIND], [])
    broken.error = CaseError("agent_raised", "KeyError: 'table'", "look at line 3")
    broken.turns[0].actual = None
    surplus = CaseError("turn_count", "2 turns were made, 1 is expected")
    twice = [recorded("hi", (), "Hello"), recorded("more", (), "Bye")]
    more = execute([turn("hi", (), "Hello")], twice, error=surplus)
    records = (raised, broken, more)
    return "".join([*map(of_evidence, records), of_evidence(raised, full=True)])


TRACEBACK = """Traceback (most recent call last):
  File "/shop/order_desk/agent.py", line 40, in answer
    return refund(order)
  File "/shop/order_desk/tools.py", line 12, in refund
    raise RuntimeError("no such order")
  File "/usr/lib/python3.12/json/decoder.py", line 3, in decode
    pass
  File "/shop/.venv/lib/python3.12/site-packages/google/adk/flow.py", line 9, in run
    pass
RuntimeError: no such order
"""


def places_of_errors() -> str:
    error = CaseError("agent_raised", "RuntimeError: no such order", "", TRACEBACK)
    late = CaseError("timeout", "no answer within 300 s", "raise --timeout")
    return (
        joined(line.plain for line in error_lines(error, View(79), root="/shop"))
        + joined(line.plain for line in error_lines(error, View(79, full=True)))
        + joined(line.plain for line in error_lines(late, View(79)))
    )


def sub_agents() -> str:
    expected = turn("plan", (), "Booked.", [("planner", "Flights first."), ("writer", "Here it is.")])
    steps = [("planner", "Hotels first."), ("critic", "Too dear."), ("writer", "Here it is.")]
    return of_evidence(execute([expected], [recorded("plan", (), "Booked.", steps)]))


def unusual_turns() -> str:
    silent = execute([turn("hi", (), "Hello")], [recorded("hi")], note="the model was blocked: SAFETY")
    without = execute(None, [recorded("hi", [FIND], "Found.")])
    picture = execute([turn("look", (), "A cat.")], [recorded("look", (), "A cat.")])
    picture.turns[0].user["parts"].append({"inline_data": {"mime_type": "image/png", "data": "AAAA"}})
    running = late_parcel(ends=False, unfinished=True)
    del running.turns[2]
    running.turns[1].actual = None
    malformed = late_parcel()
    malformed.turns[0].actual = {"intermediate_data": {"tool_uses": [7]}, "odd": "thing"}
    records = (silent, without, picture, running)
    return "".join([*map(of_evidence, records), of_evidence(malformed, full=True)])


def changed_since() -> str:
    before, after = one_turn([FIND], [FIND]), one_turn([FIND], [])
    before.state, after.state = "passed", "failed"
    file = ChangedFile("desk", "desk/agent.py", "prompt", ("-say yes", "+say no"))
    found = ComparedCase(ChangedCase("regression", before, after, (Cause("prompt", "desk/agent.py"),)), (file,))
    view = View(79, signs=True)
    failing = written(evidence.build(Subject(after, change=Change(before), compared=found), view))
    return failing + written(evidence.build(Subject(before, change=Change(after), compared=found), view))


EVIDENCE: dict[str, Callable[[], str]] = {
    "evidence": lambda: of_evidence(refund_in_turn_two()),
    "evidence-narrow": lambda: "".join(of_evidence(refund_in_turn_two(), 47, narrow=each) for each in (False, True)),
    "evidence-59": lambda: of_evidence(refund_in_turn_two(), 59),
    "evidence-full": lambda: of_evidence(refund_in_turn_two(), full=True),
    "evidence-calls": each_relation_of_calls,
    "evidence-results": results_of_tools,
    "evidence-huge-arguments": huge_arguments,
    "evidence-inner-call": inside_an_agent_tool,
    "evidence-answers": lambda: (
        of_evidence(one_turn([], [], "It arrives on 3 November.", "It will come soon."))
        + of_evidence(
            one_turn([FIND], [TRACK], "Your order A-7 is on its way to you.", "Your order A-7 is on the way.")
        )
    ),
    "evidence-judged": lambda: of_evidence(judged_case()) + of_evidence(judged_case(FUNCTION), 47),
    "evidence-simulated": lambda: of_evidence(record_of(scenario_events(ended="turn_limit"))),
    "evidence-case": whole_case,
    "evidence-undecided": undecided,
    "evidence-errors": errors,
    "evidence-places-of-errors": places_of_errors,
    "evidence-sub-agents": sub_agents,
    "evidence-unusual": unusual_turns,
    "evidence-changed": changed_since,
}


# Trace and tries


def replayed() -> CaseRecord:
    made = traced()
    told = json.dumps([{**span, "recalled": True} if span["id"] == 6 else span for span in SPANS])
    made.turns[0].spans = SpansRecorded(made.ref, 0, told, {})
    return made


def opened_rows() -> str:
    parts = [f"span/0/3/{part}" for part in ("event", "request", "response", "graph", "request/tools", "request/0")]
    return of_trace(traced(), 76, "span/0/3") + of_trace(traced(), 76, "span/0/3", "span/0/5", *parts)


def tried(*answers: str, message: str = "", result: str = "", error: CaseError | None = None) -> CaseRecord:
    """Return a try that gives these answers, the other parts as in the original."""
    turns = conversation(original())[: len(answers)]
    for made, answer in zip(turns, answers, strict=True):
        final = {"role": "model", "parts": [{"text": answer}]}
        made.actual = json.loads(json.dumps({**(made.actual or {}), "final_response": final}).replace("kettle", result))
    if message:
        turns[0].user = {"role": "user", "parts": [{"text": message}]}
    record = CaseRecord(PlannedCase(REF, None, ""), "error" if error else "passed")
    record.turns, record.error = turns, error
    return record


def of_try(record: CaseRecord | None, point: Point) -> str:
    return written(compared(original(), record, 1, point, View(79, full=True, signs=True)))


OTHERS: dict[str, Callable[[], str]] = {
    "trace": lambda: of_trace(traced()) + of_trace(replayed()) + of_trace(traced(), 30),
    "trace-priced": lambda: of_trace(traced(), 120, prices=Prices({"m": Price(1.0, 1.0)}, "EUR")),
    "trace-open": opened_rows,
    "trace-without-spans": lambda: of_trace(traced(watched=False)),
    "try": lambda: of_try(tried("answer 1", "another answer", result="kettle"), Point(1)),
    "try-other-message": lambda: of_try(tried("answer 1", message="A pot", result="pot"), Point(0)),
    "try-waits": lambda: of_try(None, Point(1)),
    "try-error": lambda: of_try(
        tried("answer 1", result="kettle", error=CaseError("fork_diverged", "not as recorded")), Point(0)
    ),
}
SCENES = {**JUDGES, **EVIDENCE, **OTHERS}


@pytest.mark.parametrize("name", SCENES)
def test_pane_equals_its_golden_text(name: str) -> None:
    compare(f"pane-{name}", SCENES[name]())


def test_each_golden_text_has_its_scene() -> None:
    assert names("pane-") == {f"pane-{name}" for name in SCENES}
