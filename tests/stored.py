"""Runs in the database of a state folder, looked at and damaged by tests."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from workbench.store.database.database import run_path
from workbench.store.database.opening import EVENT_BITS
from workbench.store.history.run_names import run_ids


def sql(state: Path, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Execute a statement in the database of a state folder."""
    with closing(sqlite3.connect(state / "runs.db", 10, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def stored_runs(state: Path) -> list[Path]:
    """Return the paths that name the runs, the oldest first."""
    return [run_path(state, run_id) for run_id in reversed(run_ids(state))]


def only_run(state: Path) -> Path:
    """Return the path that names the only run."""
    (path,) = stored_runs(state)
    return path


def number_of(path: Path) -> int:
    """Return the number of a run in the database."""
    ((number,),) = sql(path.parents[1], "SELECT id FROM run WHERE run_id = ?", (path.name,))
    return int(number)


def event_texts(path: Path) -> list[str]:
    """Return the events of a run as they are stored."""
    return [
        row[0] for row in sql(path.parents[1], "SELECT data FROM event WHERE run = ? ORDER BY id", (number_of(path),))
    ]


def change_event(path: Path, number: int, old: str, new: str) -> None:
    """Change a text in an event, without its checksum."""
    key = number_of(path) << EVENT_BITS | number
    sql(path.parents[1], "UPDATE event SET data = replace(data, ?, ?) WHERE id = ?", (old, new, key))


def drop_events(path: Path, *numbers: int) -> None:
    """Delete events of a run."""
    for number in numbers:
        sql(path.parents[1], "DELETE FROM event WHERE id = ?", (number_of(path) << EVENT_BITS | number,))


def forget_rows(path: Path) -> None:
    """Damage all that was made from the events of a run, so that it is made again."""
    state, number = path.parents[1], number_of(path)
    sql(state, "UPDATE execution SET crc = crc + 1 WHERE run = ?", (number,))
    sql(state, "UPDATE run SET crc = crc + 1, listed = NULL, facts_crc = facts_crc + 1 WHERE id = ?", (number,))
