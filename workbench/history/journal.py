"""A run's journal on disk: one line per event, written as it happens.

`STATE/runs/RUN_ID/events.jsonl`. Each line is the JSON object `{"crc32": "<8 hex digits>", "data": …}`. The checksum
covers the bytes of `data` as written. In the first line, `data` is `{"schema": SCHEMA, "run_id": …}`. In every other
line it is the JSON form of an event, with the line's number in front: `{"line": 2, "event": …}`. A process that dies
leaves at most an incomplete last line.
"""

import contextlib
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.agents.owners import save_last_owners, save_owner
from workbench.atomic import sync_folder
from workbench.dependencies.digests import Digests, project_digests
from workbench.engine.plan.owner_notes import OwnersToKeep
from workbench.engine.run.event_lines import Line
from workbench.event_json import from_json
from workbench.events import CaseRef, Event, Noticed, PlannedCase, RunStarted
from workbench.history.answers import FILE_NAME as ANSWERS_FILE
from workbench.history.answers import forget_answers
from workbench.history.journal_lines import JournalLines, event_line, header, read_lines
from workbench.history.journal_lock import lock_journal
from workbench.history.lost_turns import add_lost_turn_starts
from workbench.history.objects import keep_objects
from workbench.history.state_dir import JOURNAL_FILE, runs_dir
from workbench.history.summary import SummaryBuilder
from workbench.history.summary_files import JournalSize, add_to_index, index_entry, write_summary
from workbench.state_folder import (
    NO_STATE,
    delete_stored,
    is_forgotten,
    make_state_dir,
    make_stored_folder,
    open_stored,
    reading,
)
from workbench.trace.pieces import PieceWriter

FILE_NAME = JOURNAL_FILE
_FORGOTTEN = Noticed(
    "warning",
    "it cannot be noted that this state folder is yours, so later commands will not use it by themselves",
    "Name it with --state-dir, or make your own folder for state writable",
)
UNREADABLE_CASES = CaseRef("", "", "", "other cases, which cannot be read")
"""Placeholder without a verdict for the unknown cases of a run whose announcement is lost."""


