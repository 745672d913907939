"""What holds for one run: its places, its budget, what is under way."""

import asyncio
from typing import Any

from workbench.judge.base import Reply
from workbench.judge.cache import Cache
from workbench.judge.flights import Flights
from workbench.judge.limits import RunLimits


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
