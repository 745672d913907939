"""The output of the engine: each event is cleaned of secrets, then written, then published."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from workbench.criteria.secrets import Secrets
from workbench.events.event_json import Line, as_line
from workbench.events.events import CallsRecorded, CaseFinished, Event, Noticed, RunFinished, SpansRecorded
from workbench.store.history.run_writer import RunWriter
from workbench.store.spans import Recorded, is_cut
from workbench.text.json_values import short_json

Publish: TypeAlias = Callable[[Event], None]

_PAUSE = 0.02
"""Seconds between two batches. Each batch costs two thread switches, so events close together share one.

The first verdict, and an event after a quiet moment, are written at once.
"""
_WRITTEN_AT_ONCE = 500
"""Number of events in the largest batch. A batch needs its memory twice, as events and as text."""
_AHEAD = 2_000
"""Number of events that may wait before no more cases start. Many cases at a time are faster than the disk."""
_BETWEEN_SYNCS = 0.25
"""Seconds between two disk syncs. A machine that crashes may lose the cases of this time."""
_PUBLISHED_AT_ONCE = 200
"""Number of events that are published before the event loop may do something else."""


class PieceStorage:
    """The storage for the pieces of one run: JSON texts that its spans and calls name (`workbench.store.spans`).

    Each piece is cleaned of secrets and stored once. Use it in the thread that writes the events.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._stored_at: dict[str, int] = {}
        """Name of each stored piece → its number."""

    def store(self, event: Recorded, keeper: RunWriter | None) -> Recorded:
        """Return the event without secrets. Its pieces are stored, or kept in the event if nothing can be stored."""
        if isinstance(event, SpansRecorded):
            event = replace(event, spans=self._cleaned(event.spans))
        else:
            event = replace(event, calls=self._cleaned(event.calls))
        if not event.pieces:
            return event
        # A cut piece has the digest of the complete text.
        names = {digest: f"{digest} cut" if is_cut(text) else digest for digest, text in event.pieces.items()}
        new = {names[digest]: text for digest, text in event.pieces.items() if names[digest] not in self._stored_at}
        fresh = {name: self._cleaned(text) for name, text in new.items()}
        kept = None if keeper is None else keeper.keep_pieces(fresh)
        if kept is None:
            pieces = {digest: fresh.get(names[digest]) or self._cleaned(text) for digest, text in event.pieces.items()}
            return replace(event, pieces=pieces)
        run_id, numbers = kept
        self._stored_at.update(numbers)
        where = {digest: self._stored_at[name] for digest, name in names.items()}
        return replace(event, pieces={}, kept=short_json(where), kept_in=run_id)

    def _cleaned(self, text: str) -> str:
        """Return JSON text without secrets. It is cleaned as data, because a number may be a secret."""
        if not self._secrets.may_contain(text):
            return text
        try:
            return short_json(self._secrets.clean_data(json.loads(text)))
        except (ValueError, RecursionError):
            return json.dumps("[not stored: it is not valid JSON and may hold a secret]")


class _AlreadyWritten(NamedTuple):
    """An event of the resumed run, which is stored already."""

    event: Event


