"""Events of stored runs, with a message for each one that is damaged or missing."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workbench.events.event_json import from_json
from workbench.events.events import CaseRef, Event, Noticed, PlannedCase, RunStarted
from workbench.store.database.database import Database, database
from workbench.store.database.runs import EventRow, RunRow, Unread, find_run, some_events
from workbench.store.history.state_dir import state_of
from workbench.text.counting import counted

UNREADABLE_CASES = CaseRef("", "", "", "other cases, which cannot be read")
"""Placeholder without a verdict for the unknown cases of a run whose announcement is lost."""


class EventRead(NamedTuple):
    """A stored event as JSON data, or None if it is damaged or was not asked for.

    `problem` says what is wrong with it, or with what should be before it, or "". One that is damaged is not whole.
    """

    number: int
    name: str
    execution: int | None
    size: int
    data: dict[str, Any] | None
    problem: str
    is_whole: bool = False


def stored_events(path: Path, *, unread: Unread = "none", retried: Collection[str] = ()) -> Iterator[EventRead]:
    """Yield the events of a stored run in order, and one without data for a gap at the end.

    The data of events that `unread` names is left out. Cases that ended with an error of a kind in `retried` are not
    decided.

    Raises:
        FileNotFoundError: there is no such run.
        OSError: the database cannot be read.
    """
    stored = database(state_of(path))
    row = stored.read(lambda connection: find_run(connection, path.name))
    if row is None:
        raise FileNotFoundError(2, "no such run", str(path))
    last = 0
    while batch := _batch(stored, row.id, last, unread, retried):
        for event in batch:
            yield _read(event, path, last)
            last = event.number
    lost = _expected(row) - last
    if lost > 0:
        missing = counted(lost, "event is", "events are")
        yield EventRead(last + 1, "", None, 0, None, f"{path}:{last + 1}: {missing} missing at the end of the run")
    elif row.events < 0:
        yield EventRead(
            last + 1, "", None, 0, None, f"{path}: the database was damaged, and parts of this run are lost"
        )


def _batch(stored: Database, run: int, after: int, unread: Unread, retried: Collection[str]) -> list[EventRow]:
    return stored.read(lambda connection: some_events(connection, run, after, unread, retried)) or []


def _expected(row: RunRow) -> int:
    return row.events if row.is_whole else 0


def _read(event: EventRow, path: Path, last: int) -> EventRead:
    lost = event.number - last - 1
    missing = counted(lost, "event is", "events are")
    problem = f"{path}:{event.number}: {missing} missing before this one" if lost > 0 else ""
    data: dict[str, Any] | None = None
    is_whole = event.is_whole
    if is_whole and event.data:
        try:
            data = json.loads(event.data)
            if not isinstance(data, dict):
                raise ValueError("it is not a JSON object")
        except (ValueError, RecursionError) as error:
            data, is_whole, problem = None, False, f"{path}:{event.number}: skipped this event: {error}"
    elif not is_whole:
        problem = f"{path}:{event.number}: skipped this event: its checksum is wrong"
    return EventRead(event.number, event.name, event.execution, len(event.data), data, problem, is_whole)


def read_run(path: Path) -> Iterator[Event]:
    """Yield the events of a stored run, in order.

    Events that are damaged or of unknown form are skipped, and a `Noticed` names each. If the announcement of the cases
    is lost, they are announced as far as the rest names them. A run that was killed has no `RunFinished`.

    Raises:
        FileNotFoundError: there is no such run.
        OSError: the database cannot be read.
    """
    events = _events(path)
    notices: list[Event] = []
    is_there = False
    for event in events:
        if isinstance(event, Noticed):
            notices.append(event)  # Held back, because front ends clear notices when a run is announced.
            continue
        is_there = True
        yield from ([event, *notices] if isinstance(event, RunStarted) else [_announcement(path), *notices, event])
        notices = []
        break
    if not is_there and any(is_reading_problem(notice, path) for notice in notices):
        yield _announcement(path)
    yield from notices
    yield from events


def is_reading_problem(event: Event, file: Path) -> bool:
    """Return whether an event is the reader's notice about a part of `file`, and not a notice recorded in the run."""
    return isinstance(event, Noticed) and event.message.startswith(f"{file}:")


def _events(path: Path) -> Iterator[Event]:
    """Yield the readable events in order, and a `Noticed` for each problem."""
    for read in stored_events(path):
        if read.problem:
            yield Noticed("warning", read.problem)
        if read.data is not None:
            try:
                yield from_json(read.data)
            except (ValueError, RecursionError) as error:
                yield Noticed("warning", f"{path}:{read.number}: skipped this event: {error}")


def _announcement(path: Path) -> RunStarted:
    """Return a replacement for a lost announcement."""
    refs: dict[CaseRef, None] = {}
    for event in _events(path):
        if (ref := getattr(event, "case", None)) is not None:
            refs[ref] = None
    # There may have been others. The placeholder keeps the run from counting as passed.
    cases = tuple(PlannedCase(ref, None, "not known: the database is damaged") for ref in (*refs, UNREADABLE_CASES))
    return RunStarted(path.name, "", "", cases)


def announcement(path: Path) -> RunStarted | None:
    """Return how a run announced itself, or None if that cannot be read."""
    try:
        for read in stored_events(path, unread="steps"):
            if read.data is None or read.name not in ("Noticed", "RunStarted"):
                return None
            if read.name == "RunStarted":
                event = from_json(read.data)
                return event if isinstance(event, RunStarted) else None
    except (OSError, ValueError, RecursionError):
        return None
    return None
