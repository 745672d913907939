"""The output of the engine: each event is cleaned of secrets, then written, then published."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from workbench.dependencies.digests import Digests
from workbench.engine.plan.owner_notes import OwnersToKeep
from workbench.engine.plan.secrets import Secrets
from workbench.engine.run.event_lines import Line, as_line
from workbench.engine.run.piece_storage import PieceStorage, PieceWriter
from workbench.events import (
    CallsRecorded,
    CaseError,
    CaseFinished,
    Event,
    FilesRead,
    Noticed,
    RepeatsDropped,
    RunFinished,
    SpansRecorded,
)

Publish: TypeAlias = Callable[[Event], None]

_PAUSE = 0.02
"""Seconds between two batches. Each batch costs two thread switches, so events close together share one.

The first verdict, and an event after a quiet moment, are written at once.
"""
_WRITTEN_AT_ONCE = 500
"""Number of events in the largest batch. A batch is in memory three times: as events, as data and as text."""
_AHEAD = 2_000
"""Number of events that may wait before no more cases start. Many cases at a time are faster than the disk."""
_BETWEEN_SYNCS = 0.25
"""Seconds between two disk syncs. A machine that crashes may lose the cases of this time."""
_PUBLISHED_AT_ONCE = 200
"""Number of events that are published before the event loop may do something else."""


class EventWriter(PieceWriter, Protocol):
    """A writer for the events of a run (`workbench.history.run_writer.RunWriter`)."""

    @property
    def notice(self) -> Noticed | None:
        """A notice for the user, for example that nothing can be written."""
        ...

    def write(self, lines: Iterable[Line], *, sync: bool) -> None:
        """Append events, and with `sync` wait until the disk has them.

        Lines come from one thread at a time. Syncs come from another thread. Neither is the event loop's thread.

        Raises:
            OSError: writing failed.
        """
        ...

    @property
    def is_stored(self) -> bool:
        """Whether anything is stored, and not only kept in memory."""
        ...

    def keep_answers(self, answers: Iterable[str]) -> None:
        """Store answers of models, which a resumed run reuses. Can be called in any thread."""
        ...

    def digests(self) -> Digests:
        """Return the digests of the project. Can be called in any thread."""
        ...

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Store the contents of files by their digests, as far as possible. Can be called in any thread."""
        ...

    def keep_owners(self, owners: OwnersToKeep, root: Path) -> None:
        """Store which agents run which evalsets. Can be called in any thread.

        Raises:
            ValueError: the file of the owners cannot be read or written.
        """
        ...

    def close(self) -> None:
        """Close the writer after the last event."""
        ...


class _AlreadyWritten(NamedTuple):
    """An event of the run that is being resumed."""

    event: Event


