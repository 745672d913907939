"""A run of a project, to await as a whole or to follow event by event."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

from workbench.events.events import CaseRef, Event
from workbench.run.dask.files import MachineState
from workbench.run.recorder import Publish
from workbench.run.run import Run
from workbench.store.history.run_writer import RunWriter
from workbench.store.store import Store

NewsT = TypeVar("NewsT")


async def end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they end. A task that is being cancelled already is not cancelled again."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Followed(Generic[NewsT]):
    """Work that publishes news.

    Call `execute`, or iterate over the news once. Both start the work. If it has started, `execute` waits for its end.
    `take` gets all news in order, in the event loop's thread. The task is in `tasks` until it ends.
    """

    def __init__(self, take: Callable[[NewsT], None], tasks: set[asyncio.Task[None]]) -> None:
        self._take = take
        self._tasks = tasks
        self._work: asyncio.Task[None] | None = None
        self._news: asyncio.Queue[NewsT | None] | None = None
        """News that the iteration has not yielded yet, then None at the end; None without an iteration."""

    async def execute(self) -> None:
        """Do all the work, or wait for its end if it has started already."""
        await self._start()

    def __aiter__(self) -> AsyncIterator[NewsT]:
        return self.follow()

    async def follow(self) -> AsyncGenerator[NewsT, None]:
        """Start the work, and yield its news in order. Leaving the loop early ends the work.

        Raises:
            RuntimeError: the work has started before, so earlier news are lost.
        """
        if self._work is not None:
            raise RuntimeError("already started: iterate over it only once, and await its end as often as you like")
        news = self._news = asyncio.Queue[NewsT | None]()
        task = self._start()
        task.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while (item := await news.get()) is not None:
                yield item
            task.result()
        finally:
            self._news = None
            await end([task])

    async def _do(self) -> None:
        raise NotImplementedError

    def _start(self) -> asyncio.Task[None]:
        """Start the work, unless it has started, and return its task."""
        if self._work is None:
            self._work = asyncio.create_task(self._do())
            self._tasks.add(self._work)
            self._work.add_done_callback(self._tasks.discard)
        return self._work

    def _tell(self, news: NewsT) -> None:
        self._take(news)
        if self._news is not None:
            self._news.put_nowait(news)


class Running(Followed[Event]):
    """One run of a project.

    It starts when it is executed, iterated over, or awaited for its result. Runs of a project take turns. `turn` is
    entered before the run and left after it. `prepare` is awaited before the run, and may raise an error to refuse it.
    `tidy` is awaited after a run that raised no error.
    """

    def __init__(
        self,
        make: Callable[[Publish], Run],
        publish: Publish,
        store: Store,
        writer: RunWriter | None,
        turn: Callable[[], AbstractAsyncContextManager[None]],
        prepare: Callable[[], Awaitable[None]],
        tidy: Callable[[], Awaitable[None]],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        super().__init__(publish, tasks)
        self._store = store
        self._run = make(self._tell)
        self._writer = writer
        self._turn = turn
        self._prepare = prepare
        self._tidy = tidy
        self._fault: Exception | None = None
        """The exception that `publish` raised."""

    def machines(self) -> Sequence[MachineState]:
        """Return the current states of other machines; () if agents run on this one."""
        return self._run.machines()

    def stop(self) -> None:
        """Start no new cases. Running cases finish or reach their timeout."""
        self._run.stop()

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """Cancel one case, or all cases and the run if `ref` is None. With `kill`, kill them at once."""
        self._run.cancel(ref, kill=kill)

    async def result(self) -> Store:
        """Run all cases unless `stop` or `cancel` ends the run, and return the store of the run.

        The store has the verdicts of all cases until its next run. Can also be called after an iteration.
        """
        await self.execute()
        return self._store

    def _tell(self, news: Event) -> None:
        """Publish an event. If a listener raises, end the run without further events. `_do` raises the exception."""
        if self._fault is None:
            try:
                super()._tell(news)
            except Exception as fault:
                self._fault = fault
                self._run.cancel(kill=True)

    async def _do(self) -> None:
        try:
            async with self._turn():
                await self._prepare()
                await self._run.execute()
        finally:
            if self._writer is not None:
                self._writer.close()
        await self._tidy()
        if self._fault is not None:
            raise self._fault
