"""A thread with an event loop for runs, so that the engine never delays a key.

The thread lives until the program ends, because the engine's child processes die with the thread that started them.
"""

import asyncio
import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from workbench.events.events import CaseFinished, CaseRef, Event

if TYPE_CHECKING:
    from workbench.run.dask.files import MachineState, Sending


class Runnable(Protocol):
    """The part of the engine's `Run` that the screen uses."""

    async def execute(self) -> None:
        """Run all cases."""

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        """Cancel or kill one case. With None, do it for all running cases."""

    def stop(self) -> None:
        """Start no further cases."""

    def machines(self) -> "Sequence[MachineState]":
        """Return the current states of other machines."""


Publish: TypeAlias = Callable[[Event], None]
Build: TypeAlias = Callable[[Publish], Awaitable[Runnable]]


@dataclass(frozen=True, slots=True)
class Refused:
    """A run that did not start, or that ended with an unexpected error. `message` and `hint` are raw text.

    `asks` is what would leave this machine, if the user has to confirm that first. Otherwise None.
    """

    message: str
    hint: str = ""
    asks: "Sending | None" = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the run with this number. The thread is then free for the next run."""

    number: int


News: TypeAlias = Event | Refused | Ended


class RunThread:
    """A thread that executes one run after the other. `take` returns its events."""

    def __init__(self, at_end: Callable[[], Awaitable[None]] | None = None) -> None:
        """Prepare the thread, which starts on first use, and awaits `at_end` when it closes."""
        self.when_news: list[Callable[[], object]] = []
        """Called in the thread when there are new events, and again when the first verdict is among them."""
        self._at_end = at_end
        self._news: deque[News] = deque()
        self.decided = False
        """Whether a verdict is among the waiting events."""
        self._asleep = threading.Event()
        self._asleep.set()
        self.started = 0
        """Number of the newest run, counted from 1."""
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._closing: asyncio.Future[float]
        self._run: Runnable | None = None
        self._machines: Sequence[MachineState] = ()
        self._task: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()

    def start(self, build: Build) -> int:
        """Build and execute a run in the thread, after the previous run has ended. Return the run's number.

        The previous run may still write to the disk after its last event. An exception of `build` or the run becomes
        `Refused`. Finally, `Ended` is sent with the run's number.
        """
        self.started += 1
        number = self.started

        def begin() -> None:
            self._task = self._loop.create_task(self._execute(build, number, self._task))

        self.call(begin)
        return number

    def also(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do other work in the thread, also during a run. Exceptions of the work are ignored."""

        async def quietly() -> None:
            with contextlib.suppress(Exception):
                await work()

        def begin() -> None:
            task = self._loop.create_task(quietly())
            self._others.add(task)
            task.add_done_callback(self._others.discard)

        self.call(begin)

    def cancel(self, refs: list[CaseRef] | None, *, kill: bool = False, stop: bool = False) -> None:
        """Cancel or kill these cases, or all running ones for None. For None or with `stop`, start no further cases."""

        def now() -> None:
            if self._run is None:
                return
            if stop or refs is None:
                self._run.stop()
            for ref in [None] if refs is None else refs:
                self._run.cancel(ref, kill=kill)

        self.call(now)

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread, soon. The first call starts the thread. Do nothing while it is closing."""
        if self._is_closing:
            return
        if self._thread is None:
            self._ready.clear()
            self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="workbench-run", daemon=True)
            self._thread.start()
            self._ready.wait()
        self._loop.call_soon_threadsafe(function)

    def machines(self) -> "Sequence[MachineState]":
        """Return the other machines of the newest run, as they were at the previous call.

        The thread then updates the states for the next call.
        """

        def look() -> None:
            if self._run is not None:
                self._machines = tuple(self._run.machines())

        if self._thread is not None:
            self.call(look)
        return self._machines

    def take(self) -> list[News]:
        """Return all events since the last call, oldest first."""
        self._asleep.set()
        self.decided = False
        return [self._news.popleft() for _ in range(len(self._news))]

    def close(self, timeout: float = 5.0) -> None:
        """Kill the run and end the thread. Do nothing if there is no thread.

        The run and the engine's children get `timeout` seconds each to end.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_closing = True
            self._loop.call_soon_threadsafe(self._closing.set_result, timeout)
            thread.join(2 * timeout + 2)
            self._is_closing = False

    async def _live(self) -> None:
        """Wait until the thread is to close, then end the run and all other work, and call `at_end`."""
        self._loop, self._task = asyncio.get_running_loop(), None
        self._closing = self._loop.create_future()
        self._ready.set()
        timeout = await self._closing
        for task in self._others:
            task.cancel()
        if self._run is not None:
            self._run.stop()
            self._run.cancel(None, kill=True)
        elif self._task is not None:  # It is still being built.
            self._task.cancel()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout)
            self._task.cancel()
        if self._others:
            await asyncio.wait(self._others, timeout=timeout)
        others = [*self._others]
        for task in others:
            # They would start again what has just ended.
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._at_end is not None:
            # Children that do not end in time die with this process, which holds the other end of their pipe.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._at_end(), timeout)

    async def _execute(self, build: Build, number: int, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
            if self._closing.done():
                return
        try:
            self._run = await build(self._publish)
            await self._run.execute()
        except Exception as error:
            # An error in a run must not end the screen, which shows it.
            hint = getattr(error, "hint", "") or _place(error)
            self._publish(Refused(str(error) or type(error).__name__, hint, getattr(error, "sending", None)))
        finally:
            if self._run is not None:
                self._machines = tuple(self._run.machines())
            self._run = None
            self._publish(Ended(number))

    def _publish(self, news: News) -> None:
        self._news.append(news)
        verdict = isinstance(news, CaseFinished) and not self.decided
        self.decided = self.decided or verdict
        if verdict or self._asleep.is_set():
            self._asleep.clear()
            for notify in self.when_news:
                notify()


def _place(error: Exception) -> str:
    """Return where an unexpected exception was raised, or "" for a refusal, which needs no place."""
    if hasattr(error, "hint"):
        return ""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}, line {frame.lineno}"


