"""Runs, executions and events in the database: their rows and the functions that read and write them.

All functions that take a connection are called within `Database.read` or `Database.write`.
"""

import functools
import json
import os
import platform
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.store.database.database import Connection
from workbench.store.database.opening import EVENT_BITS, RUN_BITS, DamagedError

_AT_ONCE = 400
_SILENT = 60.0
"""Seconds without a heartbeat after which a process on another machine counts as ended."""


@functools.cache
def _this_machine() -> str:
    """Return an ID of this machine since its last boot. Each container has its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        boot = ""
    return f"{platform.node()}/{boot}"


def this_process() -> str:
    """Return an ID of this process: its machine, its process ID and its start time."""
    return f"{_this_machine()} {os.getpid()} {_began(os.getpid())}"


def is_alive(name: str, seen: float) -> bool:
    """Return whether the process with this ID (see `this_process`) may still be running.

    `seen` is the time of its last heartbeat, in seconds since the epoch. It matters only for processes of other
    machines.
    """
    machine, pid, began = ([*name.rsplit(" ", 2), "", ""])[:3]
    if machine != _this_machine() or not pid.isdigit():
        return abs(time.time() - seen) < _SILENT
    now = _began(int(pid))
    return now != "gone" and (not now or now == began)


def _began(pid: int) -> str:
    """Return the start time of a process in the system's unit, "" if unknown, or "gone" if it has ended."""
    try:
        if not Path("/proc/self/stat").exists():  # As on macOS.
            os.kill(pid, 0)
            return ""
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    except OSError:
        return ""
    # The name of the program is in parentheses and may hold anything.
    fields = stat.rpartition(b")")[2].split()
    return "gone" if fields[0] == b"Z" else fields[19].decode("ascii")  # Z: a zombie.


def checksum(values: tuple[Any, ...]) -> int:
    """Return the checksum of a row."""
    return zlib.crc32(ascii(values).encode("ascii"))


def text_checksum(text: object) -> int | None:
    """Return the checksum of a text, or None if the value is not a text, as after a flipped bit."""
    return zlib.crc32(text.encode("utf-8", "replace")) if isinstance(text, str) else None


def event_checksum(number: int, data: str) -> int:
    """Return the checksum of an event with its number, so that a moved event is noticed."""
    return zlib.crc32(data.encode("utf-8", "replace"), zlib.crc32(b"%d" % number))


class RunRow(NamedTuple):
    """The row of a run, without its facts.

    `events` and `executions` are the numbers of rows that it must have. `listed` is JSON text (see `ListedRun`), or
    None until the run has ended.
    """

    id: int
    run_id: str
    started: str = ""
    seconds: float | None = None
    interrupted: int = 0
    scored_from: str = ""
    git_commit: str | None = None
    dirty: int | None = None
    events: int = 0
    executions: int = 0
    bytes: int = 0
    listed: str | None = None
    crc: int = 0
    writer: str | None = None
    seen: float | None = None

    @classmethod
    def read(cls, row: tuple[Any, ...]) -> "RunRow":
        """Return the record of a database row. A value of a wrong type is replaced by an empty one."""
        values: list[Any] = [
            value if isinstance(value, kind) else default
            for value, kind, default in zip(row, _RUN_TYPES, _NO_RUN, strict=True)
        ]
        return cls(*values)

    @property
    def is_whole(self) -> bool:
        """Whether the row is as it was written."""
        return self.crc == checksum(self[:12])

    def sealed(self) -> "RunRow":
        """Return the row with its checksum."""
        return self._replace(crc=checksum(self[:12]))

    @property
    def is_being_written(self) -> bool:
        """Whether a living process writes the run."""
        return self.writer is not None and is_alive(self.writer, self.seen or 0.0)


_NONE = type(None)
_REAL = (float, int, _NONE)
_RUN_TYPES: tuple[Any, ...] = (
    *(int, str, str, _REAL, int, str, (str, _NONE), (int, _NONE)),
    *(int, int, int, (str, _NONE), int, (str, _NONE), _REAL),
)
_NO_RUN = RunRow(0, "")


