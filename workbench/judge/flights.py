"""The same question, asked twice at the same time, is asked once."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    task: "asyncio.Task[T]"
    waiting: int = 0


class Flights(Generic[T]):
    """What is under way, by key. It ends when nobody waits for it any more."""

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
