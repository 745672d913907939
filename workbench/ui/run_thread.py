"""Runs beside the screen: a thread with an event loop of its own, so that nothing the engine does delays a key.

The thread lives as long as the program, because the engine's children die with the thread that started them.
"""

import asyncio
import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from workbench.events import CaseFinished, CaseRef, Event


class Runnable(Protocol):
    """What the engine's `Run` is to the screen."""

    async def execute(self) -> None: ...

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None: ...

    def stop(self) -> None: ...


Publish: TypeAlias = Callable[[Event], None]
Build: TypeAlias = Callable[[Publish], Awaitable[Runnable]]


@dataclass(frozen=True, slots=True)
class Refused:
    """The run did not start, or ended without saying so: why, and the way out. Raw text."""

    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run of that number is over, and its thread free for the next one."""

    number: int


News: TypeAlias = Event | Refused | Ended


class RunThread:
    """One run after the other. News come through `take`; `wake` is called from the other thread when there are some
    after there were none, and once more for the first verdict among them."""

    def __init__(self, wake: Callable[[], object], at_end: Callable[[], Awaitable[None]] | None = None) -> None:
        """`at_end` is awaited in the thread when it closes."""
        self._wake = wake
        self._at_end = at_end
        self._news: deque[News] = deque()
        self.decided = False
        """Whether a case's verdict is among the news that were not taken yet."""
        self._asleep = threading.Event()
        self._asleep.set()
        self.started = 0
        """How many runs were asked for: the number of the newest one."""
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._closing: asyncio.Future[float]
        self._run: Runnable | None = None
        self._task: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()

    def start(self, build: Build) -> int:
        """Build a run and execute it, both in the thread, and not before the one that was asked for last is over:
        between its last word and its end it waits for the disk. What `build` raises becomes `Refused`. Return the
        run's number, which its `Ended` has."""
        self.started += 1
        number = self.started

        def begin() -> None:
            self._task = self._loop.create_task(self._execute(build, number, self._task))

        self._call(begin)
        return number

    def also(self, work: Callable[[], Awaitable[None]]) -> None:
        """Has something done in the thread, beside what runs; if it fails, the next run will say why."""

        async def quietly() -> None:
            with contextlib.suppress(Exception):
                await work()

        def begin() -> None:
            task = self._loop.create_task(quietly())
            self._others.add(task)
            task.add_done_callback(self._others.discard)

        self._call(begin)

    def cancel(self, refs: list[CaseRef] | None, *, kill: bool = False, stop: bool = False) -> None:
        """Cancels (or kills) these cases, with `stop` no others start either; None: no new case starts, and all that
        run are cancelled."""

        def now() -> None:
            if self._run is None:
                return
            if refs is None:
                self._run.stop()
                self._run.cancel(None, kill=kill)
            else:
                if stop:
                    self._run.stop()
                for ref in refs:
                    self._run.cancel(ref, kill=kill)

        self._call(now)

    def call(self, function: Callable[[], object]) -> None:
        """Calls a function in the thread, soon."""
        self._call(function)

    def take(self) -> list[News]:
        """All news since the last call, oldest first."""
        self._asleep.set()
        self.decided = False
        news: list[News] = []
        while self._news:
            news.append(self._news.popleft())
        return news

    def close(self, timeout: float = 5.0) -> None:
        """Kills what runs, gives its end and that of the engine's children `timeout` seconds each, and ends the
        thread. Closing again does nothing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._loop.call_soon_threadsafe(self._close_soon, timeout)
            thread.join(2 * timeout + 2)

    def _call(self, function: Callable[[], object]) -> None:
        if self._thread is None:
            self._ready.clear()
            self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="workbench-run", daemon=True)
            self._thread.start()
            self._ready.wait()
        self._loop.call_soon_threadsafe(function)

    async def _live(self) -> None:
        """The thread's whole life. What is left of its tasks at the end is cancelled by `asyncio.run`."""
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
            # Or they would start what was ended just now.
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._at_end is not None:
            # What does not end in time dies with us: it holds the other end of a pipe.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._at_end(), timeout)

    def _close_soon(self, timeout: float) -> None:
        if not self._closing.done():
            self._closing.set_result(timeout)

    async def _execute(self, build: Build, number: int, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
            if self._closing.done():
                return
        try:
            self._run = await build(self._publish)
            await self._run.execute()
        except Exception as error:
            # Whatever went wrong in a run must not end the screen: it is shown there.
            self._publish(Refused(str(error) or type(error).__name__, getattr(error, "hint", "") or _place(error)))
        finally:
            self._run = None
            self._publish(Ended(number))

    def _publish(self, news: News) -> None:
        self._news.append(news)
        verdict = isinstance(news, CaseFinished) and not self.decided
        self.decided = self.decided or verdict
        if verdict or self._asleep.is_set():
            self._asleep.clear()
            self._wake()


def _place(error: Exception) -> str:
    """Where an unexpected exception came from, for a report of the fault; "" for a refusal, which explains itself."""
    if hasattr(error, "hint"):
        return ""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}, line {frame.lineno}"
