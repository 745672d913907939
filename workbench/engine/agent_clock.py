"""The time that an agent takes, without the time in which it waits for its user."""

import asyncio
from collections.abc import Callable


class AgentClock:
    """Runs from `go_on` to `stop`, any number of times; `on_time_over` is called when it has run for `seconds`."""

    def __init__(self, seconds: float, on_time_over: Callable[[], None]) -> None:
        self._left = seconds
        self._on_time_over = on_time_over
        self._loop = asyncio.get_running_loop()
        self._running: tuple[asyncio.TimerHandle, float] | None = None
        """What ends it, and the moment at which it began to run."""

    def go_on(self) -> None:
        self._running = self._loop.call_later(self._left, self._on_time_over), self._loop.time()

    def stop(self) -> None:
        if self._running is not None:
            timer, since = self._running
            timer.cancel()
            self._left = max(0.0, self._left - (self._loop.time() - since))
            self._running = None
