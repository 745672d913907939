"""Stores fed with the events of runs that never happened."""

from collections.abc import Iterable

from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    MetricResult,
    MetricScored,
    OutputCaptured,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from workbench.store.store import Store

FILE = "desk/refunds.evalset.json"
SOURCE = "test_config.json beside the evalset"
CRASH = CaseError(
    "agent_raised",
    "KeyError: 'A-9'",
    "Look at the tool",
    'Traceback:\n  File "/work space/root/desk/agent.py", line 3, in root_agent\n    find(id)\n'
    '  File "/work space/root/desk/tools.py", line 12, in find\n    ORDERS[id]\n',
)
TRAJECTORY_FAILED = MetricResult(
    "tool_trajectory_avg_score",
    "failed",
    0.5,
    1.0,
    'turn 2: args.amount: number 12.5, got text "12.50"',
    {"match_type": "EXACT"},
)
ANSWER_PASSED = MetricResult("response_match_score", "passed", 0.8571428571428571, 0.8, "6 of 7 words")


def ref(eval_id: str, *, repeat: int = 1, agent: str = "desk", file: str = FILE, set_id: str = "refunds") -> CaseRef:
    return CaseRef(agent, file, set_id, eval_id, repeat)


def started(refs: Iterable[CaseRef], source: str = SOURCE) -> RunStarted:
    planned = tuple(PlannedCase(case, "desk/test_config.json", source) for case in refs)
    return RunStarted("2026-11-21T10-30-00-3f2a", "/work space/root", "2026-11-21T10:30:00Z", planned)


def case_events(
    case: CaseRef,
    status: CaseStatus,
    metrics: Iterable[MetricResult] = (),
    error: CaseError | None = None,
    text: str = "hello",
) -> list[Event]:
    """Return the events of a case of one turn. A case with an `error` ends in the middle of the turn."""
    user = {"role": "user", "parts": [{"text": text}]}
    invocation = {"user_content": user, "final_response": {"role": "model", "parts": [{"text": text}]}}
    events: list[Event] = [
        CaseStarted(case, 0.25, (invocation,), {"tool_trajectory_avg_score": 1.0}),
        TurnStarted(case, 0, user),
        AgentActed(case, 0, {"author": "desk", "content": {"parts": [{"text": text}]}}),
        OutputCaptured(case, "stdout", f"printed {text}\n"),
    ]
    if error is None:
        events.append(TurnFinished(case, 0, invocation))
        events.extend(MetricScored(case, result, (result,)) for result in metrics)
    events.append(CaseFinished(case, status, error, 1.5, Usage(2, 20, 10)))
    return events


def failed_with_errors(case: CaseRef) -> list[Event]:
    """Return the events of a case whose tool calls are wrong and whose judge could not be reached."""
    unjudged = MetricResult("final_response_match_v2", "error", None, 0.8, "turn 1: no connection")
    error = CaseError("judge", "final_response_match_v2: turn 1: no connection", "Check the connection")
    return [*case_events(case, "failed", [TRAJECTORY_FAILED, unjudged])[:-1], CaseFinished(case, "failed", error, 1.5)]


def feed(*groups: Iterable[Event]) -> Store:
    store = Store()
    for group in groups:
        for event in group:
            store.apply(event)
    return store


PASSED, FAILED, BROKEN, UNKNOWN = (ref(name) for name in ("on_time", "late_parcel", "unknown_order", "needs_a_key"))
NO_FILE = CaseRef("", "desk/torn.evalset.json", "torn", "")


def all_statuses(*, interrupted: bool = False) -> Store:
    """Return a store with a case of each status, a broken file, a second repeat, and a case that never started."""
    missing = MetricResult("safety_v1", "not_evaluated", None, 0.8, "needs google-cloud-aiplatform")
    silent = MetricResult("hallucinations_v1", "not_applicable", None, 0.8, "nothing to judge")
    figure = MetricResult("tool_call_count_v1", "informational", 3.0, None, "3 calls")
    crashed = MetricResult("response_match_score", "error", None, 0.8, "the metric crashed")
    again, later = ref("on_time", repeat=2), ref("two_parcels")
    torn = CaseError("broken_file", "line 3, column 7: a comma is missing")
    return feed(
        [started([PASSED, FAILED, BROKEN, UNKNOWN, NO_FILE, again, later])],
        case_events(PASSED, "passed", [ANSWER_PASSED, figure, silent]),
        case_events(FAILED, "failed", [TRAJECTORY_FAILED, ANSWER_PASSED]),
        case_events(BROKEN, "error", error=CRASH),
        case_events(UNKNOWN, "not_evaluated", [missing]),
        [CaseFinished(NO_FILE, "error", torn, 0.0)],
        case_events(again, "error", [crashed]),
        [RunFinished(4.2, interrupted)],
    )
