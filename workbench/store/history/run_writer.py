"""The writer of one run. Each batch of events, with the rows built from them, is one transaction."""

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workbench.events.event_json import Line
from workbench.events.events import CaseRef, Noticed, RepeatsDropped, RunFinished, RunResumed, RunStarted
from workbench.files.folders import is_forgotten, make_state_dir, untrusted_root, untrusted_text
from workbench.store.database.database import Connection, database, run_path, state_of
from workbench.store.database.runs import (
    EventRow,
    RunRow,
    add_events,
    add_inputs,
    add_run,
    delete_runs,
    drop_executions,
    find_run,
    mark_alive,
    plain,
    release,
    save_executions,
    save_facts,
    save_run,
    take_over,
)
from workbench.store.database.values import add_contents, add_model_answers, add_pieces, drop_model_answers, next_piece
from workbench.store.digests import Digests, project_digests
from workbench.store.history.execution_rows import Place, RunRows, facts_text
from workbench.store.history.summary import SummaryBuilder, listed_run
from workbench.store.owners import OwnersToKeep, save_last_owners, save_owner
from workbench.text.json_values import short_json

_OF_RUN = (RunStarted, RunFinished, RunResumed, RepeatsDropped)
"""Events that change the facts of a run."""
_HEARTBEAT = 20.0
"""Seconds between two heartbeats of a run that is being written."""
_FORGOTTEN = Noticed(
    "warning",
    "cannot record that this state folder is yours, so later commands will ignore it",
    "Name it with --state-dir in these commands, or make your own state folder writable",
)


