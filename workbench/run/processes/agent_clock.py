"""Time limits, and checks for hung processes, that allow for processes that are stopped.

While the workbench is stopped (`SIGSTOP`, ctrl+z, a sleeping laptop), it cannot read what its children send. A parent
process counts as hung if a signal stopped it, or if it is silent and does not use the processor. Otherwise, it answers
a ping at once, however busy its children are. The check for hung processes works on Linux only, like forking.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from workbench.agents.child_process import STOPPED, stat_fields

_BEAT = 0.5
"""Seconds between two beats. A shorter stop is not noticed."""
_PULSES: "WeakKeyDictionary[asyncio.AbstractEventLoop, Pulse]" = WeakKeyDictionary()
_SILENT = 2.0
"""Seconds without an answer before the process is examined."""
_STILL = 10.0
"""Seconds without processor use after which a silent process counts as hung."""
_WANTS_PROCESSOR = "R"
CAN_WATCH = os.path.exists("/proc/self/stat")  # noqa: PTH110 - raises nothing
"""Whether this system reports the activity of processes."""


class Pulse:
    """A regular beat in an event loop while a clock runs. `lost` counts the seconds without beats."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lost = 0.0
        self._due = 0.0
        self._clocks = 0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def of_running_loop(cls) -> "Pulse":
        """Return the only pulse of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in _PULSES:
            _PULSES[loop] = cls(loop)
        return _PULSES[loop]

    @property
    def lost(self) -> float:
        """Seconds lost so far, including a gap that still lasts."""
        return self._lost + (self._gap() if self._timer is not None else 0.0)

    def begin(self) -> None:
        """Count one more running clock."""
        self._clocks += 1
        if self._timer is None:
            self._next()

    def end(self) -> None:
        """Count one running clock fewer."""
        self._clocks -= 1
        if not self._clocks and self._timer is not None:
            self._lost += self._gap()
            self._timer.cancel()
            self._timer = None

    def _gap(self) -> float:
        late = self._loop.time() - self._due
        return late if late > _BEAT else 0.0

    def _beat(self) -> None:
        self._lost += self._gap()
        self._next()

    def _next(self) -> None:
        self._due = self._loop.time() + _BEAT
        self._timer = self._loop.call_at(self._due, self._beat)


class AgentClock:
    """A clock that can be started and stopped repeatedly. `on_time_over` is called after `seconds` in total.

    Time during which the workbench itself was stopped does not count.
    """

    def __init__(self, seconds: float, on_time_over: Callable[[], None]) -> None:
        self._left = seconds
        self._on_time_over = on_time_over
        self._loop = asyncio.get_running_loop()
        self._pulse = Pulse.of_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._lost_then = 0.0

    def start(self) -> None:
        """Start the clock if it is not running."""
        if self._timer is None:
            self._pulse.begin()
            self._run()

    def stop(self) -> None:
        """Stop the clock if it is running."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left = max(0.0, self._left - self._ran())
            self._pulse.end()

    def _run(self) -> None:
        self._since, self._lost_then = self._loop.time(), self._pulse.lost
        self._timer = self._loop.call_later(self._left, self._expire)

    def _ran(self) -> float:
        return self._loop.time() - self._since - (self._pulse.lost - self._lost_then)

    def _expire(self) -> None:
        if self._pulse.lost > self._lost_then:
            self._left = max(0.0, self._left - self._ran())
            self._run()
            return
        self.stop()
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


class Activity(NamedTuple):
    """The state of a process in `/proc`, and the processor's clock ticks that it has used."""

    state: str
    ticks: int


class PingCheck:
    """A regular check whether a process answers. `ping` sends a ping; call `answered` for the reply."""

    def __init__(
        self,
        ping: Callable[[], object],
        activity: Callable[[int], Activity | None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._ping = ping
        self._activity = activity or read_activity
        self._clock = clock or asyncio.get_running_loop().time
        self._asked_at: float | None = None
        self._seen: Activity | None = None
        self._still_since = 0.0

    def answered(self) -> None:
        """Record that the process has answered."""
        self._asked_at = self._seen = None

    def check(self, pid: int) -> str:
        """Send a ping unless one is unanswered. Return why the process must be replaced, or "" if it need not be."""
        now = self._clock()
        if self._asked_at is None:
            self._asked_at = now
            self._ping()
            return ""
        if now - self._asked_at < _SILENT:
            return ""
        before, seen = self._seen, self._activity(pid)
        self._seen = seen
        if seen is None:
            return ""  # The process has ended, which is reported elsewhere.
        if before is None or seen.ticks != before.ticks or seen.state == _WANTS_PROCESSOR:
            self._still_since = now
        # Only two checks in a row count: a process that is being resumed with ours answers before the second one.
        elif seen.state in STOPPED and before.state in STOPPED:
            return "it was stopped by a signal"
        elif now - self._still_since >= _STILL:
            return f"it did not answer, and did nothing for {_STILL:g} s"
        return ""


def read_activity(pid: int) -> Activity | None:
    """Return the activity of a process from `/proc`, or None if it has ended."""
    fields = stat_fields(pid)
    return Activity(fields[0], int(fields[11]) + int(fields[12])) if len(fields) > 12 else None
