"""Keys in the order in which they were pressed, however fast they come.

A key travels from the app to the focused widget and from there outwards. Its action may open a dialog, move the focus
or start to save. Textual sends the next key before all that is done. Keys that come together (fast typing, a paste, a
slow line) would reach the place that the first of them is about to leave.

Here each key waits until the key before it is done: its messages are handled, the screen that it opened is mounted, and
the worker that it started has ended or shows a dialog.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from textual.events import Key, Paste
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import NoActiveWorker, Worker, get_current_worker

if TYPE_CHECKING:
    from textual.app import App

Pressed: TypeAlias = Key | Paste

BACKGROUND = frozenset(
    {"read", "read setting", "start", "leave", "watch", "recall", "earlier", "check", "triage"}
    | {"look", "preview", "case", "pictures", "staleness", "disk", "follow", "follow runs"}
    | {"overview", "costs", "runs", "ahead"}
)
"""Groups of workers that keys do not wait for. They may take long, and they open no dialog or
field for the next key."""
PATIENCE = 5.0
"""Seconds after which waiting keys are dropped, measured in polls.

On a busy machine, polls are as slow as everything else. Keys arrive late there and are not dropped.
"""
_POLL = 0.01
_MOST_ROUNDS = 20
"""Maximum number of rounds for one key. A run sends messages all the time, so a key cannot wait for silence."""


class KeyOrder:
    """The queue of keys in front of an app.

    `deliver` hands one key to the app. `dropped` gets the number of keys that were dropped because the key before them
    took too long.
    """

    def __init__(
        self, app: "App[Any]", deliver: Callable[[Pressed], Awaitable[None]], dropped: Callable[[int], None]
    ) -> None:
        self._app, self._deliver, self._dropped = app, deliver, dropped
        self._waiting: deque[Pressed] = deque()
        self._typing: MessagePump | None = None
        """The field that text goes to, as long as nothing but text was delivered."""
        self._round = 0
        """Number of the current round, or 0 if the last key was handled."""
        self._walks = 0
        self._blocked = False
        """Whether the next key waits for a worker to end."""
        self._polling = False
        self._polls = 0
        """Number of polls since the last key was sent."""
        self._dialogs: WeakKeyDictionary[Worker[Any], Screen[Any]] = WeakKeyDictionary()
        self._given_up: WeakSet[Worker[Any]] = WeakSet()
        self._unexpected: WeakKeyDictionary[Screen[Any], float] = WeakKeyDictionary()
        """Dialogs opened by background work, with the time when each was first painted."""

    async def take(self, event: Pressed) -> None:
        """Deliver a key now, or later when its turn comes."""
        if self._came_before_dialog(event):
            return
        if self._waiting and isinstance(event, Key) and event.key == "ctrl+c":
            # As in a shell, ctrl+c does not queue behind typed text.
            self._waiting.clear()
        elif self._waiting or (self._round and not self._continues(event)) or self._busy():
            self._wait(event)
            return
        await self._send(event)

    @contextmanager
    def asking(self, screen: Screen[Any]) -> Iterator[None]:
        """Let keys through to a dialog while the current worker waits for its answer."""
        try:
            worker = get_current_worker()
        except NoActiveWorker:
            yield
            return
        self._dialogs[worker] = screen
        if worker.group in BACKGROUND:
            self._unexpected[screen] = math.inf
            screen.call_after_refresh(self._was_painted, screen)
        try:
            yield
        finally:
            self._dialogs.pop(worker, None)

    # One key

    async def _send(self, event: Pressed) -> None:
        field = self._app.focused if self._app.screen_stack else None
        self._typing = field if _is_text(event, field) else None
        self._polls = 0
        if not self._came_before_dialog(event):
            await self._deliver(event)
        if self._round:
            self._round = 1
        else:
            self._walk(1)

    def _was_painted(self, screen: Screen[Any]) -> None:
        self._unexpected[screen] = time.monotonic()

    def _came_before_dialog(self, event: Pressed) -> bool:
        """Whether a key was pressed before an unexpected dialog was visible. It must not answer that dialog."""
        return bool(self._app.screen_stack) and event.time < self._unexpected.get(self._app.screen, 0.0)

    def _continues(self, event: Pressed) -> bool:
        """Whether a key is more text for the same field. Such text always arrives in order."""
        field = self._app.focused
        return field is not None and field is self._typing and _is_text(event, field)

    def _wait(self, event: Pressed) -> None:
        if not self._waiting:
            self._polls = 0
        self._blocked = self._blocked or self._busy()
        self._waiting.append(event)
        if not self._polling:
            self._polling = True
            self._poll()

    async def _send_or_poll(self) -> None:
        """Send the next key if the last one is done. Drop all keys after too many polls."""
        self._polls += 1
        if self._polls * _POLL > PATIENCE:
            self._give_up()
        await self._next()
        self._polling = bool(self._waiting)
        if self._polling:
            self._poll()

    async def _next(self) -> None:
        if self._round or not self._waiting:
            return
        if self._busy():
            self._blocked = True
        elif self._blocked:
            # A screen opened by a worker may not have the focus yet.
            self._blocked = False
            self._polls = 0
            self._walk(1)
        else:
            await self._send(self._waiting.popleft())

    def _poll(self) -> None:
        asyncio.get_running_loop().call_later(_POLL, self._app.call_later, self._send_or_poll)

    # Whether the last key is done

    def _walk(self, number: int) -> None:
        """Follow the key from the focus outwards.

        At each widget, wait for the messages already in its queue.
        """
        self._round = number
        self._walks += 1
        self._step(self._walks, list(self._stops()))

    def _step(self, walk: int, stops: list[MessagePump]) -> None:
        if walk != self._walks:
            return
        while stops:
            if stops.pop(0).call_later(self._step, walk, stops):
                return
        # Messages posted during a round need another one.
        if self._round == 1 or (self._round < _MOST_ROUNDS and any(stop.message_queue_size for stop in self._stops())):
            self._walk(self._round + 1)
            return
        self._round = 0
        self._typing = None
        if self._waiting:
            self._app.call_later(self._next)

    def _stops(self) -> Iterator[MessagePump]:
        screens = self._app.screen_stack
        if screens:
            focus = screens[-1].focused or screens[-1]
            yield from (node for node in focus.ancestors_with_self if node is not self._app)
            yield from reversed(screens[:-1])
        yield self._app

    def _busy(self) -> bool:
        screens = self._app.screen_stack
        return bool(screens and not screens[-1].is_mounted) or any(self._at_work())

    def _at_work(self) -> Iterator[Worker[Any]]:
        """Yield workers that may still open a dialog or field for the next key."""
        screens = self._app.screen_stack
        for worker in self._app.workers:
            if worker.is_finished or worker.group in BACKGROUND or worker in self._given_up:
                continue
            if self._dialogs.get(worker) not in screens:
                yield worker

    def _give_up(self) -> None:
        self._given_up.update(self._at_work())
        self._round, self._blocked = 0, False
        self._walks += 1
        number = len(self._waiting)
        self._waiting.clear()
        if number:
            self._dropped(number)


def _is_text(event: Pressed, field: Any) -> bool:
    if isinstance(event, Paste) or field is None or not event.is_printable:
        return False
    return bool(field.check_consume_key(event.key, event.character))