class ExecutionRow(NamedTuple):
    """The row of an execution of a case. `scores` and `more` are JSON text.

    `first` is the number of the event that began its last attempt. `events` and `bytes` count from that event on.
    `changed` is the number of the last event about the execution.
    """

    id: int
    run: int
    agent: str
    evalset_file: str
    eval_set_id: str
    eval_id: str
    repeat: int
    attempt: int
    status: str | None
    error_kind: str | None
    error: str | None
    cause: str | None
    seconds: float
    model_calls: int
    input_tokens: int
    output_tokens: int
    judge_calls: int
    judge_calls_cached: int
    scores: str
    more: str
    first: int
    events: int
    bytes: int
    changed: int
    crc: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the row is as it was written."""
        return self.crc == checksum(self[:-1])

    def sealed(self) -> "ExecutionRow":
        """Return the row with its checksum."""
        return self._replace(crc=checksum(self[:-1]))


class EventRow(NamedTuple):
    """The row of an event. `number` counts from 1 in each run. `data` is JSON text."""

    number: int
    execution: int | None
    name: str
    data: str
    is_whole: bool = True


_RUN = ", ".join(RunRow._fields)
_EXECUTION = ", ".join(ExecutionRow._fields)
_PUT_EXECUTION = (
    f"INSERT OR REPLACE INTO execution ({_EXECUTION}) VALUES ({', '.join('?' * len(ExecutionRow._fields))})"
)
Unread: TypeAlias = Literal["none", "steps", "decided"]
"""The events that are read without their data.

