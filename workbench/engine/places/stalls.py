"""Processes that fork others and stand still: stopped by a signal, or silent without using the processor.

A process that only waits for commands answers a ping at once, however busy its children are. Linux only, as forking is.
"""

import asyncio
import os
from collections.abc import Callable
from typing import NamedTuple

from workbench.agents.orphans import stat_fields

_SILENT = 2.0
"""Seconds that an answer may take before the process is looked at."""
_STILL = 10.0
"""Seconds without use of the processor after which a silent process counts as stalled."""
_STOPPED = ("T", "t")
_WANTS_PROCESSOR = "R"


class Activity(NamedTuple):
    """A process's state as `/proc` has it, and the clock ticks of the processor that it has used."""

    state: str
    ticks: int


class Pinged:
    """A process that is asked now and then whether it answers. `ping` sends the question; `heard` takes any answer."""

    def __init__(
        self,
        ping: Callable[[], None],
        activity: Callable[[int], Activity | None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._ping = ping
        self._activity = activity or read_activity
        self._clock = clock or asyncio.get_running_loop().time
        self._asked_at: float | None = None
        self._seen: Activity | None = None
        self._still_since = 0.0

    def heard(self) -> None:
        """It has answered."""
        self._asked_at = self._seen = None

    def look(self, pid: int) -> str:
        """Return why the process must be replaced, or "" while it answers or works."""
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
            return ""  # It has ended: others say so.
        if before is None or seen.ticks != before.ticks or seen.state == _WANTS_PROCESSOR:
            self._still_since = now
        # Seen stopped twice: one that is just being woken, with us, answers before the second look.
        elif seen.state in _STOPPED and before.state in _STOPPED:
            return "it was stopped by a signal"
        elif now - self._still_since >= _STILL:
            return f"it did not answer, and did nothing for {_STILL:g} s"
        return ""


def read_activity(pid: int) -> Activity | None:
    """Return what `/proc` tells of a process, None if it has ended."""
    fields = stat_fields(pid)
    return Activity(fields[0], int(fields[11]) + int(fields[12])) if len(fields) > 12 else None


def can_be_watched() -> bool:
    """Whether this system tells what a process is doing."""
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - raises nothing
