"""Stored runs as summaries, and the list of all of them, newest first."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.counting import counted
from workbench.database.database import Connection, Database, database
from workbench.database.runs import (
    ExecutionRow,
    RunRow,
    all_runs,
    execution_id,
    executions_of,
    facts_of,
    find_run,
    inputs_of,
    replace_projection,
)
from workbench.database.salvage import damaged_files
from workbench.history.ages import ages
from workbench.history.execution_rows import Place, facts_text, read_facts, rows_from, to_stored
from workbench.history.list_entries import ListEntry, list_entry
from workbench.history.state_dir import run_path
from workbench.history.stored_events import stored_events
from workbench.history.summary import Summary, SummaryBuilder, row_key
from workbench.regular_file import unreadable_text


@dataclass
class RunList:
    """The runs of a state folder, the newest first.

    `trouble` says what cannot be listed, and why. `unreadable` has the same by run ID.
    """

    runs: list[ListEntry] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def list_runs(state: Path) -> RunList:
    """Return all runs of a state folder. Call it in a thread."""
    found = RunList()
    try:
        rows = database(state).read(all_runs) or []
    except OSError as error:
        found.trouble.append(unreadable_text(error))
        return found
    aside = damaged_files(database(state).path)
    found.trouble += [f"{file} was damaged and set aside. What could be read of it is shown" for file in aside]
    for row in rows:
        entry = _entry(state, row, found)
        if entry is not None:
            found.runs.append(entry)
    age = ages()
    found.runs.sort(key=lambda entry: age(entry["run_id"], str(entry.get("started"))), reverse=True)
    return found


def _entry(state: Path, row: RunRow, found: RunList) -> ListEntry | None:
    if row.listed is not None and row.is_whole:
        with contextlib.suppress(ValueError):
            entry: ListEntry = json.loads(row.listed)
            return entry
    try:
        summary, trouble = load_summary(state, row.run_id)
    except (OSError, ValueError) as error:
        found.unreadable[row.run_id] = unreadable_text(error)
        found.trouble.append(found.unreadable[row.run_id])
        return None
    if not summary.rows and not trouble:
        return None  # Another program is about to begin it, or was killed before it did.
    found.trouble += _first(trouble)
    return list_entry(row.run_id, summary)


def _first(trouble: list[str]) -> Iterator[str]:
    yield from trouble[:1]
    if len(trouble) > 1:
        yield f"and {counted(len(trouble) - 1, 'more event')} of this run"


def load_summary(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the summary of a run, and what of it could not be read. Call it in a thread.

    Rows that are damaged or missing are made from the run's events again.

    Raises:
        FileNotFoundError: there is no such run.
        OSError: the database cannot be read.
    """
    path, stored = run_path(state, run_id), database(state)
    read = stored.read(lambda connection: _rows(connection, run_id))
    if read is None:
        raise FileNotFoundError(2, "no such run", str(path))
    row, executions, facts = read
    whole = [each for each in executions if each.is_whole]
    if row.is_whole and facts is not None and len(whole) == len(executions) == row.executions:
        with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
            summary = _summary(stored, row, facts, executions)
            return summary, summary.damage
    return _repaired(stored, path, row, whole, facts)


def _rows(connection: Connection, run_id: str) -> tuple[RunRow, list[ExecutionRow], str | None] | None:
    row = find_run(connection, run_id)
    return None if row is None else (row, executions_of(connection, row.id), facts_of(connection, row.id))


def _summary(stored: Database, row: RunRow, facts: str, executions: Sequence[ExecutionRow]) -> Summary:
    summary = Summary(
        row.run_id,
        started=row.started,
        scored_from=row.scored_from,
        seconds=row.seconds,
        interrupted=bool(row.interrupted),
        bundles=StoredInputs(stored, row.id),
    )
    read_facts(summary, facts)
    rows_from(summary, executions)
    return summary


class StoredInputs(Mapping[int, str]):
    """The bundles of inputs of a run, read when the first is needed."""

    def __init__(self, stored: Database, run: int) -> None:
        self._stored, self._run = stored, run
        self._known: dict[int, str] | None = None

    def _read(self) -> dict[int, str]:
        if self._known is None:
            try:
                self._known = self._stored.read(lambda connection: inputs_of(connection, self._run)) or {}
            except OSError:
                self._known = {}
        return self._known

    def __getitem__(self, number: int) -> str:
        return self._read()[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def _repaired(
    stored: Database, path: Path, row: RunRow, whole: Sequence[ExecutionRow], facts: str | None
) -> tuple[Summary, list[str]]:
    """Make what is damaged of a run from its events again, and store it.

    Rows that are whole stay, even if their events are lost.
    """
    builder, places, trouble, last = _replayed(path, row.id)
    made, again = Summary(row.run_id), builder.summary
    known = (stored.read(lambda connection: inputs_of(connection, row.id)) or {}) if whole else {}
    offset = max(known, default=-1) + 1
    if row.is_whole:
        made.started, made.scored_from = row.started, row.scored_from
        made.seconds, made.interrupted = row.seconds, bool(row.interrupted)
    else:
        made.started, made.scored_from, made.seconds = again.started, again.scored_from, again.seconds
        made.interrupted = again.interrupted
    try:
        read_facts(made, facts or "")
    except (ValueError, TypeError, RecursionError):
        read_facts(made, facts_text(again))
    # The bundles of rows that are made again come after those of rows that stay.
    texts = [known.get(number, "[null, {}]") for number in range(offset)] + builder.bundles
    found = {each.id: each for each in whole}
    for key, each in again.rows.items():
        place = places[key]
        moved = {name: [number + offset for number in each[name]] for name in ("given", "inputs")}
        found.setdefault(place.id, to_stored({**each, **moved}, again, place, row.id).sealed())
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
        rows_from(made, [found[key] for key in sorted(found)])
    made.bundles = texts
    made.damage = [*made.damage, *(line for line in trouble if line not in made.damage)]
    for each in made.rows.values():
        if each["plan"] is not None and each["plan"] >= len(made.plans):
            each["plan"] = None
    if not row.is_being_written:
        fixed = row._replace(
            started=made.started,
            seconds=made.seconds,
            interrupted=int(made.interrupted),
            scored_from=made.scored_from,
            events=max(last, row.events if row.is_whole else 0),
            executions=len(found),
            listed=None,
        )
        stored_rows = [found[key] for key in sorted(found)]
        with contextlib.suppress(OSError):
            stored.write(
                lambda connection: replace_projection(
                    connection, fixed, facts_text(made), stored_rows, texts, row.seen or 0.0
                )
            )
    return made, made.damage


def _replayed(path: Path, run: int) -> tuple[SummaryBuilder, dict[tuple[Any, ...], Place], list[str], int]:
    """Return the summary of a run's events, where the events of its executions are, the damage, and the last number."""
    builder, trouble, last = SummaryBuilder(), list[str](), 0
    places: dict[tuple[Any, ...], Place] = {}
    for event in stored_events(path, unread="steps"):
        last = max(last, event.number)
        if event.problem:
            trouble.append(event.problem)
        if event.data is None:
            continue
        builder.take(event.data)
        if event.name == "RunStarted":
            for key in builder.summary.rows:
                places.setdefault(key, Place(execution_id(run, len(places))))
        if isinstance(event.data.get("case"), dict):
            key = row_key(event.data["case"])
            place = places.setdefault(key, Place(event.execution or execution_id(run, len(places))))
            place.take(event.number, event.name, event.size, event.data.get("attempt"))
    for key in builder.summary.rows:
        places.setdefault(key, Place(execution_id(run, len(places))))
    return builder, places, trouble, last
