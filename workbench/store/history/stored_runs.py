"""Stored runs as summaries, and the list of all runs to show, newest first.

The list has our runs, runs of `adk eval`, `adk web` and `agents-cli eval grade`, and runs that cannot be read.
"""

import contextlib
import itertools
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from workbench.files.file_access import unreadable_text
from workbench.store.database.database import Connection, Database, database
from workbench.store.database.runs import (
    ExecutionRow,
    RunRow,
    all_runs,
    executions_of,
    facts_of,
    find_run,
    inputs_of,
    replace_projection,
)
from workbench.store.database.salvage import damaged_files
from workbench.store.history.adk_results import adk_entries
from workbench.store.history.agents_cli_results import agents_cli_entries
from workbench.store.history.execution_rows import RunRows, add_executions, facts_text, read_facts
from workbench.store.history.state_dir import ages, not_shown, run_path
from workbench.store.history.summary import ListedRun, RunBundles, Summary, listed_run
from workbench.text.counting import counted


@dataclass
class RunList:
    """The runs of a state folder, the newest first.

    `trouble` says what cannot be listed, and why. `unreadable` has the same by run ID.
    """

    runs: list[ListedRun] = field(default_factory=list)
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
    found.runs.sort(key=lambda entry: age(entry.run_id, entry.started), reverse=True)
    return found


def _entry(state: Path, row: RunRow, found: RunList) -> ListedRun | None:
    if row.listed is not None and row.is_whole:
        with contextlib.suppress(ValueError, TypeError):
            return ListedRun.from_json(row.listed, str(run_path(state, row.run_id)))
    try:
        summary, trouble = load_summary(state, row.run_id)
    except (OSError, ValueError) as error:
        found.unreadable[row.run_id] = unreadable_text(error)
        found.trouble.append(found.unreadable[row.run_id])
        return None
    if not summary.executions and not trouble:
        return None  # Another program is about to begin it, or was killed before it did.
    found.trouble += _first(trouble)
    return listed_run(summary, row.run_id, str(run_path(state, row.run_id)))


def _first(trouble: list[str]) -> Iterator[str]:
    yield from trouble[:1]
    if len(trouble) > 1:
        yield f"and {counted(len(trouble) - 1, 'more event')} of this run"


_TEXTS_AT_ONCE = 200
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""Errors of rows and facts of another shape."""


def load_summary(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the summary of a run, and what of it could not be read. Call it in a thread.

    Rows that are damaged or missing are made from the run's events again.

    Raises:
        FileNotFoundError: there is no such run.
        OSError: the database cannot be read.
    """
    path, stored = run_path(state, run_id), database(state)
    summary = stored.read(lambda connection: _whole_summary(connection, stored, path))
    if summary is not None:
        return summary, summary.damage
    read = stored.read(lambda connection: _readable_rows(connection, run_id))
    if read is None:
        raise FileNotFoundError(2, "no such run", str(path))
    return _repaired(stored, path, *read)


def _whole_summary(connection: Connection, stored: Database, path: Path) -> Summary | None:
    """Return the summary of a run, or None if there is no such run, or anything of it is damaged or missing."""
    row = find_run(connection, path.name)
    facts = None if row is None else facts_of(connection, row.id)
    if row is None or facts is None or not row.is_whole:
        return None
    with contextlib.suppress(*_UNREADABLE):
        summary = _summary(row, RunBundles(StoredTexts(stored, row.id)))
        read_facts(summary, facts)
        whole = itertools.takewhile(attrgetter("is_whole"), executions_of(connection, row.id))
        add_executions(summary, whole, path)
        return summary if len(summary.executions) == row.executions else None
    return None


def _readable_rows(connection: Connection, run_id: str) -> tuple[RunRow, list[ExecutionRow], str | None] | None:
    row = find_run(connection, run_id)
    if row is None:
        return None
    rows = [each for each in executions_of(connection, row.id) if each.is_whole and _is_readable(each)]
    return row, rows, facts_of(connection, row.id)


def _summary(row: RunRow, bundles: RunBundles) -> Summary:
    return Summary(
        row.run_id,
        started=row.started,
        scored_from=row.scored_from,
        seconds=row.seconds,
        interrupted=bool(row.interrupted),
        bundles=bundles,
    )


def _is_readable(row: ExecutionRow) -> bool:
    """Return whether a row has the shape that this version writes."""
    with contextlib.suppress(*_UNREADABLE):
        add_executions(Summary(), [row], Path())
        return True
    return False


