"""A run of a project: executed as a whole, or followed event by event."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from workbench.engine.run.recorder import Publish
from workbench.engine.run.run import Run
from workbench.events import CaseRef, Event
from workbench.history.journal import Journal
from workbench.store import Store

NewsT = TypeVar("NewsT")


async def end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait for their ends. One that is being cancelled is not disturbed in its last steps."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Followed(Generic[NewsT]):
    """Work that tells news while it is done. Execute it or iterate over its news; both start it, and only once."""

    def __init__(self, take: Callable[[NewsT], None], tasks: set[asyncio.Task[None]]) -> None:
        """`take` gets all news in order, in the event loop's thread. While the work is done, its task is in `tasks`."""
        self._take = take
        self._tasks = tasks
        self._work: asyncio.Task[None] | None = None
        self._news: deque[NewsT] | None = None
        """What the iteration has not come to; None if nobody iterates."""
        self._came = asyncio.Event()

    async def execute(self) -> None:
        """Do the work to its end. If it has begun, wait for its end."""
        await self._begun()

    def __aiter__(self) -> AsyncIterator[NewsT]:
        return self.follow()

    async def follow(self) -> AsyncGenerator[NewsT, None]:
        """Begin the work, and yield its news in order. Leaving the loop early kills what is still running.

        Raises:
            RuntimeError: the work has begun before, so its first news are gone.
        """
        if self._work is not None:
            raise RuntimeError("this has begun already: iterate over it once, and await its end as often as you like")
        news = self._news = deque()
        task = self._begun()
        task.add_done_callback(lambda _: self._came.set())
        try:
            while news or not task.done():
                while news:
                    yield news.popleft()
                self._came.clear()
                if not task.done():
                    await self._came.wait()
            task.result()
        finally:
            self._news = None
            await end([task])

    async def _do(self) -> None:
        raise NotImplementedError

    def _begun(self) -> asyncio.Task[None]:
        """Return the task that does the work, made at the first call."""
        if self._work is None:
            self._work = asyncio.create_task(self._do())
            self._tasks.add(self._work)
            self._work.add_done_callback(self._tasks.discard)
        return self._work

    def _tell(self, news: NewsT) -> None:
        self._take(news)
        if self._news is not None:
            self._news.append(news)
            self._came.set()


class Running(Followed[Event]):
    """One run. Nothing happens before it is executed, awaited for its result, or iterated over. Runs of a project take
    turns."""

    def __init__(
        self,
        make: Callable[[Publish], Run],
        publish: Publish,
        store: Store,
        journal: Journal | None,
        turn: Callable[[], AbstractAsyncContextManager[None]],
        tidy: Callable[[], Awaitable[None]],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        """`turn` is entered before the run and left after it; `tidy` is awaited if nothing was raised."""
        super().__init__(publish, tasks)
        self._store = store
        self._run = make(self._tell)
        self._journal = journal
        self._turn = turn
        self._tidy = tidy
        self._fault: Exception | None = None
        """What `publish` raised."""

    def stop(self) -> None:
        """Start no new cases; those that run finish or reach their timeout."""
        self._run.stop()

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """End one case, or with None all of them and the run: first ask, with `kill` at once."""
        self._run.cancel(ref, kill=kill)

    async def result(self) -> Store:
        """Run until every case has a verdict, or as far as `stop` and `cancel` let it. Also after an iteration.

        Return the store of the project, which holds every case with its verdicts, until the project's next run.
        """
        await self.execute()
        return self._store

    def _tell(self, news: Event) -> None:
        """Hand on an event. A listener that raises ends the run, and hears no more; `_do` raises what it raised."""
        if self._fault is None:
            try:
                super()._tell(news)
            except Exception as fault:
                self._fault = fault
                self._run.cancel(kill=True)

    async def _do(self) -> None:
        try:
            async with self._turn():
                await self._run.execute()
        finally:
            if self._journal is not None:
                self._journal.close()
        await self._tidy()
        if self._fault is not None:
            raise self._fault
