"""Detection of hung parent processes: stopped by a signal, or silent without using the processor.

A process that only waits for commands answers a ping at once, however busy its children are. This works on Linux only,
like forking.
"""

import asyncio
import os
from collections.abc import Callable
from typing import NamedTuple

from workbench.agents.orphans import STOPPED, stat_fields

_SILENT = 2.0
"""Seconds without an answer before the process is examined."""
_STILL = 10.0
"""Seconds without processor use after which a silent process counts as hung."""
_WANTS_PROCESSOR = "R"


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
        """Return why the process must be replaced, or "" if it answers or works."""
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


def can_be_watched() -> bool:
    """Return whether this system reports the activity of processes."""
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - raises nothing