`steps`: the steps of cases, which no summary needs. `decided`: the steps, and for cases with a verdict everything
between start and end.
"""
_STEPS = "'AgentActed', 'CallsRecorded', 'OutputCaptured', 'SpansRecorded', 'UserSimulated'"
_WITH_EXECUTION = " LEFT JOIN execution ON execution.id = event.execution"
_UNDECIDED = "execution.status IS NULL OR coalesce(execution.error_kind, '') IN (SELECT value FROM json_each(?))"
_DATA = {
    "none": "event.data",
    "steps": f"CASE WHEN event.name IN ({_STEPS}) THEN NULL ELSE event.data END",
    "decided": f"CASE WHEN event.name IN ({_STEPS}, 'MetricScored', 'TurnFinished', 'TurnStarted')"
    f" AND NOT ({_UNDECIDED}) THEN NULL ELSE event.data END",
}


def execution_id(run: int, number: int) -> int:
    """Return the id of the execution with this number in a run."""
    return run << RUN_BITS | number


def add_run(connection: Connection, run_id: str) -> RunRow:
    """Add a run that this process writes. Raise FileExistsError if a run with this ID exists."""
    if find_run(connection, run_id) is not None:
        raise FileExistsError(17, "a run with this ID already exists", run_id)
    (newest,) = connection.execute("SELECT max(id) FROM run").fetchone()
    number = max(newest or 0, _newest_run(connection)) + 1
    row = RunRow(number, run_id, writer=this_process()).sealed()
    connection.execute(f"INSERT INTO run ({_RUN}) VALUES ({', '.join('?' * len(row))})", row)
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('newest_run', ?)", (str(number),))
    return row


def _newest_run(connection: Connection) -> int:
    found = connection.execute("SELECT value FROM meta WHERE name = 'newest_run'").fetchone()
    return int(found[0]) if found is not None and found[0].isdigit() else 0


def take_over(connection: Connection, run: int, now: float) -> bool:
    """Make this process the writer of a run. Return False if another living process writes it, or if it was deleted."""
    found = connection.execute(f"SELECT {_RUN} FROM run WHERE id = ? AND NOT deleted", (run,)).fetchone()
    if found is None or RunRow.read(found).is_being_written:
        return False
    connection.execute("UPDATE run SET writer = ?, seen = ? WHERE id = ?", (this_process(), now, run))
    return True


def release(connection: Connection, row: RunRow) -> None:
    """Record that no process writes a run any more."""
    connection.execute("UPDATE run SET writer = NULL, seen = NULL WHERE id = ? AND run_id = ?", row[:2])


def mark_alive(connection: Connection, run: int, now: float) -> None:
    """Record that this process still writes a run, for processes on other machines."""
    connection.execute("UPDATE run SET seen = ? WHERE id = ?", (now, run))


def save_run(connection: Connection, row: RunRow, now: float) -> None:
    """Write the row of a run that this process writes.

    Raise FileNotFoundError if the run was deleted or is lost. In a new database, another run may have its number.
    """
    row = row.sealed()
    names = ", ".join(f"{name} = ?" for name in RunRow._fields[2:13])
    changed = connection.execute(
        f"UPDATE run SET {names}, seen = ? WHERE id = ? AND run_id = ? AND NOT deleted",
        (*row[2:13], now, row.id, row.run_id),
    )
    if changed.rowcount != 1:
        raise FileNotFoundError(2, "the run was deleted from the database", row.run_id)


def save_facts(connection: Connection, run: int, facts: str) -> None:
    """Store the facts of a run (the part of its summary that is not in its row), as JSON text."""
    connection.execute("UPDATE run SET facts = ?, facts_crc = ? WHERE id = ?", (facts, checksum((facts,)), run))


def facts_of(connection: Connection, run: int) -> str | None:
    """Return the facts of a run, or None if they are damaged or there is no such run."""
    found = connection.execute("SELECT facts, facts_crc FROM run WHERE id = ?", (run,)).fetchone()
    return found[0] if found is not None and checksum(found[:1]) == found[1] else None


def add_events(connection: Connection, run: int, events: Iterable[EventRow]) -> None:
    """Append events to a run."""
    base = run << EVENT_BITS
    rows = [
        (base | each.number, run, each.execution, each.name, each.data, event_checksum(each.number, each.data))
        for each in events
    ]
    connection.executemany("INSERT INTO event (id, run, execution, name, data, crc) VALUES (?, ?, ?, ?, ?, ?)", rows)


def save_executions(connection: Connection, rows: Iterable[ExecutionRow]) -> None:
    """Add executions, or replace them."""
    connection.executemany(_PUT_EXECUTION, [row.sealed() for row in rows])


def drop_executions(connection: Connection, ids: Iterable[int]) -> None:
    """Delete executions that were dropped from their run before they started."""
    connection.executemany("DELETE FROM execution WHERE id = ?", [(each,) for each in ids])


def add_inputs(connection: Connection, run: int, first: int, texts: Sequence[str]) -> None:
    """Add the bundles of inputs of a run, from number `first` on."""
    rows = [
        (run << RUN_BITS | number, run, text, zlib.crc32(text.encode())) for number, text in enumerate(texts, first)
    ]
    connection.executemany("INSERT OR REPLACE INTO input (id, run, data, crc) VALUES (?, ?, ?, ?)", rows)


def replace_projection(
    connection: Connection,
    row: RunRow,
    facts: str,
    executions: Sequence[ExecutionRow],
    inputs: Sequence[str],
    now: float,
) -> None:
    """Replace everything that is built from the events of a run: its row, facts, executions and inputs."""
    low, high = _range(row.id)
    connection.execute("DELETE FROM execution WHERE id BETWEEN ? AND ?", (low, high))
    connection.execute("DELETE FROM input WHERE id BETWEEN ? AND ?", (low, high))
    save_executions(connection, executions)
    add_inputs(connection, row.id, 0, inputs)
    save_facts(connection, row.id, facts)
    save_run(connection, row, now)


def delete_runs(connection: Connection, runs: Iterable[int]) -> list[int]:
    """Delete these runs, except those that a process is writing, and return the numbers of the deleted ones.

    Their rows stay, marked as deleted, so that a lost run can be told from a deleted one.
    """
    gone = []
    for run in runs:
        found = connection.execute(f"SELECT {_RUN} FROM run WHERE id = ? AND NOT deleted", (run,)).fetchone()
        if found is None or RunRow.read(found).is_being_written:
            continue
        low, high = _range(run)
        connection.execute("DELETE FROM execution WHERE id BETWEEN ? AND ?", (low, high))
        connection.execute("DELETE FROM input WHERE id BETWEEN ? AND ?", (low, high))
        events = run << EVENT_BITS, ((run + 1) << EVENT_BITS) - 1
        connection.execute("DELETE FROM event WHERE id BETWEEN ? AND ?", events)
        connection.execute("DELETE FROM piece WHERE id BETWEEN ? AND ?", events)
        connection.execute("DELETE FROM model_answer WHERE run = ?", (run,))
        connection.execute(
            "UPDATE run SET deleted = 1, facts = '{}', listed = NULL, writer = NULL WHERE id = ?", (run,)
        )
        gone.append(run)
    return gone


def shrink(connection: Connection) -> None:
    """Give free pages back to the file system. Call it alone in a `Database.write`."""
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def all_runs(connection: Connection) -> list[RunRow]:
    """Return all runs, in the order in which they were added."""
    return [RunRow.read(row) for row in connection.execute(f"SELECT {_RUN} FROM run WHERE NOT deleted ORDER BY id")]


def run_ids(connection: Connection) -> list[tuple[int, str]]:
    """Return the numbers and IDs of all runs, without reading the rest."""
    rows = connection.execute("SELECT id, run_id FROM run WHERE NOT deleted ORDER BY id")
    return [(number, str(run_id)) for number, run_id in rows]


def runs_by_age(connection: Connection) -> list[tuple[int, str]]:
    """Return the numbers and IDs of all runs, the last one added first.

    Runs that are lost one after the other have one entry, with the ID "".
    """
    found: list[tuple[int, str]] = []
    after = _newest_run(connection) + 1
    # The facts tell a deleted run from one that a flipped bit hides.
    rows = connection.execute("SELECT id, run_id, deleted AND facts = '{}' FROM run ORDER BY id DESC")
    for number, run_id, is_deleted in rows:
        if number < after - 1:
            found.append((number + 1, ""))
        if not is_deleted:
            found.append((number, run_id if isinstance(run_id, str) else ""))
        after = number
    return [*found, (1, "")] if after > 1 else found


def find_run(connection: Connection, run_id: str) -> RunRow | None:
    """Return the run with an ID, or None."""
    try:
        found = connection.execute(
            f"SELECT {_RUN} FROM run WHERE run_id = ? AND NOT deleted", (plain(run_id),)
        ).fetchone()
    except OverflowError:
        return None
    return None if found is None else RunRow.read(found)


def executions_of(connection: Connection, run: int, changed_since: int = -1) -> Iterator[ExecutionRow]:
    """Yield the executions of a run with an event after number `changed_since`, in plan order, row by row."""
    rows = connection.execute(
        f"SELECT {_EXECUTION} FROM execution WHERE id BETWEEN ? AND ? AND changed > ? ORDER BY id",
        (*_range(run), changed_since),
    )
    return map(ExecutionRow._make, rows)


def executions_of_case(
    connection: Connection, evalset_file: str, eval_id: str, run: int | None = None
) -> list[ExecutionRow]:
    """Return the executions of a case in a run, or in all runs, oldest first."""
    rows = connection.execute(
        f"SELECT {_EXECUTION} FROM execution WHERE evalset_file = ? AND eval_id = ? AND (? IS NULL OR run = ?)"
        " ORDER BY id",
        (plain(evalset_file), plain(eval_id), run, run),
    )
    return list(map(ExecutionRow._make, rows))


def run_starts(connection: Connection, runs: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Map the numbers of these runs to their IDs and start times. Deleted runs are left out."""
    found = {}
    for run in runs:
        row = connection.execute("SELECT run_id, started FROM run WHERE id = ? AND NOT deleted", (run,)).fetchone()
        if row is not None:
            found[run] = str(row[0]), str(row[1])
    return found