class Recorder:
    """A queue that writes events and then publishes them in the same order in the event loop's thread.

    One thread writes batches. Events that arrive during a batch form the next one. Another thread syncs the disk, once
    for all cases that ended since the last sync. The end of the run is published after it was synced to the disk. If
    writing fails, a notice reports this, and all further events are only published.
    """

    def __init__(self, publish: Publish, writer: RunWriter | None, secrets: Secrets) -> None:
        self._publish = publish
        self._writer = writer
        """The writer of the run, or None if nothing is stored or writing has failed."""
        self._kept = writer
        self._failure: OSError | None = None
        """The error after which nothing is written any more."""
        self._failure_reported = False
        self._secrets = secrets
        self._pieces = PieceStorage(secrets)
        self._pending: list[Event | _AlreadyWritten] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._room = asyncio.Event()
        """Set after each batch, and when no more batches follow."""
        self._thread = ThreadPoolExecutor(1, "events")
        self._disk = ThreadPoolExecutor(1, "events-disk")
        self._syncing: asyncio.Task[None] | None = None
        self._unsynced = False
        self._closing = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._has_verdict = False
        self._write_now = asyncio.Event()
        """Set when the pause is over, or when the first verdict or the end of the run is pending."""

    def put(self, event: "Event | _AlreadyWritten") -> None:
        """Add an event, which is written and published soon. Events added after `close` are dropped."""
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
        """Wait until few enough events are pending to start more cases."""
        while len(self._pending) > _AHEAD and not self._idle.is_set():
            self._room.clear()
            await self._room.wait()

    async def flush(self) -> None:
        """Wait until all added events are published. Raise again what the front end's `publish` raised."""
        await self._idle.wait()
        if self._pump is not None and self._pump.done():
            self._pump.result()

    async def close(self) -> None:
        """Flush, then close the writer and its threads. If cancelled, the writer ends its batch before it closes."""
        closed: Future[None] | None = None
        try:
            await self.flush()
            self._closing.set()
            if self._syncing is not None:
                await self._syncing
        finally:
            self._closing.set()
            for task in (self._pump, self._syncing):
                if task is not None:
                    task.cancel()  # After a forced end, it would use a thread that has ended.
            if self._kept is not None:
                closed = self._thread.submit(self._kept.close)
            self._thread.shutdown(wait=False)
            self._disk.shutdown(wait=False)
        if closed is not None:
            await asyncio.wrap_future(closed)

    async def _sync_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unsynced:
            self._unsynced = False
            await loop.run_in_executor(self._disk, self._store, (), True)
            self._report_failure()
            if not self._closing.is_set():
                # `wait_for` of Python 3.11 loses a cancellation that comes together with the end of the wait.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_BETWEEN_SYNCS):
                        await self._closing.wait()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                batch = self._pending[:_WRITTEN_AT_ONCE]
                del self._pending[:_WRITTEN_AT_ONCE]
                self._write_now.clear()
                events = await loop.run_in_executor(self._thread, self._write, batch)
                for index, event in enumerate(events, 1):
                    if isinstance(event, RunFinished):
                        self._report_failure()
                    self._publish(event)
                    if index % _PUBLISHED_AT_ONCE == 0:
                        await asyncio.sleep(0)
                self._report_failure()  # Not before the run is announced, because front ends then begin anew.
                if any(isinstance(event, CaseFinished) for event in events):
                    self._unsynced = True  # One sync serves all cases that end before it starts.
                    if self._syncing is None or self._syncing.done():
                        self._syncing = loop.create_task(self._sync_all())
                self._room.set()
                if len(self._pending) < _WRITTEN_AT_ONCE and not (events and isinstance(events[-1], RunFinished)):
                    # A pause, so that events close together share a batch.
                    timer = loop.call_later(_PAUSE, self._write_now.set)
                    await self._write_now.wait()
                    timer.cancel()
        finally:
            self._idle.set()
            self._room.set()

    def _report_failure(self) -> None:
        failure = self._failure
        if failure is not None and not self._failure_reported:
            self._failure_reported = True
            why = f"{failure.filename} cannot be written ({failure.strerror or type(failure).__name__})"
            hint = "The stored part is an interrupted run. Fix the cause, then the same command completes the run"
            text = f"the rest of this run is kept in memory only: {why}"
            self._publish(Noticed("warning", text, hint, in_report=True))

    def _write(self, batch: Sequence["Event | _AlreadyWritten"]) -> list[Event]:
        """Write the batch, and return its events in their written form, without secrets."""
        writer = self._writer
        encoded = list(map(self._encode, batch))
        lines = [item for item in encoded if isinstance(item, Line)]
        self._store(lines, any(isinstance(line.event, RunFinished) for line in lines))
        if self._writer is not writer:
            encoded = list(map(self._encode, batch))  # Now with their pieces, which are not stored either.
        return [item.event for item in encoded]

    def _store(self, lines: Sequence[Line], sync: bool) -> None:
        """Write lines, unless writing has failed before. If it fails now, remember the error."""
        writer = self._writer
        if writer is not None and (lines or sync):
            try:
                writer.write(lines, sync=sync)
            except OSError as error:
                self._writer, self._failure = None, error

    def _encode(self, item: "Event | _AlreadyWritten") -> "Line | _AlreadyWritten":
        """Return the line of an event without secrets, and store the event's pieces if events are still written.

        An event that was written before is returned unchanged.
        """
        if isinstance(item, _AlreadyWritten):
            return item
        event = item
        if isinstance(event, SpansRecorded | CallsRecorded):
            event = self._pieces.store(event, self._writer)
        line = as_line(event)
        return as_line(self._secrets.clean(line.event)) if self._secrets.may_contain(line.text) else line
