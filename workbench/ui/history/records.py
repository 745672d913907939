"""Cases of kept runs as the records that panes show."""

from collections.abc import Collection
from pathlib import Path

from workbench.events import CaseRef
from workbench.history.case_events import case_events
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
