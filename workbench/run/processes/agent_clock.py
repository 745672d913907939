"""Time limits that do not count the time in which the workbench was stopped (`SIGSTOP`, ctrl+z, a sleeping laptop).

Meanwhile, the workbench cannot read what its children send.
"""

import asyncio
from collections.abc import Callable
from typing import Any

_BEAT = 0.5
"""Seconds between two beats of a clock. A shorter stop is not noticed."""


class AgentClock:
    """A clock that can be started and stopped repeatedly. `on_time_over` is called after `seconds` in total.

    It beats regularly. If a beat is late, the workbench itself was stopped, so only the planned time counts.
    """

    def __init__(self, seconds: float, on_time_over: Callable[[], None]) -> None:
        self._left = seconds
        self._on_time_over = on_time_over
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        """Start the clock if it is not running."""
        if self._timer is None:
            self._next()

    def stop(self) -> None:
        """Stop the clock if it is running."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            # What the last beat counted in advance, without the time since then.
            self._left += min(max(self._due - self._loop.time(), 0.0), _BEAT)

    def _next(self) -> None:
        beat = min(_BEAT, self._left)
        self._left -= beat
        self._due = self._loop.time() + beat
        self._timer = self._loop.call_at(self._due, self._beat)

    def _beat(self) -> None:
        if self._left <= 0 and self._loop.time() - self._due > _BEAT:
            self._left = _BEAT  # After a stop, answers that arrived meanwhile are read first.
        if self._left > 0:
            self._next()
        else:
            self._timer = None
            self._on_time_over()


async def done_within(future: "asyncio.Future[Any]", seconds: float) -> bool:
    """Wait for a future, and return whether it is done within `seconds`. The future is not cancelled."""
    overdue = asyncio.Event()
    clock = AgentClock(seconds, overdue.set)
    clock.start()
    waiting = asyncio.ensure_future(overdue.wait())
    try:
        await asyncio.wait([future, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        clock.stop()
        waiting.cancel()
    return future.done()
