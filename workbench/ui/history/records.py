"""Cases of kept runs as the records that panes show."""

from collections.abc import Collection
from pathlib import Path

from workbench.events import CaseError, CaseRef
from workbench.history.case_events import case_events
from workbench.history.report_events import END_IS_LOST
from workbench.store import CaseRecord, Store


def read_records(file: Path, refs: Collection[CaseRef]) -> dict[CaseRef, CaseRecord]:
    """What a kept run says of these cases; one of which nothing is kept is as one that never began. For a thread.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    store = Store()
    for event in case_events(file, refs):
        store.apply(event)
    return store.records


def as_it_ended(records: dict[CaseRef, CaseRecord], *, damaged: bool = False) -> dict[CaseRef, CaseRecord]:
    """The same, where a case without an end is an error: in a run that is kept nothing is running any more. `damaged`:
    the run came to its end, and of its journal something is lost."""
    for record in records.values():
        if not record.finished:
            when = "while this case was running" if record.state == "running" else "before this case started"
            record.state = "error"
            why = CaseError("cancelled", f"the run ended {when}: it was killed, or goes on still")
            record.error = CaseError("broken_file", END_IS_LOST) if damaged else why
    return records