class StoredTexts(dict[int, str]):
    """The bundles of inputs of a run as JSON text, read in pieces when they are needed."""

    def __init__(self, stored: Database, run: int) -> None:
        super().__init__()
        self._stored, self._run = stored, run

    def __missing__(self, number: int) -> str:
        piece = range(number, number + _TEXTS_AT_ONCE)
        with contextlib.suppress(OSError):
            self.update(self._stored.read(lambda connection: inputs_of(connection, self._run, piece)) or {})
        if number not in self:
            raise KeyError(number)
        return self[number]


def _repaired(
    stored: Database, path: Path, row: RunRow, whole: Sequence[ExecutionRow], facts: str | None
) -> tuple[Summary, list[str]]:
    """Make what is damaged of a run from its events again, and store it.

    Rows that are whole stay, even if their events are lost.
    """
    again = RunRows(row.id, path)
    damage, last = again.replay()
    known = (stored.read(lambda connection: inputs_of(connection, row.id)) or {}) if whole else {}
    # The bundles of rows that are made again come after those of rows that stay.
    first = max(known, default=-1) + 1
    texts = [known.get(number, "[null, {}]") for number in range(first)] + again.bundles
    if not row.is_whole:
        made = again.summary
        row = row._replace(
            started=made.started,
            seconds=made.seconds,
            interrupted=int(made.interrupted),
            scored_from=made.scored_from,
            events=0,
        )
    summary = _summary(row, RunBundles(texts))
    try:
        read_facts(summary, facts or "")
    except _UNREADABLE:
        read_facts(summary, facts_text(again.summary))
    found = {each.id: each.sealed() for each in again.rows(again.places.values(), first)}
    found |= {each.id: each for each in whole}
    rows = [found[key] for key in sorted(found)]
    add_executions(summary, rows, path)
    summary.damage = list(dict.fromkeys((*summary.damage, *damage)))
    if not row.is_being_written:
        fixed = row._replace(events=max(last, row.events), executions=len(rows), listed=None)
        text, seen = facts_text(summary), row.seen or 0.0
        with contextlib.suppress(OSError):
            stored.write(lambda connection: replace_projection(connection, fixed, text, rows, texts, seen))
    return summary, summary.damage


def newest_runs(state: Path) -> list[ListedRun]:
    """Return our runs without ADK's, the newest first."""
    return _compared(list_runs(state).runs)


def list_all_runs(state: Path, root: Path, agents: Iterable[Path]) -> tuple[list[ListedRun], list[str]]:
    """Return our runs and ADK's, the newest first, and what is not shown or only in part.

    Reads what `list_runs` reads, and every result file of ADK.
    """
    found = list_runs(state)
    folders = list(agents)
    entries, trouble = adk_entries(folders, {run.run_id for run in found.runs})
    others, more = agents_cli_entries(folders, root)
    entries, trouble = [*entries, *others], [*trouble, *more]
    listed = [*found.runs, *entries]
    if entries:
        age = ages()
        listed.sort(key=lambda run: age(run.run_id, run.started), reverse=True)
    runs = _compared(listed)
    for run_id, why in found.unreadable.items():
        broken = ListedRun(run_id, str(run_path(state, run_id)), _start_time(run_id), trouble=why)
        insort(runs, broken, key=lambda run: _reversed(run.started))
    partly = [line for line in found.trouble if line not in found.unreadable.values()]
    return runs, [*partly, *trouble, *not_shown(state)]


def _start_time(run_id: str) -> str:
    """Return when a run began, from its ID, such as `2026-11-21T10-30-00-3f2a`."""
    return f"{run_id[:13]}:{run_id[14:16]}:{run_id[17:19]}Z"


def _reversed(text: str) -> tuple[int, ...]:
    """Return a key that sorts texts in descending order."""
    return tuple(-ord(letter) for letter in text)


def _compared(listed: Sequence[ListedRun]) -> list[ListedRun]:
    """Return the runs, each compared with the previous run of the same cases."""
    passed: dict[tuple[Any, ...], float] = {}
    runs: list[ListedRun] = []
    for run in reversed(listed):
        # Only runs that decided the same cases are compared, one vote per case.
        key = (run.adk, run.agents, run.decided)
        is_whole = run.total > 0 and run.ended and not (run.interrupted or run.injected or run.fork)
        runs.append(replace(run, better=run.votes - passed[key]) if is_whole and key in passed else run)
        if is_whole:
            passed[key] = run.votes
    runs.reverse()
    return runs
