"""Executions of cases, built by hand and scored by the real criteria, as the store would have them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from workbench.criteria import registry
from workbench.criteria.base import ScoreRequest
from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    MetricScored,
    OutputCaptured,
    PlannedCase,
    RunStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from workbench.files.criteria import Criterion
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.store import Store

Call: TypeAlias = tuple[str, dict[str, Any] | None]
CRITERIA = (Criterion("tool_trajectory_avg_score", 1.0, 1.0, {}), Criterion("response_match_score", 0.8, 0.8, {}))
LATE_PARCEL = CaseRef("order_desk", "order_desk/refunds.evalset.json", "refunds", "late_parcel")


def content(text: str, role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def turn(
    user: str, calls: Sequence[Call] = (), answer: str | None = None, said: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Build a turn in the form that people write. `recorded` builds the form that ADK records."""
    data: dict[str, Any] = {"tool_uses": [{"name": name, "args": args} for name, args in calls]}
    data["intermediate_responses"] = [(author, [{"text": text}]) for author, text in said]
    made: dict[str, Any] = {"user_content": content(user, "user"), "intermediate_data": data}
    return made if answer is None else {**made, "final_response": content(answer)}


def recorded(
    user: str, calls: Sequence[Call] = (), answer: str | None = None, said: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Return the same turn in the shape that ADK records."""
    parts: list[tuple[str, dict[str, Any]]] = [
        ("desk", {"function_call": {"name": name, "args": args}}) for name, args in calls
    ]
    parts += [(author, {"text": text}) for author, text in said]
    events = [{"author": author, "content": {"role": "model", "parts": [part]}} for author, part in parts]
    return {**turn(user, (), answer), "intermediate_data": {"invocation_events": events}}


def execute(
    expected: Sequence[dict[str, Any]] | None,
    actual: Sequence[dict[str, Any]],
    *,
    ref: CaseRef = LATE_PARCEL,
    criteria: Sequence[Criterion] = CRITERIA,
    error: CaseError | None = None,
    output: Mapping[str, str] | None = None,
    note: str = "",
    ends: bool = True,
    unfinished: bool = False,
) -> CaseRecord:
    """Build the record of one execution.

    `ends` says that it has finished, `unfinished` that its last turn has not.
    """
    store = Store()
    source = "test_config.json beside the evalset"
    planned = PlannedCase(ref, "order_desk/test_config.json", source)
    store.apply(RunStarted("run-1", "/shop", "2026-11-21T10:30:00Z", (planned,)))
    store.apply(CaseStarted(ref, 0.0, None if expected is None else tuple(expected), {}))
    for index, made in enumerate(actual):
        store.apply(TurnStarted(ref, index, made["user_content"]))
        for event in made["intermediate_data"].get("invocation_events", ()):
            store.apply(AgentActed(ref, index, event))
        if not (unfinished and index == len(actual) - 1):
            store.apply(TurnFinished(ref, index, made, note))
    for stream, text in (output or {}).items():
        store.apply(OutputCaptured(ref, "stdout" if stream == "stdout" else "stderr", text))
    if ends and error is None:
        for criterion in registry.with_informational(criteria):
            scored = registry.score(
                ScoreRequest(criterion, None if expected is None else tuple(expected), tuple(actual))
            )
            store.apply(MetricScored(ref, scored.result, scored.turns))
    record = store.records[ref]
    if ends:
        usage = Usage(model_calls=4, input_tokens=1200, output_tokens=340)
        store.apply(CaseFinished(ref, _status(read_details(record), error), error, 1.94, usage))
    return read_details(record)


def _status(record: CaseRecord, error: CaseError | None) -> CaseStatus:
    found = {result.status for result in record.metrics.values()}
    if error is not None or "error" in found:
        return "error"
    order: tuple[CaseStatus, ...] = ("failed", "not_evaluated", "passed")
    return next((status for status in order if status in found), "not_evaluated")


def late_parcel(**more: Any) -> CaseRecord:
    """Build three turns. The second fails by an argument's type, an extra call and other words."""
    hello = "Hello, who are you?", (), "I am the order desk. How can I help?"
    back = "Where is my parcel? I want my money back."
    find = ("find_order", {"id": "A-7"})
    expected = [
        turn(*hello),
        turn(back, [find, ("refund", {"id": "A-7", "amount": 12.5})], "Your refund of 12.50 € is on its way."),
        turn("Thank you!", (), "You are welcome."),
    ]
    calls = [find, ("refund", {"id": "A-7", "amount": "12.50"}), ("notify", {"to": "customer"})]
    actual = [
        recorded(*hello),
        recorded(back, calls, "Your refund of 12.50 euros is under way."),
        recorded("Thank you!", (), "You are welcome."),
    ]
    return execute(expected, actual, **more)


RAISED = CaseError(
    "agent_raised",
    "KeyError: 'Z-99' in find_order",
    "Let the tool return an error instead of raising one.",
    "Traceback (most recent call last):\n  File \"tools.py\", line 31, in find_order\nKeyError: 'Z-99'\n",
)
