"""Leases: both ends of a link to another machine give up when they have heard nothing for too long."""

import time
from collections.abc import Callable

LEASE = 60.0
"""Seconds without a message after which the other end is lost."""
ALIVE = 5.0
"""Seconds between two signs of life."""


def time_since_boot() -> float:
    """Return seconds of a clock that also runs while the machine sleeps, where the system has one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Lease:
    """The time since the last sign of life, on a clock that also runs while the machine sleeps."""

    def __init__(self, seconds: float = LEASE, clock: Callable[[], float] = time_since_boot) -> None:
        self.seconds = seconds
        self._clock = clock
        self._renewed = clock()

    @property
    def is_over(self) -> bool:
        """Whether the last sign of life is too long ago."""
        return self._clock() - self._renewed > self.seconds

    def renew(self) -> None:
        """Record a sign of life."""
        self._renewed = self._clock()
