"""A run on disk: one line an event, appended as it happens.

`STATE/runs/RUN_ID/events.jsonl`. Each line is the JSON object `{"crc32": "<8 hex digits>", "data": …}`, the checksum
taken over the bytes of `data` as they stand there; `data` of the first line is `{"schema": SCHEMA, "run_id": …}`, of
every other one an event in its JSON form with the number of its line in front, `{"line": 2, "event": …}`. A process
that dies leaves at worst half a last line.
"""

import contextlib
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.agents.owners import save_last_owners, save_owner
from workbench.dependencies.digests import Digests, project_digests
from workbench.engine.plan.owner_notes import OwnersToKeep
from workbench.engine.run.event_lines import Line
from workbench.event_json import from_json
from workbench.events import CaseRef, Event, Noticed, PlannedCase, RunStarted
from workbench.history.answers import FILE_NAME as ANSWERS_FILE
from workbench.history.answers import forget_answers
from workbench.history.holding import take_hold
from workbench.history.journal_lines import JournalLines, event_line, header, read_lines
from workbench.history.lost_turns import with_turns_begun
from workbench.history.objects import keep_objects
from workbench.history.state_dir import JOURNAL_FILE, make_state_dir, runs_dir
from workbench.history.summary import Gathering
from workbench.history.summary_files import JournalSize, add_to_index, index_entry, write_summary
from workbench.trace.pieces import PieceWriter

FILE_NAME = JOURNAL_FILE
OTHERS = CaseRef("", "", "", "other cases, which cannot be read")
"""Stands for them in a run of which the announcement is lost. It has no verdict."""


