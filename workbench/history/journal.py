"""A run on disk: one line an event, appended as it happens.

`STATE/runs/RUN_ID/events.jsonl`. Each line is the JSON object `{"crc32": "<8 hex digits>", "data": …}`, the checksum
taken over the bytes of `data` as they stand there; `data` of the first line is `{"schema": SCHEMA, "run_id": …}`, of
every other one an event in its JSON form. A process that dies leaves at worst half a last line.
"""

import contextlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.events import (
    AgentActed,
    CaseRef,
    CaseStarted,
    Event,
    JudgeWaits,
    Noticed,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
    from_json,
)
from workbench.history.state_dir import make_state_dir, runs_dir

SCHEMA = "agent-workbench/journal/1"
FILE_NAME = "events.jsonl"
_HEAD = b'{"crc32": "'
_MIDDLE = b'", "data": '
_TAIL = b"}"
_CHECKSUM = 8


class Journal:
    """The events of one run, kept as they happen. Without a `path` nothing can be written, `notice` says why, and the
    run lives in memory."""

    def __init__(self, path: Path | None, descriptor: int | None, notice: Noticed | None) -> None:
        self.path = path
        self.notice = notice
        self._descriptor = descriptor
        self._size = 0

    @classmethod
    def open(cls, state: Path, run_id: str) -> "Journal":
        """A new journal in the state folder `state`, which is made if it is missing; readable by its owner only."""
        folder = runs_dir(state) / run_id
        path = folder / FILE_NAME
        try:
            make_state_dir(state)
            runs_dir(state).mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            journal = cls(path, descriptor, None)
            journal.write([json.dumps({"schema": SCHEMA, "run_id": run_id})], sync=True)
            _sync_folder(folder)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return cls(
                None,
                None,
                Noticed(
                    "warning",
                    f"this run is kept in memory only: {folder} cannot be written ({reason})",
                    "--state-dir names another folder",
                ),
            )
        return journal

    def write(self, lines: Iterable[str], *, sync: bool) -> None:
        """Appends events as ASCII JSON, and with `sync` waits until the disk has them.

        Raises:
            OSError: the disk is full or gone; no half line stays behind where that can be helped.
        """
        if self._descriptor is None:
            return
        data = b"".join(map(_line, lines))
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            if sync:
                os.fsync(self._descriptor)
        except OSError:
            # Already failing: a cut line is found by its checksum anyway.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_journal(path: Path) -> Iterator[Event]:
    """The events of a stored run, in order.

    A line that is damaged, cut or not understood is left out and named by a `Noticed`; if that is the one that
    announced the cases, they are announced as far as the rest of the file names them. A run that was killed gets no
    `RunFinished`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no journal, or one of a later version.
    """
    turns: Counter[CaseRef] = Counter()
    for event in _announced(path):
        if isinstance(event, CaseStarted):
            turns[event.case] = 0
        elif isinstance(event, TurnStarted | AgentActed | TurnFinished):
            # Where the line that began a turn is lost, its later ones still have a turn to belong to.
            lost = range(turns[event.case], event.turn + (not isinstance(event, TurnStarted)))
            yield from (TurnStarted(event.case, turn, {}) for turn in lost)
            turns[event.case] = max(turns[event.case], event.turn + 1)
        yield event


def _announced(path: Path) -> Iterator[Event]:
    """The events that can be read, a `RunStarted` first."""
    with path.open("rb") as file:
        _check_header(path, file.readline())
        events = (_read_line(path, number, line) for number, line in enumerate(file, 2))
        early: list[Event] = []
        for event in events:
            if isinstance(event, Noticed):
                early.append(event)  # The front ends forget notices when a run is announced.
                continue
            yield from ([event, *early] if isinstance(event, RunStarted) else [_announcement(path), *early, event])
            early = []
            break
        yield from early
        yield from events


def _read_line(path: Path, number: int, line: bytes) -> Event:
    try:
        return from_json(_data(line))
    except (ValueError, RecursionError) as error:
        return Noticed("warning", f"{path}:{number}: this line of the journal is left out: {error}")


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = _data(line)
    except ValueError as error:
        if line.startswith(_HEAD):
            return  # A damaged first line says nothing that the rest does not.
        raise ValueError(f"{path} is no journal of agent-workbench: {error}") from None
    if header.get("schema") != SCHEMA:
        raise ValueError(f"{path}: written as {header.get('schema')!r}, this version reads {SCHEMA!r}")


def _announcement(path: Path) -> RunStarted:
    """The announcement of a run whose own is lost."""
    refs: dict[CaseRef, None] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            event = _read_line(path, number, line)
            if not isinstance(event, RunStarted | RunFinished | Noticed | JudgeWaits):
                refs[event.case] = None
    cases = tuple(PlannedCase(ref, None, "not known: the journal is damaged") for ref in refs)
    return RunStarted(path.parent.name, "", "", cases)


def _line(data: str) -> bytes:
    encoded = data.encode("ascii")
    return b"".join((_HEAD, b"%08x" % zlib.crc32(encoded), _MIDDLE, encoded, _TAIL, b"\n"))


def _data(line: bytes) -> dict[str, Any]:
    """What a line holds. Raises ValueError if it is not what was written."""
    if not line.endswith(b"\n"):
        raise ValueError("it is cut off")
    body = line[:-1]
    start = len(_HEAD) + _CHECKSUM + len(_MIDDLE)
    if not (body.startswith(_HEAD) and body[start - len(_MIDDLE) : start] == _MIDDLE and body.endswith(_TAIL)):
        raise ValueError("it has not the form of a line")
    encoded = body[start : -len(_TAIL)]
    if b"%08x" % zlib.crc32(encoded) != body[len(_HEAD) : len(_HEAD) + _CHECKSUM]:
        raise ValueError("its checksum differs")
    data = json.loads(encoded)
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    return data


def _sync_folder(folder: Path) -> None:
    """Makes the file's name as lasting as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
