"""Runs of one evalset with given statuses, for comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from workbench.events.event_json import as_line
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    ErrorKind,
    Event,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.summary import Summary, summarize_events

Cases = Mapping[str, Sequence[str]]
"""The statuses of the repeats of each case. `failed_with_errors` is failed, with an error beside it."""
FILE = "desk/refunds.evalset.json"


def run(cases: Cases, agent: str = "desk", kind: ErrorKind = "agent_raised", **facts: Any) -> Summary:
    """Return the summary of a run in which the cases ended so."""
    return summarize_events(list(_events("x", cases, agent, kind, facts)))


def store_run(state: Path, run_id: str, cases: Cases) -> None:
    """Store a run in a state folder."""
    writer = RunWriter.open(state, run_id)
    writer.write(map(as_line, _events(run_id, cases, "desk", "agent_raised", {})), sync=False)
    writer.close()


def _events(run_id: str, cases: Cases, agent: str, kind: ErrorKind, facts: dict[str, Any]) -> Iterator[Event]:
    set_id = "refunds" if agent else ""
    refs = [
        (CaseRef(agent, FILE, set_id, name, repeat), status)
        for name, statuses in cases.items()
        for repeat, status in enumerate(statuses, 1)
    ]
    planned = tuple(PlannedCase(ref, None, "defaults") for ref, _ in refs)
    yield RunStarted(run_id, "/root", "2026-11-21T10:30:00Z", planned, **facts)
    for ref, status in refs:
        yield CaseStarted(ref, 0.0, (), {"response_match_score": 0.8})
        if status in ("passed", "failed"):
            score = 1.0 if status == "passed" else 0.0
            yield MetricScored(ref, MetricResult("response_match_score", cast(Any, status), score, 0.8, "other words"))
        broke = status in ("error", "failed_with_errors")
        error = CaseError(kind, "it broke") if broke else None
        yield CaseFinished(ref, cast(CaseStatus, "failed" if status == "failed_with_errors" else status), error, 0.1)
    yield RunFinished(1.0)
