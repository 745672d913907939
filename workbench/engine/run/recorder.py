"""The one way out of the engine: every event is cleaned of secrets, written, and only then shown."""

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
from workbench.engine.run.span_storage import PieceWriter, SpanStorage
from workbench.events import (
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
"""Seconds between two batches: what comes close together is written together, for each batch costs two changes of
thread. An event after a quiet moment, and the first verdict, are written at once."""
_BETWEEN_SYNCS = 0.25
"""Seconds between two waits for the disk: what a machine may lose that stops in the middle of many quick cases."""
_PUBLISHED_AT_ONCE = 200
"""Events handed to the front end before the event loop may do something else."""


class EventWriter(PieceWriter, Protocol):
    """What keeps the events of a run: `workbench.history.journal.Journal`."""

    @property
    def notice(self) -> Noticed | None:
        """What the user should know of it, such as that nothing can be written."""
        ...

    def write(self, lines: Iterable[Line], *, sync: bool) -> None:
        """Appends events; with `sync` they are on the disk itself afterwards. Lines come from one thread
        at a time, the wait for the disk from another, neither of them the event loop's. Raises OSError."""
        ...

    @property
    def answers(self) -> Path | None:
        """Where what models answer is kept as long as the run may have to be resumed; None: nowhere."""
        ...

    def digests(self) -> Digests:
        """Return what makes the digests of the project. From any thread."""
        ...

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Keeps the contents of files by their digests; what cannot be kept is left out. From any thread."""
        ...

    def keep_owners(self, owners: OwnersToKeep, root: Path) -> None:
        """Keeps with which agents evalsets run. From any thread.

        Raises:
            ValueError: that cannot be read or written.
        """
        ...

    def sum_up(self) -> None:
        """Does what is to be done once all has been written; from any thread, beside the last wait for the disk."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class _Kept(NamedTuple):
    """An event that was written by an earlier run of the program."""

    event: Event


class Recorder:
    """Takes events in order, without waiting, and publishes them in the same order from the event loop's thread.

    Writing happens in a thread of its own, in batches: what comes while a batch is being written is the next one. The
    disk is waited for in another one, once for all cases that have ended meanwhile, and at the end. If writing fails,
    `on_failure` is told once, and of what is not written only that is published which needs no journal behind it.
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
        """None where nothing is written, or nothing more can be."""
        self._kept_by = writer
        self._failure: OSError | None = None
        """Why nothing more can be written."""
        self._told = False
        self._secrets = secrets
        self._spans = SpanStorage(secrets)
        self._on_failure = on_failure
        self._pending: list[Event | _Kept] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = ThreadPoolExecutor(1, "journal")
        self._disk = ThreadPoolExecutor(1, "journal-disk")
        self._syncing: asyncio.Task[None] | None = None
        self._unsynced = False
        self._not_synced: list[Event] = []
        """Verdicts that are shown and that the disk itself may not have."""
        self._closing = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._has_verdict = False
        self._go_on = asyncio.Event()
        """The rest is over, or something is pending that somebody waits for: the first verdict of the run, or its
        end."""

    def put(self, event: "Event | _Kept") -> None:
        """Takes the event; it is written and published soon."""
        self._pending.append(event)
        if isinstance(event, RunFinished) or (isinstance(event, CaseFinished) and not self._has_verdict):
            self._has_verdict = True
            self._go_on.set()
        if self._pump is None or self._pump.done():
            self._idle.clear()
            self._pump = asyncio.get_running_loop().create_task(self._run())

    def show(self, *events: Event) -> None:
        """Publishes events in their place among those that are taken, without writing them: they are kept already."""
        for event in events:
            self.put(_Kept(event))

    async def flush(self) -> None:
        """Returns when all that was taken is published.

        Raises:
            Exception: what the front end's `publish` raised, a fault of the front end.
        """
        await self._idle.wait()
        if self._pump is not None and self._pump.done():
            self._pump.result()

    async def close(self) -> None:
        """`flush`, and the end of the writer and its thread."""
        try:
            await self.flush()
            self._closing.set()
            if self._syncing is not None:
                # Two things to wait for: the disk, and what is made of all that was written.
                summed_up = asyncio.get_running_loop().run_in_executor(self._thread, self._sum_up)
                await self._syncing
                await summed_up
        finally:
            if self._kept_by is not None:
                self._kept_by.close()
            self._thread.shutdown(wait=False)
            self._disk.shutdown(wait=False)

    def _sum_up(self) -> None:
        if self._kept_by is not None:
            self._kept_by.sum_up()

    def _sync_soon(self) -> None:
        """The disk is waited for beside everything else: for all cases that end meanwhile once more."""
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
                    self._publish(_as_far_as_kept(verdict, self._failure) or verdict)
                self._tell_failure()
            if not self._closing.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), _BETWEEN_SYNCS)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                self._go_on.clear()
                events = await loop.run_in_executor(self._thread, self._write, batch)
                before = {id(item.event) for item in batch if isinstance(item, _Kept)}
                self._not_synced += [event for event in events if _is_verdict(event) and id(event) not in before]
                for index, event in enumerate(events, 1):
                    self._publish(event)
                    if index % _PUBLISHED_AT_ONCE == 0:
                        await asyncio.sleep(0)
                self._tell_failure()
                if any(isinstance(event, CaseFinished | RunFinished) for event in events):
                    self._sync_soon()
                if not (events and isinstance(events[-1], RunFinished)):
                    await self._rest()
        finally:
            self._idle.set()

    def _tell_failure(self) -> None:
        if self._failure is not None and not self._told:
            self._told = True
            self._on_failure(self._failure)

    async def _rest(self) -> None:
        """Lets what comes close together be written together."""
        timer = asyncio.get_running_loop().call_later(_PAUSE, self._go_on.set)
        await self._go_on.wait()
        timer.cancel()

    def _write(self, batch: Sequence["Event | _Kept"]) -> list[Event]:
        """Writes the batch; what may be shown of it."""
        encoded = [item if isinstance(item, _Kept) else self._encode(item) for item in batch]
        written = self._append([item for item in encoded if isinstance(item, Line)])
        if self._failure is None:
            return [item.event for item in encoded]
        events: list[Event | None] = []
        for item in encoded:
            is_there = isinstance(item, _Kept) or written > 0
            events.append(item.event if is_there else _as_far_as_kept(item.event, self._failure))
            written -= isinstance(item, Line)
        return [event for event in events if event is not None]

    def _append(self, lines: Sequence[Line]) -> int:
        """Writes lines; how many of them are there."""
        writer = self._writer
        if writer is None:
            return 0
        with contextlib.suppress(OSError):
            writer.write(lines, sync=False)
            # Nobody waits for the disk again that has failed once.
            return len(lines) if self._failure is None else 0
        # None of them is there, but the first of them may fit.
        for number, line in enumerate(lines):
            try:
                writer.write((line,), sync=False)
            except OSError as error:
                self._writer, self._failure = None, error
                return number
        return len(lines)

    def _sync(self) -> bool:
        """Waits for the disk; False if it does not take what was written. Nobody who looks on has to: what is written
        is there unless the machine itself stops."""
        if self._kept_by is not None:
            try:
                self._kept_by.write((), sync=True)
            except OSError as error:
                self._writer, self._failure = None, error  # Closed at the end: a line may be on its way to it.
                return False
        return True

    def _encode(self, event: Event) -> Line:
        """The line of the event as it may be shown."""
        if isinstance(event, SpansRecorded):
            event = self._spans.settle(event, self._writer)
        line = as_line(event)
        return as_line(self._secrets.clean(line.event)) if self._secrets.touch(line.text) else line


def _is_verdict(event: Event) -> bool:
    return isinstance(event, CaseFinished) and event.error is None


def _as_far_as_kept(event: Event, failure: OSError) -> Event | None:
    """Return what may be shown of an event that could not be written; None for nothing.

    A case's end stays, as cancelled: never show a verdict that the disk does not have. When the run is resumed, the
    case is done again.
    """
    if isinstance(event, CaseFinished):
        if event.error is not None:
            return event
        reason = failure.strerror or str(failure)
        error = CaseError("cancelled", f"its verdict is not kept: the run cannot be written any more ({reason})")
        return replace(event, status="cancelled", error=error)
    return None if hasattr(event, "case") or isinstance(event, FilesRead | RepeatsDropped) else event


def why_stopped(failure: OSError) -> tuple[str, str]:
    """Return why a run was stopped that cannot be written any more, and how to continue."""
    where = f" to {failure.filename}" if failure.filename else ""
    reason = failure.strerror or str(failure)
    return (
        f"the run was stopped: it cannot be written{where} any more ({reason})",
        "What is there is kept; once it can be written again, the same command (on the screen: resume in the palette)"
        " goes on with it",
    )