class Journal:
    """The journal of one run, written as events happen.

    If it cannot be written, `path` is None, `notice` says why, and the run is kept in memory.
    """

    def __init__(self, path: Path | None, descriptor: int | None, notice: Noticed | None) -> None:
        self.path = path
        self.notice = notice
        self._descriptor = descriptor
        self._size = 0
        self._crc = 0
        """Checksum of the whole file, which tells whether a summary belongs to it."""
        self._number: int | None = 2
        """Number of the next line, or None if unnumbered."""
        self._head = 0
        """Bytes of the header line."""
        self._builder = SummaryBuilder()
        self._name_synced = False
        self._summed_up = False
        self._failed = False
        self._places: dict[tuple[Any, ...], Sequence[int]] = {}
        """Places of the cases' lines, set when the run has ended."""
        self._pieces = PieceWriter(path.parent) if path is not None else None

    @classmethod
    def reopen(cls, path: Path) -> "Journal | None":
        """Open the journal of an interrupted run to append to it, dropping an incomplete last line.

        Return None if another process has it open for writing, or a later version wrote it.

        Raises:
            OSError: the file cannot be written.
        """
        descriptor = open_stored(path, os.O_RDWR | os.O_APPEND)
        if not lock_journal(descriptor):
            os.close(descriptor)
            return None
        journal = cls(path, descriptor, None)
        try:
            journal._read_existing(path)
            os.ftruncate(descriptor, journal._size)
            # The index entry becomes outdated: mark the run as not ended.
            entry = index_entry(path.parent.name, journal._builder.summary)
            add_to_index(path.parent.parent, {**entry, "seconds": None})
        except OSError:
            journal.release()
            raise
        except ValueError:
            journal.release()
            return None
        return journal

    def _read_existing(self, path: Path) -> None:
        """Read all complete lines, damaged or not. Raises OSError, or ValueError if a later version wrote the file."""
        lines = JournalLines(path)
        with reading(path) as file:
            for line in file:
                if line.endswith(b"\n"):
                    data, _ = lines.take(line)
                    if data is not None:
                        self._builder.take(data, self._size, len(line))
                    self._size += len(line)
                    self._crc = zlib.crc32(line, self._crc)
        self._number = lines.next_number

    def release(self) -> None:
        """Close the file without writing a summary."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @classmethod
    def open(cls, state: Path, run_id: str) -> "Journal":
        """Create a journal, readable by its owner only. The state folder is created if it is missing."""
        folder = runs_dir(state) / run_id
        path = folder / FILE_NAME
        try:
            make_state_dir(state)
            notice = _FORGOTTEN if is_forgotten(state) else None
            make_stored_folder(folder, exist_ok=False)
            descriptor = open_stored(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            lock_journal(descriptor)
            journal = cls(path, descriptor, notice)
            # Not synced yet: the first synced event also syncs the folder.
            journal._append(header(run_id))
            journal._head = journal._size
        except OSError as error:
            _remove(path)
            reason = error.strerror or type(error).__name__
            return cls(
                None,
                None,
                Noticed(
                    "warning",
                    f"this run is kept in memory only: {folder} cannot be written ({reason})",
                    "--state-dir selects another folder",
                ),
            )
        return journal

    def write(self, lines: Iterable[Line], *, sync: bool) -> None:
        """Append events, and with `sync` wait until they are on disk.

        Raises:
            OSError: the disk is full or gone. An incomplete line is removed if possible.
        """
        try:
            self._write(tuple(lines), sync=sync)
        except OSError:
            self._failed = True
            raise

    def _write(self, lines: Sequence[Line], *, sync: bool) -> None:
        if self._descriptor is None:
            return
        number = self._number
        numbers = itertools.repeat(None) if number is None else itertools.count(number)
        encoded = [event_line(line.text, each) for line, each in zip(lines, numbers, strict=False)]
        offset = self._size
        self._append(b"".join(encoded))
        self._number = None if number is None else number + len(lines)
        for line, data in zip(lines, encoded, strict=True):
            self._builder.take(line.data, offset, len(data))
            offset += len(data)
        if sync:
            _sync(self._descriptor)
            self._sync_name()

    def _append(self, data: bytes) -> None:
        assert self._descriptor is not None
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            # If this fails too, the checksum reveals the incomplete line.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            error.filename = str(self.path)
            raise
        self._size += len(data)
        self._crc = zlib.crc32(data, self._crc)

    def _sync_name(self) -> None:
        """Sync the folder once, so that the file's name survives a power failure too."""
        if self.path is not None and not self._name_synced:
            sync_folder(self.path.parent)
            self._name_synced = True

    def digests(self) -> Digests:
        """Return the function object that computes digests for this project."""
        return project_digests(NO_STATE if self.path is None else self.path.parents[2])

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Store contents of files by digest in the state folder. Does nothing if the journal cannot be written."""
        if self.path is not None:
            keep_objects(self.path.parents[2], contents)

    def keep_owners(self, owners: OwnersToKeep, root: Path) -> None:
        """Store which agents the evalsets run with. Does nothing if the journal cannot be written.

        Raises:
            OwnersFileError: the owners' file cannot be read or written.
        """
        if self.path is not None:
            state = self.path.parents[2]
            for evalset, folder in owners.choices.items():
                save_owner(state, evalset, folder, root)
            save_last_owners(state, owners.last)

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, list[int]]] | None:
        """Store model and tool requests and answers beside the journal. Return the run's ID and their places.

        Return None if the journal cannot be written.

        Raises:
            OSError: the disk is full or gone.
        """
        if self._pieces is None or self.path is None:
            return None
        return self.path.parent.name, self._pieces.keep(pieces)

    def places(self, ref: CaseRef) -> Sequence[int]:
        """Return the places of a case's lines, as in `at` of a summary row. Safe to call from any thread."""
        if self._failed:
            return ()  # From here on, the file may differ from what is shown.
        key = (ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat)
        row = self._builder.summary.rows.get(key)
        return self._places.get(key, ()) if row is None else row["at"]

    @property
    def answers(self) -> Path | None:
        """Path of the model answers that are stored until the run is complete, or None if nothing can be written."""
        return None if self.path is None else self.path.parent / ANSWERS_FILE

    def sum_up(self) -> None:
        """Write the summary. No events may follow."""
        if self._descriptor is not None and self.path is not None and not self._summed_up:
            self._summed_up = True
            if self._builder.summary.run_id:
                file = os.fstat(self._descriptor)
                # With another size, another process has written to it: then do not vouch for the content.
                modified = file.st_mtime_ns if file.st_size == self._size else 0
                size = JournalSize(self._size, (self._number or 1) - 1, self._crc, modified)
                write_summary(self.path.parent, self._builder.summary, size)

    def close(self) -> None:
        """Write the summary and close the file."""
        if self._descriptor is not None:
            self.sum_up()
            os.close(self._descriptor)
            self._descriptor = None
            if self._pieces is not None:
                self._pieces.close()
            if self.path is not None and self._builder.summary.is_done:
                forget_answers(self.path.parent)
            if self.path is not None and self._size == self._head:
                _remove(self.path)
            # Only the places are needed after the end. Free the rest: a large run takes much memory.
            self._places = {key: row["at"] for key, row in self._builder.summary.rows.items()}
            self._builder = SummaryBuilder()


