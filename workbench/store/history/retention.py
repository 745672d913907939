"""The baseline, and the deletion of runs: those that the user names, and those beyond the limits of the settings.

Limits never remove the baseline, a run in progress, or a run whose transcripts a remaining run has scored again.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from workbench.files.settings import Limits
from workbench.store.database.database import Connection, database, run_path
from workbench.store.database.runs import RunRow, all_runs, facts_of, shrink
from workbench.store.database.runs import delete_runs as delete_stored_runs
from workbench.store.database.runs import find_run as run_by_id
from workbench.store.database.values import drop_contents, get_value, set_value
from workbench.store.history.latest import resumes
from workbench.store.history.run_names import BASELINE, Age, ages

_SPARE = 20
"""The limit may be exceeded by one part in 20 before anything is deleted."""
_MEGABYTE = 1024 * 1024
_DAY = len("2026-11-21")
_Used: TypeAlias = tuple[Age, RunRow]
"""When a run was last worked on: at its start, or when it was resumed last. Then its row."""
_RECENT = 3600.0
"""Contents used in the last hour stay: a run in progress may not have named them yet."""


def pin(state: Path, run_id: str) -> None:
    """Make a run the baseline. It replaces any other.

    Raises:
        OSError: The database cannot be written, or another workbench has deleted the run.
    """

    def change(connection: Connection) -> None:
        if run_by_id(connection, run_id) is None:
            raise FileNotFoundError(2, "no such run", str(run_path(state, run_id)))
        set_value(connection, BASELINE, run_id)

    database(state).write(change)


def unpin(state: Path) -> None:
    """Clear the baseline.

    Raises:
        OSError: The database cannot be written.
    """
    if database(state).exists:
        database(state).write(lambda connection: set_value(connection, BASELINE, None))


def delete_runs(state: Path, run_ids: Iterable[str]) -> list[str]:
    """Delete runs that are not being written, and file contents that no other run uses. Return the deleted IDs.

    Raises:
        OSError: The database cannot be written. Nothing was deleted.
    """
    wanted = list(run_ids)
    return _delete(state, lambda connection: wanted) if wanted else []


def deletable_runs(state: Path, keep: int) -> list[str]:
    """Return the IDs of runs beyond the `keep` that were worked on last, if they may be deleted.

    Raises:
        OSError: The database cannot be read.
    """
    last_used = _last_used(state)

    def ask(connection: Connection) -> list[str]:
        runs = _newest_first(connection, last_used)
        return _deletable(connection, runs[:keep], runs[keep:])

    return database(state).read(ask) or []


def tidy(state: Path, limits: Limits) -> list[str]:
    """Delete the oldest runs beyond `limits`, and return their IDs.

    The limits can be slightly exceeded, because otherwise every run would lead to deletions. Call it in a thread.

    Raises:
        OSError: The database cannot be read or written.
    """
    last_used = _last_used(state)
    if not database(state).read(lambda connection: _exceeds(_newest_first(connection, last_used), limits)):
        return []

    def choose(connection: Connection) -> list[str]:
        runs = _newest_first(connection, last_used)
        return _deletable(connection, *_split(runs, limits)) if _exceeds(runs, limits) else []

    return _delete(state, choose)


def _exceeds(runs: Sequence[_Used], limits: Limits) -> bool:
    most = limits.megabytes * _MEGABYTE
    if limits.runs and len(runs) > limits.runs + limits.runs // _SPARE:
        return True
    if most and sum(run.bytes for _, run in runs) > most + most // _SPARE:
        return True
    return bool(limits.days and any(second[:_DAY] < _day_before(limits.days + 1) for (_, second, *_), _ in runs))


def _split(runs: Sequence[_Used], limits: Limits) -> tuple[list[_Used], list[_Used]]:
    """Return the runs within the limits and those beyond. The newest run always stays."""
    stay: list[_Used] = []
    go: list[_Used] = []
    size, oldest = 0, _day_before(limits.days) if limits.days else ""
    for age, run in runs:
        size += run.bytes if limits.megabytes else 0
        beyond = (
            (limits.runs and len(stay) >= limits.runs)
            or (limits.megabytes and size > limits.megabytes * _MEGABYTE)
            or age[1][:_DAY] < oldest
        )
        (go if beyond and stay else stay).append((age, run))
    return stay, go


def _deletable(connection: Connection, stay: Sequence[_Used], go: Sequence[_Used]) -> list[str]:
    needed, found = {get_value(connection, BASELINE)}, []
    kept, age = {run.id for _, run in stay}, ages()
    # Last started first, so that a run comes before those that it scored again.
    for _, run in sorted((*stay, *go), key=lambda used: age(used[1].run_id, used[1].started), reverse=True):
        if run.id in kept or run.run_id in needed or run.is_being_written:
            needed.update(run.scored_from.split(", "))
        else:
            found.append(run.run_id)
    return found


def _last_used(state: Path) -> dict[str, Age]:
    """Return when each run was last worked on. Do not call it in a transaction: it may repair damaged runs."""
    age = ages()
    return {
        run.run_id: max(age(run.run_id, since) for since in (run.started, *resumes(state, run)))
        for run in database(state).read(all_runs) or ()
    }


def _newest_first(connection: Connection, last_used: Mapping[str, Age]) -> list[_Used]:
    age = ages()
    used = [(last_used.get(run.run_id, age(run.run_id, run.started)), run) for run in all_runs(connection)]
    return sorted(used, reverse=True)


def _delete(state: Path, choose: Callable[[Connection], Iterable[str]]) -> list[str]:
    """Delete the runs that `choose` returns in one transaction, and free their space. Return the deleted IDs.

    Another workbench may have deleted some of them.
    """

    def change(connection: Connection) -> list[str]:
        chosen = {run.id: run.run_id for name in choose(connection) if (run := run_by_id(connection, name)) is not None}
        gone = delete_stored_runs(connection, chosen)
        if gone:
            _drop_unused(connection)
        return [chosen[number] for number in gone]

    deleted = database(state).write(change)
    if deleted:
        database(state).write(shrink)
    return deleted


def _drop_unused(connection: Connection) -> None:
    """Delete file contents that no run uses. If it is unknown what a damaged run uses, nothing is deleted."""
    used: set[str] = set()
    for run in all_runs(connection):
        facts = facts_of(connection, run.id)
        try:
            sources = json.loads(facts or "")["sources"]
        except (ValueError, KeyError, TypeError):
            if run.events:
                return
            continue
        for files in sources.values() if isinstance(sources, dict) else ():
            used.update(digest for digest in files.values() if isinstance(digest, str))
    drop_contents(connection, used, time.time() - _RECENT)


def _day_before(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"
