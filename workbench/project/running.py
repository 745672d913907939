"""A run of a project: executed as a whole, or followed event by event."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from workbench.engine.run.recorder import Publish
from workbench.engine.run.run import Run
from workbench.events import CaseRef, Event
from workbench.history.journal import Journal
from workbench.store import Store


class Running:
    """One run. Nothing happens before it is executed, awaited or iterated over; do one of these, once."""

    def __init__(
        self,
        make: Callable[[Publish], Run],
        publish: Publish,
        store: Store,
        journal: Journal | None,
        prepare: Callable[[], Awaitable[None]],
        tidy: Callable[[], Awaitable[None]],
    ) -> None:
        self._take = publish
        self._store = store
        self._run = make(self._publish)
        self._journal = journal
        self._prepare = prepare
        self._tidy = tidy
        self._events: deque[Event] | None = None
        """The events that the iteration has not come to; None if nobody iterates."""
        self._news = asyncio.Event()

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
        if self._journal is not None:
            await self._tidy()

    async def result(self) -> Store:
        """Execute the run; return the store of the project, which holds every case with its verdicts."""
        await self.execute()
        return self._store

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Execute the run and yield its events in order. Leaving the loop early kills what is still running."""
        self._events = deque()
        task = asyncio.ensure_future(self.execute())
        task.add_done_callback(lambda _: self._news.set())
        try:
            while self._events or not task.done():
                while self._events:
                    yield self._events.popleft()
                self._news.clear()
                if not task.done():
                    await self._news.wait()
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _publish(self, event: Event) -> None:
        self._take(event)
        if self._events is not None:
            self._events.append(event)
            self._news.set()
