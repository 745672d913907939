"""State of one run's calls: slots, budget, and calls in progress."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from workbench.judges.base import Reply
from workbench.judges.cache import Cache


def _cache_all(text: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run.

    - `in_flight`: calls at once, over all judges, the evaluation service and simulated users
    - `max_calls`: calls in the whole run (None: no limit)
    - `use_cache`: if false, cached answers are ignored, except those from `since` on (seconds since the epoch), which a
      resumed run got itself. New answers replace them.
    - `may_cache`: an answer is cached only if `may_cache(its text)`
    - `cache_dir`: None caches answers in memory only
    """

    in_flight: int = 100
    max_calls: int | None = None
    use_cache: bool = True
    since: float | None = None
    may_cache: Callable[[str], bool] = _cache_all
    cache_dir: Path | None = None


@dataclass(slots=True)
class Tally:
    """Usage of one bench.

    It counts questions sent (without retries), questions answered from the cache, tokens as the services report them,
    and the total seconds spent waiting for answers.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


T = TypeVar("T")


@dataclass
class _SharedCall(Generic[T]):
    task: "asyncio.Task[T]"
    waiting: int = 0


class SharedCalls(Generic[T]):
    """Calls in progress by key: the same question, asked twice at the same time, is sent once.

    A call is cancelled when no question waits for it any more.
    """

    def __init__(self) -> None:
        self._joinable: dict[str, _SharedCall[T]] = {}
        self._tasks: set[asyncio.Task[T]] = set()

    @property
    def busy(self) -> bool:
        """Whether a call is in progress."""
        return bool(self._tasks)

    async def share(self, key: str, start: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the result of the call for `key`, and whether this caller started it with `start`."""
        call = self._joinable.get(key)
        first = call is None
        if call is None:
            call = _SharedCall(asyncio.get_running_loop().create_task(start()))
            self._tasks.add(call.task)
            call.task.add_done_callback(self._tasks.discard)
            self._joinable[key] = call
        call.waiting += 1
        try:
            return await asyncio.shield(call.task), first
        finally:
            call.waiting -= 1
            if not call.waiting:
                if self._joinable.get(key) is call:
                    del self._joinable[key]
                call.task.cancel()

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class RunState:
    """Limits, budget and calls of one run. `slots` are the calls that may be in progress at once."""

    def __init__(self, limits: RunLimits, cache: Cache) -> None:
        self.limits = limits
        self.slots = asyncio.Semaphore(limits.in_flight)
        self.replies: SharedCalls[Reply] = SharedCalls()
        self.ratings: SharedCalls[dict[str, Any]] = SharedCalls()
        self._cache = cache
        self._calls = 0
        self.open = True
        """Whether calls may still be made."""

    @property
    def busy(self) -> bool:
        """Whether a call is in progress."""
        return self.replies.busy or self.ratings.busy

    def take_call(self) -> bool:
        """Take one call from the budget. Return False if none is left."""
        if not self.open or (self.limits.max_calls is not None and self._calls >= self.limits.max_calls):
            return False
        self._calls += 1
        return True

    def cached(self, key: str) -> dict[str, Any] | None:
        """Return the cached answer under `key`, if this run uses the cache."""
        if self.limits.use_cache:
            return self._cache.get(key)
        return None if self.limits.since is None else self._cache.get_since(key, self.limits.since)

    def store(self, key: str, text: str, answer: dict[str, Any]) -> None:
        """Cache `answer`, unless `text`, its content, must not be stored."""
        if self.limits.may_cache(text):
            self._cache.put(key, answer)

    def forget(self, key: str) -> None:
        """Remove the answer under `key` from the cache."""
        self._cache.forget(key)

    async def close(self) -> None:
        """Cancel the calls in progress."""
        await self.replies.close()
        await self.ratings.close()
