"""Another program that writes a run into a state folder. It has its own connections, as another process would."""

from collections.abc import Sequence
from pathlib import Path

from workbench.events.event_json import as_line
from workbench.events.events import CaseFinished, CaseRef, CaseStatus, Event, PlannedCase, RunFinished, RunStarted
from workbench.store.database.database import Database
from workbench.store.history.run_writer import RunWriter


def apart(writer: RunWriter, state: Path) -> RunWriter:
    """Let a writer use connections of its own."""
    writer._database = Database(state)
    return writer


class Other:
    """The run of another program, written event by event."""

    def __init__(self, state: Path, run_id: str, cases: Sequence[CaseRef]) -> None:
        self.cases = cases
        self.run_id = run_id
        self.writer = apart(RunWriter.open(state, run_id), state)

    def put(self, *events: Event) -> None:
        self.writer.write([as_line(event) for event in events], sync=False)

    def start(self, started: str = "2026-11-21T10:30:00Z") -> None:
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in self.cases)
        self.put(RunStarted(self.run_id, "/root", started, planned))

    def end_case(self, number: int, status: CaseStatus = "passed") -> None:
        self.put(CaseFinished(self.cases[number], status, None, 0.5))

    def finish(self) -> None:
        self.put(RunFinished(2.0))
        self.writer.close()
