"""Another program that writes a run into a state folder."""

from collections.abc import Sequence
from pathlib import Path

from workbench.engine.run.event_lines import as_line
from workbench.events import CaseFinished, CaseRef, CaseStatus, Event, PlannedCase, RunFinished, RunStarted
from workbench.history.journal import Journal


class Other:
    """The run of another program, written event by event."""

    def __init__(self, state: Path, run_id: str, cases: Sequence[CaseRef]) -> None:
        self.cases = cases
        self.journal = Journal.open(state, run_id)
        self.run_id = run_id

    def put(self, *events: Event) -> None:
        self.journal.write([as_line(event) for event in events], sync=False)

    def start(self, started: str = "2026-11-21T10:30:00Z") -> None:
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in self.cases)
        self.put(RunStarted(self.run_id, "/root", started, planned))

    def end_case(self, number: int, status: CaseStatus = "passed") -> None:
        self.put(CaseFinished(self.cases[number], status, None, 0.5))

    def finish(self) -> None:
        self.put(RunFinished(2.0))
        self.journal.close()