class Recorder:
    """A queue that writes events and then publishes them in the same order in the event loop's thread.

    One thread writes batches. Events that arrive during a batch form the next one. Another thread syncs the disk, once
    for all cases that ended meanwhile, and at the end. If writing fails, `on_failure` is called once. After that, only
    events that need not be stored are published.
    """

    def __init__(
        self,
        publish: Publish,
        writer: EventWriter | None,
        secrets: Secrets,
        on_failure: Callable[[OSError], None],
    ) -> None:
        self._publish = publish
        self._writer = writer
        """None if nothing is stored, or writing has failed."""
        self._kept = writer
        self._failure: OSError | None = None
        """The error after which nothing is written any more."""
        self._failure_reported = False
        self._secrets = secrets
        self._pieces = PieceStorage(secrets)
        self._on_failure = on_failure
        self._pending: list[Event | _AlreadyWritten] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._room = asyncio.Event()
        """Set after each batch, and when no more batches follow."""
        self._thread = ThreadPoolExecutor(1, "events")
        self._disk = ThreadPoolExecutor(1, "events-disk")
        self._syncing: asyncio.Task[None] | None = None
        self._unsynced = False
        self._not_synced: list[Event] = []
        """Published verdicts that are not synced to disk yet."""
        self._closing = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._has_verdict = False
        self._write_now = asyncio.Event()
        """Set when the pause is over, or when the first verdict or the end of the run is pending."""

    def put(self, event: "Event | _AlreadyWritten") -> None:
        """Add an event, which is written and published soon. Notices that come after the end are dropped."""
        if self._closing.is_set():
            return
        self._pending.append(event)
        if isinstance(event, RunFinished) or (isinstance(event, CaseFinished) and not self._has_verdict):
            self._has_verdict = True
            self._write_now.set()
        if self._pump is None or self._pump.done():
            self._idle.clear()
            self._pump = asyncio.get_running_loop().create_task(self._run())

    def put_written(self, *events: Event) -> None:
        """Add events that are stored already. They are published in order, but not written."""
        for event in events:
            self.put(_AlreadyWritten(event))

    async def room(self) -> None:
        """Wait while so many events wait that no more cases should start."""
        while len(self._pending) > _AHEAD and not self._idle.is_set():
            self._room.clear()
            await self._room.wait()

    async def flush(self) -> None:
        """Wait until all added events are published.

        Raises:
            Exception: the front end's `publish` raised it.
        """
        await self._idle.wait()
        if self._pump is not None and self._pump.done():
            self._pump.result()

    async def close(self) -> None:
        """Flush, then close the writer and its threads."""
        try:
            await self.flush()
            self._closing.set()
            if self._syncing is not None:
                await self._syncing
        finally:
            self._closing.set()
            for task in (self._pump, self._syncing):
                if task is not None:
                    task.cancel()  # After a forced end, it would use a thread that is gone.
            if self._kept is not None:
                self._kept.close()
            self._thread.shutdown(wait=False)
            self._disk.shutdown(wait=False)

    def _sync_soon(self) -> None:
        """Sync the disk in the background. One sync serves all cases that end before it starts."""
        self._unsynced = True
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.get_running_loop().create_task(self._sync_all())

    async def _sync_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unsynced:
            self._unsynced = False
            waited_for, self._not_synced = self._not_synced, []
            if not await loop.run_in_executor(self._disk, self._sync):
                assert self._failure is not None
                for verdict in waited_for:
                    self._publish(_showable(verdict, self._failure) or verdict)
                self._report_failure()
            if not self._closing.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), _BETWEEN_SYNCS)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                batch = self._pending[:_WRITTEN_AT_ONCE]
                del self._pending[:_WRITTEN_AT_ONCE]
                self._write_now.clear()
                events = await loop.run_in_executor(self._thread, self._write, batch)
                before = {id(item.event) for item in batch if isinstance(item, _AlreadyWritten)}
                self._not_synced += [event for event in events if _is_verdict(event) and id(event) not in before]
                for index, event in enumerate(events, 1):
                    self._publish(event)
                    if index % _PUBLISHED_AT_ONCE == 0:
                        await asyncio.sleep(0)
                self._report_failure()
                if any(isinstance(event, CaseFinished | RunFinished) for event in events):
                    self._sync_soon()
                self._room.set()
                if len(self._pending) < _WRITTEN_AT_ONCE and not (events and isinstance(events[-1], RunFinished)):
                    await self._wait_for_more()
        finally:
            self._idle.set()
            self._room.set()

    def _report_failure(self) -> None:
        if self._failure is not None and not self._failure_reported:
            self._failure_reported = True
            self._on_failure(self._failure)

    async def _wait_for_more(self) -> None:
        """Pause, so that events close together share a batch."""
        timer = asyncio.get_running_loop().call_later(_PAUSE, self._write_now.set)
        await self._write_now.wait()
        timer.cancel()

    def _write(self, batch: Sequence["Event | _AlreadyWritten"]) -> list[Event]:
        """Write the batch, and return the events of it that may be published."""
        encoded = [item if isinstance(item, _AlreadyWritten) else self._encode(item) for item in batch]
        written = self._append([item for item in encoded if isinstance(item, Line)])
        if self._failure is None:
            return [item.event for item in encoded]
        events: list[Event | None] = []
        for item in encoded:
            is_there = isinstance(item, _AlreadyWritten) or written > 0
            events.append(item.event if is_there else _showable(item.event, self._failure))
            written -= isinstance(item, Line)
        return [event for event in events if event is not None]

    def _append(self, lines: Sequence[Line]) -> int:
        """Write lines, and return how many of them were written."""
        writer = self._writer
        if writer is None:
            return 0
        try:
            writer.write(lines, sync=False)
        except OSError as error:
            # A batch is stored as a whole or not at all.
            self._writer, self._failure = None, error
            return 0
        # After a failed sync, nothing counts as written.
        return len(lines) if self._failure is None else 0

    def _sync(self) -> bool:
        """Sync the disk, and return whether it worked. Only a crash of the machine can lose lines before that."""
        if self._kept is not None:
            try:
                self._kept.write((), sync=True)
            except OSError as error:
                # The writer is closed only at the end, because a line may be on its way to it.
                self._writer, self._failure = None, error
                return False
        return True

    def _encode(self, event: Event) -> Line:
        """Return the line of the event without secrets."""
        if isinstance(event, SpansRecorded | CallsRecorded):
            event = self._pieces.store(event, self._writer)
        line = as_line(event)
        return as_line(self._secrets.clean(line.event)) if self._secrets.may_contain(line.text) else line


def _is_verdict(event: Event) -> bool:
    return isinstance(event, CaseFinished) and (event.error is None or event.status == "failed")


def _showable(event: Event, failure: OSError) -> Event | None:
    """Return the event to publish instead of one that could not be written, or None.

    A verdict that is not on disk must never be shown, so the case ends as cancelled. It runs again when the run is
    resumed.
    """
    if isinstance(event, CaseFinished):
        if not _is_verdict(event):
            return event
        reason = failure.strerror or str(failure)
        error = CaseError("cancelled", f"its verdict could not be written ({reason})")
        return replace(event, status="cancelled", error=error)
    return None if hasattr(event, "case") or isinstance(event, FilesRead | RepeatsDropped) else event


def why_stopped(failure: OSError) -> tuple[str, str]:
    """Return why a run stopped after a write failure, and how to continue."""
    where = f" to {failure.filename}" if failure.filename else ""
    reason = failure.strerror or str(failure)
    return (
        f"the run was stopped because writing{where} failed ({reason})",
        "Finished cases are stored. Fix the cause, then run the same command (on the screen: resume in the palette)"
        " to continue",
    )
