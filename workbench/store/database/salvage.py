"""Recovery of damaged databases: the file is renamed, and all readable rows are copied into a new one.

The counts in the rows of runs tell what is missing. Each lost run gets a placeholder row, because it may have had any
verdict.
"""

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.store.database.opening import (
    BESIDE,
    SQLITE_ERRORS,
    TABLES,
    DamagedError,
    identity_of,
    open_to_write,
    translated,
)

_MARK = "damaged"
_TIME = "%Y%m%d-%H%M%S"
_UNREADABLE = (*SQLITE_ERRORS, MemoryError, OverflowError)
_GAP = 1 << 16
"""Number of rows around a damaged page that are tried one by one."""
_MOST_LOST = 1000
"""Maximum number of lost runs derived from other tables, whose run numbers may be damaged, too."""


def set_aside(path: Path) -> Path | None:
    """Replace a damaged database by a new one with its readable rows. Return the old one's new name.

    Return None if the file is not damaged, for example because another process has replaced it already. Call it outside
    of transactions.

    Raises:
        OSError: The folder cannot be written, or the disk is full. The old file stays in its place.
    """
    with _alone(path.parent):
        if not _is_damaged(path):
            return None
        aside = _free_name(path)
        fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        _delete(fresh)
        if _is_regular(path):
            try:
                with translated(path):
                    _copy(path, fresh)
            except OSError:
                _delete(fresh)
                raise
        path.replace(aside)
        for old, new in zip(_beside(path), _beside(aside), strict=True):
            with contextlib.suppress(FileNotFoundError):
                old.replace(new)
        if fresh.exists():
            fresh.replace(path)
        return aside


def damaged_files(path: Path) -> list[Path]:
    """Return the damaged databases that were set aside from `path`, the oldest first."""
    with contextlib.suppress(OSError):
        return sorted(path.parent.glob(f"{path.stem}.{_MARK}-*.db"))
    return []


def last_set_aside(path: Path) -> str:
    """Return when the database at `path` was last set aside (UTC, ISO 8601), or "" if it never was.

    Runs that began before that time may be missing from the database without a trace.
    """
    times = []
    for file in damaged_files(path):
        with contextlib.suppress(ValueError):
            found = time.strptime(file.stem.removeprefix(f"{path.stem}.{_MARK}-")[:15], _TIME)
            times.append(time.strftime("%Y-%m-%dT%H:%M:%SZ", found))
    return max(times, default="")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder, so that no other process sets aside the same file."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # Some file systems have no locks.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_regular(path: Path) -> bool:
    try:
        identity_of(path)
    except OSError:
        return False
    return True


def _is_damaged(path: Path) -> bool:
    """Read a whole file, and return whether it is damaged."""
    try:
        identity_of(path)
    except FileNotFoundError:
        return False
    except DamagedError:
        return True
    try:
        with contextlib.closing(_open(path)) as old, contextlib.closing(_empty()) as expected:
            for table in TABLES:
                columns = ", ".join(_columns(expected, table))
                old.execute(f"SELECT {columns} FROM {table} LIMIT 1").fetchall()
            checked: tuple[str] = old.execute("PRAGMA integrity_check(1)").fetchone()
            return checked != ("ok",)
    except SQLITE_ERRORS:
        return True


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, 5.0, isolation_level=None)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in TABLES.values():
        connection.execute(statement)
    return connection


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _copy(path: Path, fresh: Path) -> None:
    """Copy all readable rows into a new database."""
    made = open_to_write(fresh)
    try:
        made.connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        made.connection.execute("BEGIN IMMEDIATE")
        with contextlib.suppress(*SQLITE_ERRORS), contextlib.closing(_open(path)) as old:
            old.execute("PRAGMA writable_schema=ON")  # Otherwise, SQLite reads nothing of a file that was cut.
            for table in TABLES:
                _CopiedTable(old, made.connection, table, path).copy()
        _mark_lost_runs(made.connection)
        made.connection.execute("COMMIT")
    finally:
        made.close()


class _CopiedTable:
    """A copier of one table. It copies rows from both ends up to unreadable rows, then tries these one by one."""

    def __init__(self, old: sqlite3.Connection, new: sqlite3.Connection, table: str, path: Path) -> None:
        self._path = path
        columns = _columns(new, table)
        self._old, self._new = old, new
        self._key = "rowid" if table != "meta" else columns[0]
        self._select = f"SELECT {self._key}, {', '.join(columns)} FROM {table}"
        places = ", ".join("?" * len(columns))
        self._insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})"

    def copy(self) -> None:
        """Copy the rows that can be read. Between unreadable rows, at most `_GAP` row IDs are tried."""
        whole, last = self._read_on("ASC")
        if whole:
            return
        whole, first = self._read_on("DESC")
        if not whole and isinstance(first, int):
            start = last if isinstance(last, int) else max(0, first - _GAP)
            for number in range(start + 1, min(first, start + _GAP)):
                with contextlib.suppress(*_UNREADABLE):
                    self._put(self._old.execute(f"{self._select} WHERE rowid = ?", (number,)).fetchone())

    def _read_on(self, order: str) -> tuple[bool, Any]:
        """Copy rows up to the first unreadable one. Return whether all were read, and the last key read or None.

        One query reads all pages, so it also finds rows that damage has put out of order.
        """
        last = None
        with contextlib.suppress(*_UNREADABLE):
            for row in self._old.execute(f"{self._select} ORDER BY {self._key} {order}"):
                self._put(row)
                last = row[0]
            return True, last
        return False, last

    def _put(self, row: tuple[Any, ...] | None) -> None:
        unsuitable = sqlite3.IntegrityError, sqlite3.DataError, UnicodeError, OverflowError
        with translated(self._path), contextlib.suppress(*unsuitable):  # All other errors mean that the disk is full.
            if row is not None:
                self._new.execute(self._insert, row[1:])


def _mark_lost_runs(new: sqlite3.Connection) -> None:
    """Add a placeholder row for each run whose own row is lost. Its executions and events may still exist.

    Its ID begins with the time of the run before it, so that runs stay in order.
    """
    known = dict(new.execute("SELECT id, run_id FROM run").fetchall())
    newest = max(known, default=0)
    found = new.execute("SELECT value FROM meta WHERE name = 'newest_run'").fetchone()
    others = [int(found[0])] if found is not None and str(found[0]).isdigit() else []
    others += [row[0] for table in ("execution", "event") for row in new.execute(f"SELECT max(run) FROM {table}")]
    newest = max([newest, *(min(each, newest + _MOST_LOST) for each in others if isinstance(each, int))])
    begin = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
    for number in range(1, newest + 1):
        if number in known:
            begin = str(known[number])[:19]
            continue
        new.execute(
            "INSERT INTO run (id, run_id, started, interrupted, scored_from, events, executions, bytes, crc)"
            " VALUES (?, ?, '', 0, '', -1, -1, 0, 0)",
            (number, f"{begin}-lost-{number}"),
        )


def _delete(path: Path) -> None:
    for name in (path, *_beside(path)):
        name.unlink(missing_ok=True)


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in BESIDE]


def _free_name(path: Path) -> Path:
    at = time.strftime(_TIME, time.gmtime())
    names = (path.with_name(f"{path.stem}.{_MARK}-{at}{more}.db") for more in ("", *(f"-{n}" for n in range(2, 100))))
    return next(name for name in names if not os.path.lexists(name))