class RunWriter:
    """The writer of one run. `path` names the run. `notice` warns the user about the state folder, or is None.

    `row` is the run in the database, or None if it cannot be written, for example because the disk is full. Without a
    row, and after a failure, nothing more is stored, and front ends keep the whole run in memory.
    """

    def __init__(self, path: Path, row: RunRow | None, notice: Noticed | None) -> None:
        self.path = path
        self.notice = notice
        self._row = row
        self._database = database(state_of(path))
        self._rows = RunRows(0 if row is None else row.id, path)
        self._stored_inputs = 0
        self._pieces: list[str] = []
        """Pieces that the next batch stores."""
        self._next_piece = 0
        self._ended = threading.Event()
        self._failure: OSError | None = None
        """The first write error. Nothing is stored after it."""

    @classmethod
    def open(cls, state: Path, run_id: str) -> "RunWriter":
        """Begin a run. The state folder and its database are created if they are missing.

        If they cannot be written, the run is kept in memory, and `notice` says so.
        """
        stored = database(state)

        def add() -> RunRow:
            if stored.is_lasting:
                make_state_dir(state)
            return stored.write(lambda connection: add_run(connection, run_id))

        row, failure = None, None
        try:
            row = add()
        except OSError as error:
            failure = error
            with contextlib.suppress(OSError):
                if stored.switch_to_memory(error):
                    row, failure = add(), None
        notice = _FORGOTTEN if is_forgotten(state) else None
        if failure is not None or not stored.is_lasting:
            why = stored.why_in_memory if failure is None else failure.strerror or type(failure).__name__
            notice = _only_in_memory(state, stored.path, why)
        writer = cls(run_path(state, run_id), row, notice)
        writer._failure = failure
        return writer if failure is not None else writer._begun()

    @classmethod
    def reopen(cls, path: Path) -> "RunWriter | None":
        """Continue an interrupted run. Return None if another process writes it, or if it was deleted.

        Raises:
            OSError: The run cannot be read or written.
        """

        def take(connection: Connection) -> RunRow | None:
            row = find_run(connection, path.name)
            return row if row is not None and take_over(connection, row.id, time.time()) else None

        row = database(state_of(path)).write(take)
        if row is None:
            return None
        writer = cls(path, row, None)
        try:
            writer._restore(row)
        except BaseException:
            writer.release()
            raise
        return writer._begun()

    def _begun(self) -> "RunWriter":
        threading.Thread(target=self._send_heartbeats, name="run-heartbeat", daemon=True).start()
        return self

    def _restore(self, row: RunRow) -> None:
        """Read the stored part of an interrupted run, so that its rows can be changed. Writes nothing."""
        _, last = self._rows.replay()
        self._stored_inputs = len(self._rows.builder.texts)
        self._row = row._replace(events=max(last, row.events))
        self._next_piece = self._database.read(lambda connection: next_piece(connection, row.id)) or 0

    def _send_heartbeats(self) -> None:
        """Record regularly that this process is alive, for processes on other machines."""
        number = 0 if self._row is None else self._row.id
        while not self._ended.wait(_HEARTBEAT):
            with contextlib.suppress(OSError):
                self._database.write(lambda connection: mark_alive(connection, number, time.time()))

    def write(self, lines: Iterable[Line], *, sync: bool) -> None:
        """Store events. With `sync`, wait until these and all earlier ones are on disk.

        Raises:
            OSError: The disk is full, or the database is gone. Neither these events nor later ones are stored.
        """
        if self._row is None:
            return
        try:
            if self._failure is not None:
                raise self._failure
            self._write(tuple(lines), sync=sync)
        except OSError as error:
            self._failure, error.filename = error, str(self._database.path)
            raise

    def _write(self, lines: Sequence[Line], *, sync: bool) -> None:
        row = self._row
        assert row is not None
        if not lines:
            self._database.write(lambda connection: mark_alive(connection, row.id, time.time()), sync=sync)
            return
        events: list[EventRow] = []
        touched: dict[int, Place] = {}
        dropped: list[int] = []
        places = self._rows.places
        for number, line in enumerate(lines, row.events + 1):
            event = line.event
            place = self._rows.take(event, number, len(line.text))
            if isinstance(event, RunStarted):
                touched |= {each.id: each for each in places.values()}
            elif isinstance(event, RepeatsDropped):
                dropped += [places[each].id for each in event.cases if each in places]
            if place is not None:
                touched[place.id] = place
            execution = None if place is None else place.id
            events.append(EventRow(number, execution, type(event).__name__, line.text))
        facts = any(isinstance(line.event, _OF_RUN) for line in lines)
        added = sum(len(event.data) for event in events) + sum(map(len, self._pieces))
        self._row = row._replace(events=row.events + len(lines), bytes=row.bytes + added)
        self._database.write(
            lambda connection: self._save(connection, events, touched.values(), dropped, facts=facts), sync=sync
        )
        self._stored_inputs = len(self._rows.builder.texts)
        self._pieces.clear()

    def _save(
        self,
        connection: Connection,
        events: Sequence[EventRow],
        touched: Iterable[Place],
        dropped: Sequence[int],
        *,
        facts: bool,
    ) -> None:
        row, summary, texts = self._row, self._rows.builder.summary, self._rows.builder.texts
        assert row is not None
        add_pieces(connection, row.id, self._next_piece - len(self._pieces), self._pieces)
        add_events(connection, row.id, events)
        save_executions(connection, self._rows.rows(touched))
        drop_executions(connection, dropped)
        add_inputs(connection, row.id, self._stored_inputs, texts[self._stored_inputs :])
        if facts:
            save_facts(connection, row.id, facts_text(summary))
            commit, dirty = summary.git.get("commit"), summary.git.get("dirty")
            row = row._replace(
                started=plain(summary.started),
                scored_from=plain(summary.scored_from),
                seconds=summary.seconds,
                interrupted=int(summary.interrupted),
                git_commit=commit if isinstance(commit, str) and commit.isascii() else None,
                dirty=int(dirty) if isinstance(dirty, bool) else None,
                listed=None if summary.seconds is None else short_json(listed_run(summary, row.run_id).as_json()),
            )
        self._row = row._replace(executions=len(summary.executions))
        save_run(connection, self._row, time.time())

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Store contents of files by digest. Write errors are ignored: comparisons then lack the changed lines."""
        if self._failure is None:
            with contextlib.suppress(OSError):
                self._database.write(lambda connection: add_contents(connection, contents, time.time()))

    def keep_owners(self, owners: OwnersToKeep, root: Path) -> None:
        """Store which agents the evalsets run with. Does nothing if the run cannot be written.

        Raises:
            OwnersFileError: The owners cannot be read or written.
        """
        if self._failure is None:
            state = state_of(self.path)
            for evalset, folder in owners.choices.items():
                save_owner(state, evalset, folder, root)
            save_last_owners(state, owners.last)

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, int]] | None:
        """Store requests and answers with the next batch. Return the run's ID and their numbers, or None on failure."""
        if self._row is None or self._failure is not None:
            return None
        numbers = {name: number for number, name in enumerate(pieces, self._next_piece)}
        self._pieces += pieces.values()
        self._next_piece += len(pieces)
        return self._row.run_id, numbers

    def keep_answers(self, answers: Iterable[str]) -> None:
        """Store answers of models, which a resumed run reuses. Write errors are ignored. Call it in a thread."""
        row, texts = self._row, list(answers)
        if row is not None and texts and self._failure is None:
            with contextlib.suppress(OSError):
                self._database.write(lambda connection: add_model_answers(connection, row.id, texts))

    def digests(self) -> Digests:
        """Return the digests of this project."""
        return project_digests(state_of(self.path))

    def size(self, ref: CaseRef) -> int:
        """Return the bytes of a case's events, or 0 if they are not stored. Safe to call from any thread."""
        if self._failure is not None:
            return 0  # From here on, what is stored is less than what is shown.
        place = self._rows.places.get(ref)
        return 0 if place is None else place.bytes

    def release(self) -> None:
        """Stop writing without ending the run, so another process can continue it. Write errors are ignored."""
        self._ended.set()
        row, self._row = self._row, None
        if row is not None:
            with contextlib.suppress(OSError):
                self._database.write(lambda connection: release(connection, row))

    def close(self) -> None:
        """Stop writing. A run without events is deleted, and so are answers of models if nothing is left to resume."""
        self._ended.set()
        row, self._row = self._row, None
        if row is None:
            return
        is_done = self._rows.builder.summary.is_done and self._failure is None

        def end(connection: Connection) -> None:
            release(connection, row)
            if is_done:
                drop_model_answers(connection, row.id)
            if not row.events:
                delete_runs(connection, [row.id])

        with contextlib.suppress(OSError):
            self._database.write(end)
        self._rows.builder = SummaryBuilder()  # This frees the summary. The positions of events stay.


def _only_in_memory(state: Path, file: Path, reason: str) -> Noticed:
    root = untrusted_root(state)
    if root is None:
        message, hint = f"{file} cannot be written ({reason})", "--state-dir selects another folder"
    else:
        message, hint = untrusted_text(root)
    return Noticed("warning", f"this run is kept in memory only: {message}", hint, in_report=True)
