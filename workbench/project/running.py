"""A run of a project: executed as a whole, or followed event by event."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

from workbench.engine.run.recorder import Publish
from workbench.engine.run.run import Run
from workbench.events import CaseRef, Event
from workbench.history.journal import Journal
from workbench.store import Store

NewsT = TypeVar("NewsT")


class Followed(Generic[NewsT]):
    """Work that tells news while it is done. Execute it, or iterate over its news; do one of these, once."""

    def __init__(self, take: Callable[[NewsT], None]) -> None:
        """`take` gets all news in order, in the event loop's thread."""
        self._take = take
        self._news: deque[NewsT] | None = None
        """What the iteration has not come to; None if nobody iterates."""
        self._came = asyncio.Event()

    async def execute(self) -> None:
        """Do the work to its end."""
        raise NotImplementedError

    def __aiter__(self) -> AsyncIterator[NewsT]:
        return self.follow()

    async def follow(self) -> AsyncGenerator[NewsT, None]:
        """Execute, and yield the news in order. Leaving the loop early kills what is still running."""
        self._news = deque()
        task = asyncio.ensure_future(self.execute())
        task.add_done_callback(lambda _: self._came.set())
        try:
            while self._news or not task.done():
                while self._news:
                    yield self._news.popleft()
                self._came.clear()
                if not task.done():
                    await self._came.wait()
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _tell(self, news: NewsT) -> None:
        self._take(news)
        if self._news is not None:
            self._news.append(news)
            self._came.set()


class Running(Followed[Event]):
    """One run. Nothing happens before it is executed, awaited for its result, or iterated over."""

    def __init__(
        self,
        make: Callable[[Publish], Run],
        publish: Publish,
        store: Store,
        journal: Journal | None,
        prepare: Callable[[], Awaitable[None]],
        tidy: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(publish)
        self._store = store
        self._run = make(self._tell)
        self._journal = journal
        self._prepare = prepare
        self._tidy = tidy

    def stop(self) -> None:
        """Start no new cases; those that run finish or reach their timeout."""
        self._run.stop()

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """End one case, or with None all of them and the run: first ask, with `kill` at once."""
        self._run.cancel(ref, kill=kill)

    async def execute(self) -> None:
        """Run until every case has a verdict, or as far as `stop` and `cancel` let it."""
        try:
            await self._prepare()
            await self._run.execute()
        finally:
            if self._journal is not None:
                self._journal.close()
        await self._tidy()

    async def result(self) -> Store:
        """Execute the run; return the store of the project, which holds every case with its verdicts."""
        await self.execute()
        return self._store