def cancel_words(what: str, *, kill: bool) -> str:
    """Return the message after a key that cancels or kills."""
    return f"killing {what}" if kill else f"cancelling {what}: cancel again to kill"


_News = TypeVar("_News")


class SideWork(Generic[_News]):
    """Work in the thread of runs, whose events go to one screen instead of the tree. It starts at once.

    `wake` is called in that thread when there are events to `take`.
    """

    def __init__(self, runs: RunThread, wake: Callable[[], None]) -> None:
        self._runs, self._wake = runs, wake
        self._news: deque[_News] = deque()
        runs.also(self._execute)

    def listen(self, wake: Callable[[], None]) -> None:
        """Replace the function that is called on new events, and call it once."""
        self._wake = wake
        wake()

    def take(self) -> list[_News]:
        """Return all events since the last call."""
        return [self._news.popleft() for _ in range(len(self._news))]

    def _publish(self, event: _News) -> None:
        self._news.append(event)
        self._wake()

    async def _execute(self) -> None:
        """Do the work. Called in the thread."""
        raise NotImplementedError


class SideRun(SideWork[Event | Refused]):
    """A run that is independent of the session's run."""

    def __init__(self, runs: RunThread, build: Build, wake: Callable[[], None]) -> None:
        self._build = build
        self._run: Runnable | None = None
        self._stopped = self._cancelled = False
        self.over = False
        """Whether the run has ended. Set after its last event."""
        super().__init__(runs, wake)

    def cancel(self) -> bool:
        """Cancel running cases and start no further ones. The second call kills them. Return whether it kills."""
        kill, self._cancelled = self._cancelled, True

        def now() -> None:
            self._stopped = True
            if self._run is not None:
                self._run.stop()
                self._run.cancel(None, kill=kill)

        self._runs.call(now)
        return kill

    async def _execute(self) -> None:
        try:
            self._run = await self._build(self._publish)
            if not self._stopped:
                await self._run.execute()
        except Exception as fault:
            hint = getattr(fault, "hint", None)  # A refusal explains itself.
            hint = traceback.format_exc(limit=-3) if hint is None else hint
            self._news.append(Refused(str(fault) or repr(fault), hint))
        finally:
            self.over = True
            self._wake()