def runs_with_cases(connection: Connection, cases: Iterable[tuple[str, str]]) -> set[int]:
    """Return the numbers of runs with one of these cases (evalset, ID). An empty ID is any case of the evalset."""
    found: set[int] = set()
    for file, eval_id in cases:
        rows = connection.execute(
            "SELECT DISTINCT run FROM execution WHERE evalset_file = ? AND (? = '' OR eval_id = ?)",
            (plain(file), plain(eval_id), plain(eval_id)),
        )
        found.update(row[0] for row in rows)
    return found


def inputs_of(connection: Connection, run: int, numbers: range | None = None) -> dict[int, str]:
    """Return the bundles of inputs of a run by number, or only those of some `numbers`. Damaged ones are left out."""
    low, high = _range(run)
    first, last = (low, high) if numbers is None else (low | numbers[0], low | numbers[-1])
    rows = connection.execute("SELECT id, data, crc FROM input WHERE id BETWEEN ? AND ?", (first, last))
    return {key - low: data for key, data, crc in rows if text_checksum(data) == crc}


def some_events(
    connection: Connection, run: int, after: int, unread: Unread, retried: Collection[str] = ()
) -> list[EventRow]:
    """Return the next batch of events after number `after`. Events that `unread` names come without their data.

    Cases that ended with an error of a kind in `retried` do not count as decided.

    Raises:
        DamagedError: The events are not in order, so that repeated calls would never reach the end.
    """
    low = run << EVENT_BITS
    rows = connection.execute(
        f"SELECT event.id, event.execution, event.name, {_DATA[unread]}, event.crc"
        f" FROM event{_WITH_EXECUTION if unread == 'decided' else ''}"
        f" WHERE event.id > ? AND event.id < ? ORDER BY event.id LIMIT {_AT_ONCE}",
        (*([json.dumps(sorted(retried))] if unread == "decided" else []), low | after, (run + 1) << EVENT_BITS),
    ).fetchall()
    if any(key >= later for key, later in pairwise((low | after, *(row[0] for row in rows)))):
        raise DamagedError(5, "the database is damaged (its events are not in order)")
    return [_event(*row) for row in rows]


def events_of_execution(connection: Connection, execution: int, first: int) -> list[EventRow]:
    """Return the events that concern an execution, from number `first` on."""
    base = (execution >> RUN_BITS) << EVENT_BITS
    rows = connection.execute(
        "SELECT id, execution, name, data, crc FROM event WHERE execution = ? AND id >= ? ORDER BY id",
        (execution, base | first),
    )
    return [_event(*row) for row in rows]


def _event(key: int, execution: int | None, name: str, data: str | None, crc: int) -> EventRow:
    number = key & ((1 << EVENT_BITS) - 1)
    if data is None:
        return EventRow(number, execution, str(name), "")
    if not isinstance(data, str) or not isinstance(name, str) or not isinstance(execution, int | None):
        return EventRow(number, None, "", "", is_whole=False)
    return EventRow(number, execution, name, data, event_checksum(number, data) == crc)


def _range(run: int) -> tuple[int, int]:
    return run << RUN_BITS, ((run + 1) << RUN_BITS) - 1


def plain(text: str) -> str:
    """Return a text that SQLite can store, with escapes for characters that are not valid Unicode."""
    return text.encode("utf-8", "backslashreplace").decode()
