"""A queue for keys, so that fast keys reach the widgets that they were meant for.

The action of a key may open a dialog, move the focus or start to save. Textual sends the next key before that is done.
So if keys arrive together (fast typing, a paste, a slow line), the second one would reach the old dialog or widget.

Here each key waits until the key before it is done. A key is done when its messages are handled, the screen that it
opened is mounted, and the worker that it started has ended or shows a dialog. If that takes too long, all waiting keys
are dropped.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from textual.events import Key, Paste
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import NoActiveWorker, Worker, WorkerError, get_current_worker

from workbench.text.counting import counted

if TYPE_CHECKING:
    from textual.app import App

Pressed: TypeAlias = Key | Paste

BACKGROUND = frozenset(
    {"read", "read setting", "start", "leave", "watch", "recall", "earlier", "check", "triage"}
    | {"look", "preview", "case", "staleness", "disk", "follow", "follow runs"}
    | {"overview", "costs", "runs", "ahead"}
)
"""Groups of workers that keys do not wait for. They can take long, and open no dialog or
field for the next key."""
PATIENCE = 5
"""Seconds after which waiting keys are dropped.

They are counted in steps of one second. So the time for which the program was stopped counts as one second at most.
"""
_SECOND = 1.0
_MOST_ROUNDS = 20
"""Maximum number of rounds for one key. A run sends messages all the time, so the queues may never be empty."""


class KeyOrder:
    """The queue of keys for an app. `deliver` sends one key to the app."""

    def __init__(self, app: "App[Any]", deliver: Callable[[Pressed], Awaitable[None]]) -> None:
        self._app, self._deliver = app, deliver
        self.delivered = 0
        """Number of keys and pastes delivered to the app."""
        self._waiting: deque[Pressed] = deque()
        self._patience = PATIENCE
        self._follower: asyncio.Task[None] | None = None
        """The task that waits until the last key is done and then sends the next one."""
        self._dropped_at = 0.0
        self._news = asyncio.Event()
        """Set when a worker ended or opened a dialog."""
        self._watches: WeakKeyDictionary[Worker[Any], asyncio.Task[None]] = WeakKeyDictionary()
        self._dialogs: WeakKeyDictionary[Worker[Any], Screen[Any]] = WeakKeyDictionary()
        self._given_up: WeakSet[Worker[Any]] = WeakSet()
        self._unexpected: WeakKeyDictionary[Screen[Any], float] = WeakKeyDictionary()
        """Dialogs opened by background work, each with the time when it was first painted (infinity before)."""

    async def take(self, event: Pressed) -> None:
        """Deliver a key now, or later when its turn comes. `ctrl+c` goes first, and drops the waiting keys.

        Keys that were pressed too early are dropped (see `_came_too_early`).
        """
        if self._came_too_early(event):
            return
        if isinstance(event, Key) and event.key == "ctrl+c":
            # As in a shell, ctrl+c does not queue behind typed text.
            self._waiting.clear()
        elif self._follower is not None or any(self._at_work()):
            if not self._waiting:
                self._patience = PATIENCE
            self._waiting.append(event)
            self._follow()
            return
        await self._send(event)
        self._follow()

    @contextmanager
    def asking(self, screen: Screen[Any]) -> Iterator[None]:
        """Deliver keys to a dialog while the current worker waits for its result."""
        try:
            worker = get_current_worker()
        except NoActiveWorker:
            yield
            return
        self._dialogs[worker] = screen
        # The caller opens the dialog before it waits.
        self._app.call_later(self._news.set)
        if worker.group in BACKGROUND:
            self._unexpected[screen] = math.inf
            screen.call_after_refresh(self._was_painted, screen)
        try:
            yield
        finally:
            self._dialogs.pop(worker, None)

    def close(self) -> None:
        """Drop all waiting keys and deliver no more."""
        self._waiting.clear()
        if self._follower is not None:
            self._follower.cancel()

    async def _send(self, event: Pressed) -> None:
        if not self._came_too_early(event):
            self.delivered += 1
            await self._deliver(event)

    def _was_painted(self, screen: Screen[Any]) -> None:
        self._unexpected[screen] = time.monotonic()

    def _came_too_early(self, event: Pressed) -> bool:
        """Return whether a key was pressed before other keys were dropped, or before an unexpected dialog appeared."""
        if event.time < self._dropped_at:
            return True
        return bool(self._app.screen_stack) and event.time < self._unexpected.get(self._app.screen, 0.0)

    def _follow(self) -> None:
        if self._follower is None:
            self._follower = asyncio.create_task(self._send_in_turn())

    async def _send_in_turn(self) -> None:
        """Send all waiting keys, each one after the key before it is done."""
        try:
            while await self._is_done() and self._waiting:
                self._patience = PATIENCE
                await self._in_turn(self._app, self._send, self._waiting.popleft())
        finally:
            self._follower = None
        if self._waiting:
            self._given_up.update(self._at_work())
            self._dropped_at = time.monotonic()
            number = counted(len(self._waiting), "key")
            self._waiting.clear()
            self._app.notify(f"{number} dropped: the previous action took too long", severity="warning")

    async def _is_done(self) -> bool:
        """Wait until the last key is done. Return False if other keys have waited too long for it."""
        done = asyncio.create_task(self._until_done())
        try:
            while not (await asyncio.wait({done}, timeout=_SECOND))[0]:
                self._patience -= bool(self._waiting)
                if self._patience <= 0:
                    return False
            return True
        finally:
            done.cancel()

    async def _until_done(self) -> None:
        await self._until_handled()
        while workers := list(self._at_work()):
            self._news.clear()
            for worker in workers:
                if worker not in self._watches:
                    self._watches[worker] = asyncio.create_task(self._watch(worker))
            await self._news.wait()
            # A dialog that a worker opened may not have the focus yet.
            await self._until_handled()

    async def _until_handled(self) -> None:
        """Wait until all widgets from the focused one outwards have handled their messages."""
        # Each round waits for the messages that are already queued. Messages posted in a round need another round.
        for number in range(_MOST_ROUNDS):
            for stop in list(self._stops()):
                await self._in_turn(stop)
            if number and not any(stop.message_queue_size for stop in self._stops()):
                return

    @staticmethod
    async def _in_turn(stop: MessagePump, call: Callable[..., Awaitable[None]] | None = None, *args: Any) -> None:
        """Wait until a widget has handled the messages in its queue. Then call `call` in the widget, if it is given."""
        reached = asyncio.Event()

        async def reach() -> None:
            try:
                if call is not None:
                    await call(*args)
            finally:
                reached.set()

        if stop.call_later(reach):
            await reached.wait()

    def _stops(self) -> Iterator[MessagePump]:
        screens = self._app.screen_stack
        if screens:
            focus = screens[-1].focused or screens[-1]
            yield from (node for node in focus.ancestors_with_self if node is not self._app)
            yield from reversed(screens[:-1])
        yield self._app

    def _at_work(self) -> Iterator[Worker[Any]]:
        """Yield workers that may still open a dialog or field for the next key."""
        screens = self._app.screen_stack
        for worker in self._app.workers:
            if worker.is_finished or worker.group in BACKGROUND or worker in self._given_up:
                continue
            if self._dialogs.get(worker) not in screens:
                yield worker

    async def _watch(self, worker: Worker[Any]) -> None:
        # Cancelling this would cancel the worker.
        with suppress(WorkerError):
            await worker.wait()
        self._news.set()