class Journal:
    """The events of one run, kept as they happen. Without a `path` nothing can be written, `notice` says why, and the
    run lives in memory."""

    def __init__(self, path: Path | None, descriptor: int | None, notice: Noticed | None) -> None:
        self.path = path
        self.notice = notice
        self._descriptor = descriptor
        self._size = 0
        self._crc = 0
        """The checksum of all that is in it, which tells whether a summary was made of this very journal."""
        self._number: int | None = 2
        """That of the line to come; None in a journal of which the lines have none."""
        self._head = 0
        """Bytes of the line that was written when the journal was made."""
        self._gathering = Gathering()
        self._name_synced = False
        self._summed_up = False
        self._failed = False
        self._places: dict[tuple[Any, ...], Sequence[int]] = {}
        """Where the cases are, of a run that is over."""
        self._pieces = PieceWriter(path.parent) if path is not None else None

    @classmethod
    def reopen(cls, path: Path) -> "Journal | None":
        """The journal of a run that was interrupted, to be gone on with; None if somebody has it open to write to, or a
        later version wrote it. What was cut off at its end is dropped: it says nothing.

        Raises:
            OSError: it cannot be written.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        if not take_hold(descriptor):
            os.close(descriptor)
            return None
        journal = cls(path, descriptor, None)
        try:
            journal._read_what_is_there(path)
            os.ftruncate(descriptor, journal._size)
            # What the list knows of it will not hold any more.
            entry = index_entry(path.parent.name, journal._gathering.summary)
            add_to_index(path.parent.parent, {**entry, "seconds": None})
        except OSError:
            journal.release()
            raise
        except ValueError:
            journal.release()
            return None
        return journal

    def _read_what_is_there(self, path: Path) -> None:
        """Whole lines count, whatever is in them. Raises OSError; ValueError: it is of a later version."""
        lines = JournalLines(path)
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    data, _ = lines.take(line)
                    if data is not None:
                        self._gathering.take(data, self._size, len(line))
                    self._size += len(line)
                    self._crc = zlib.crc32(line, self._crc)
        self._number = lines.next_number

    def release(self) -> None:
        """Lets go of it as it is."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

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
            take_hold(descriptor)
            journal = cls(path, descriptor, None)
            # The disk need not have it before it has a case: then it gets the folder as well.
            journal._append(header(run_id))
            journal._head = journal._size
        except OSError as error:
            _leave(path)
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

    def write(self, lines: Iterable[Line], *, sync: bool) -> None:
        """Appends events, and with `sync` waits until the disk has them.

        Raises:
            OSError: the disk is full or gone; no half line stays behind where that can be helped.
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
            self._gathering.take(line.data, offset, len(data))
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
            # Already failing: a cut line is found by its checksum anyway.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            error.filename = str(self.path)
            raise
        self._size += len(data)
        self._crc = zlib.crc32(data, self._crc)

    def _sync_name(self) -> None:
        """Makes the file's name as lasting as its content; once."""
        if self.path is not None and not self._name_synced:
            _sync_folder(self.path.parent)
            self._name_synced = True

    def digests(self) -> Digests:
        """Return what makes the digests of the project."""
        return project_digests(Path(os.devnull) if self.path is None else self.path.parents[2])

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Keeps contents of files by their digests in the state folder; none where nothing can be written."""
        if self.path is not None:
            keep_objects(self.path.parents[2], contents)

    def keep_owners(self, owners: OwnersToKeep, root: Path) -> None:
        """Keep with which agents evalsets run; nothing where nothing can be written.

        Raises:
            OwnersFileError: that cannot be read or written.
        """
        if self.path is not None:
            state = self.path.parents[2]
            for evalset, folder in owners.choices.items():
                save_owner(state, evalset, folder, root)
            save_last_owners(state, owners.last)

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, list[int]]] | None:
        """Keeps what models and tools were asked and answered beside the journal: the run's id, and where. None where
        nothing can be written.

        Raises:
            OSError: the disk is full or gone.
        """
        if self._pieces is None or self.path is None:
            return None
        return self.path.parent.name, self._pieces.keep(pieces)

    def places(self, ref: CaseRef) -> Sequence[int]:
        """Return where the lines of a case are, as `at` of a row of the summary says it. From any thread."""
        if self._failed:
            return ()  # What is shown and what is kept may differ from here on.
        key = (ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat)
        row = self._gathering.summary.rows.get(key)
        return self._places.get(key, ()) if row is None else row["at"]

    @property
    def answers(self) -> Path | None:
        """Where what models answer is kept until the run has come to its end; None where nothing can be written."""
        return None if self.path is None else self.path.parent / ANSWERS_FILE

    def sum_up(self) -> None:
        """Writes the summary of what came; nothing comes after that."""
        if self._descriptor is not None and self.path is not None and not self._summed_up:
            self._summed_up = True
            if self._gathering.summary.run_id:
                file = os.fstat(self._descriptor)
                # Somebody else has written if the length is another one; then nothing vouches for what is there.
                modified = file.st_mtime_ns if file.st_size == self._size else 0
                size = JournalSize(self._size, (self._number or 1) - 1, self._crc, modified)
                write_summary(self.path.parent, self._gathering.summary, size)

    def close(self) -> None:
        """No more will come."""
        if self._descriptor is not None:
            self.sum_up()
            os.close(self._descriptor)
            self._descriptor = None
            if self._pieces is not None:
                self._pieces.close()
            if self.path is not None and self._gathering.summary.is_done:
                forget_answers(self.path.parent)
            if self.path is not None and self._size == self._head:
                _leave(self.path)
            # All that is needed after the end; the rest of a large run would stay in memory with it.
            self._places = {key: row["at"] for key, row in self._gathering.summary.rows.items()}
            self._gathering = Gathering()


def read_journal(path: Path) -> Iterator[Event]:
    """The events of a stored run, in order.

    A line that is damaged, cut or not understood is left out and named by a `Noticed`; if that is the one that
    announced the cases, they are announced as far as the rest of the file names them. A run that was killed gets no
    `RunFinished`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no journal, or one of a later version.
    """
    return with_turns_begun(_announced(path))


def _announced(path: Path) -> Iterator[Event]:
    """The events that can be read, a `RunStarted` first."""
    events = _events(path)
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


def _events(path: Path) -> Iterator[Event]:
    """What can be read, in order, and a `Noticed` for each thing that cannot."""
    for line in read_lines(path):
        if line.said:
            yield Noticed("warning", line.said)
        if line.data is not None:
            try:
                yield from_json(line.data)
            except (ValueError, RecursionError) as error:
                yield Noticed("warning", f"{path}:{line.place}: this line of the journal is left out: {error}")


def _announcement(path: Path) -> RunStarted:
    """The announcement of a run whose own is lost."""
    refs: dict[CaseRef, None] = {}
    for event in _events(path):
        if (ref := getattr(event, "case", None)) is not None:
            refs[ref] = None
    # Nobody knows which others there were: that all of these passed says nothing of the run.
    cases = tuple(PlannedCase(ref, None, "not known: the journal is damaged") for ref in (*refs, OTHERS))
    return RunStarted(path.parent.name, "", "", cases)


def _leave(path: Path) -> None:
    """What could not be begun is no run."""
    for remove in (path.unlink, path.parent.rmdir):
        with contextlib.suppress(OSError):
            remove()


def _sync_folder(folder: Path) -> None:
    """Makes the file's name as lasting as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    """The content and its length; when the file was changed need not last."""
    getattr(os, "fdatasync", os.fsync)(descriptor)