def read_journal(path: Path) -> Iterator[Event]:
    """Yield the events of a stored run, in order.

    Lines that are damaged, incomplete or of unknown form are skipped, and a `Noticed` names each. If the announcement
    of the cases is lost, they are announced as far as the rest of the file names them. A run that was killed has no
    `RunFinished`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a journal, or a later version wrote it.
    """
    return add_lost_turn_starts(_announced(path))


def is_reading_problem(event: Event, file: Path) -> bool:
    """Return whether an event is the reader's notice about a part of `file`, and not a notice recorded in the run."""
    return isinstance(event, Noticed) and event.message.startswith(f"{file}:")


def _announced(path: Path) -> Iterator[Event]:
    """Yield the readable events, starting with a `RunStarted`."""
    events = _events(path)
    notices: list[Event] = []
    for event in events:
        if isinstance(event, Noticed):
            notices.append(event)  # Held back, because front ends clear notices when a run is announced.
            continue
        yield from ([event, *notices] if isinstance(event, RunStarted) else [_announcement(path), *notices, event])
        notices = []
        break
    yield from notices
    yield from events


def _events(path: Path) -> Iterator[Event]:
    """Yield the readable events in order, and a `Noticed` for each problem."""
    for line in read_lines(path):
        if line.problem:
            yield Noticed("warning", line.problem)
        if line.data is not None:
            try:
                yield from_json(line.data)
            except (ValueError, RecursionError) as error:
                yield Noticed("warning", f"{path}:{line.place}: skipped this journal line: {error}")


def _announcement(path: Path) -> RunStarted:
    """Return a replacement for a lost announcement."""
    refs: dict[CaseRef, None] = {}
    for event in _events(path):
        if (ref := getattr(event, "case", None)) is not None:
            refs[ref] = None
    # There may have been others. The placeholder keeps the run from counting as passed.
    cases = tuple(PlannedCase(ref, None, "not known: the journal is damaged") for ref in (*refs, UNREADABLE_CASES))
    return RunStarted(path.parent.name, "", "", cases)


def _remove(path: Path) -> None:
    """Remove a journal without events and its folder."""
    with contextlib.suppress(OSError):
        delete_stored(path)
        path.parent.rmdir()


def _sync(descriptor: int) -> None:
    """Sync the content and its length, but not the change time."""
    getattr(os, "fdatasync", os.fsync)(descriptor)
