"""A clock that advances when somebody sleeps."""

import asyncio

from workbench.judges.attempts import RetryPolicy


class Clock:
    """A scripted clock. `slept` lists all sleeps in the order in which they began."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.time += seconds

    def retry_policy(self, *, attempts: int = 5, timeout: float = 20.0) -> RetryPolicy:
        """Return the usual policy with this clock and without chance."""
        return RetryPolicy(attempts=attempts, timeout=timeout, sleep=self.sleep, now=self.now, chance=lambda: 0.0)
