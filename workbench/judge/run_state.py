"""What holds for one run: its places, its budget, what is under way."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workbench.judge.base import Reply
from workbench.judge.cache import Cache
from workbench.judge.limits import RunLimits

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    task: "asyncio.Task[T]"
    waiting: int = 0


class Flights(Generic[T]):
    """What is under way, by key: the same question, asked twice at the same time, is asked once. It ends when nobody
    waits for it any more."""

    def __init__(self) -> None:
        self._joinable: dict[str, _Flight[T]] = {}
        self._tasks: set[asyncio.Task[T]] = set()

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def share(self, key: str, start: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """What `start` brings, begun now or by whoever asked for `key` first, and whether that was now."""
        flight = self._joinable.get(key)
        first = flight is None
        if flight is None:
            flight = _Flight(asyncio.get_running_loop().create_task(start()))
            self._tasks.add(flight.task)
            flight.task.add_done_callback(self._tasks.discard)
            self._joinable[key] = flight
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task), first
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                if self._joinable.get(key) is flight:
                    del self._joinable[key]
                flight.task.cancel()

    async def close(self) -> None:
        """Ends all at once."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class RunState:
    """`places` are the calls that may be under way at once."""

    def __init__(self, limits: RunLimits, cache: Cache) -> None:
        self.limits = limits
        self.places = asyncio.Semaphore(limits.in_flight)
        self.replies: Flights[Reply] = Flights()
        self.ratings: Flights[dict[str, Any]] = Flights()
        self._cache = cache
        self._calls = 0
        self.open = True
        """Whether calls may still be made."""

    @property
    def busy(self) -> bool:
        """Whether anything is under way."""
        return self.replies.busy or self.ratings.busy

    def spend(self) -> bool:
        """Takes one call from the budget; False if there is none left."""
        if not self.open or (self.limits.max_calls is not None and self._calls >= self.limits.max_calls):
            return False
        self._calls += 1
        return True

    def kept(self, key: str) -> dict[str, Any] | None:
        """The answer under `key`, if this run takes kept ones."""
        if self.limits.use_cache:
            return self._cache.get(key)
        return None if self.limits.since is None else self._cache.get_since(key, self.limits.since)

    def keep(self, key: str, text: str, answer: dict[str, Any]) -> None:
        """Keeps `answer`, unless `text`, what was said in it, must not be."""
        if self.limits.keep(text):
            self._cache.put(key, answer)

    def forget(self, key: str) -> None:
        """What is kept under `key` is not kept any more."""
        self._cache.forget(key)

    async def close(self) -> None:
        """Ends what is under way."""
        await self.replies.close()
        await self.ratings.close()
