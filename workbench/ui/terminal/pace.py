"""Painting rate: frequent enough to look responsive, low enough for a slow connection."""

import os

FASTEST = 0.1
OVER_SSH = 0.25
BYTES_A_SECOND = 8_000
SAVED_UP = 1.5
"""Seconds of credit that a quiet screen saves, so that the first verdicts are shown at once."""
_BYTES_A_LINE = 240
"""Measured size of a tree row with its colours."""


def over_ssh() -> bool:
    """Return whether the terminal is connected through SSH."""
    return any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))


def seconds_for(lines: int) -> float:
    """Return how long a slow connection takes to send that many lines."""
    return lines * _BYTES_A_LINE / BYTES_A_SECOND


class Pace:
    """Decides when to paint next. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._shortest = OVER_SSH if over_ssh() else FASTEST
        self._next = self._credited = 0.0

    def wait(self, now: float, *, decided: bool = False) -> float:
        """Return how long to wait before painting, or 0 to paint now.

        `decided` says that a case has its verdict, which may use the saved credit.
        """
        return max(0.0, (self._credited if decided else self._next) - now)

    def painted(self, now: float, lines: int) -> None:
        """Record a paint of that many lines. More lines need a longer rest to stay within the line's budget."""
        rest = max(self._shortest, seconds_for(lines))
        self._next = max(self._next, now) + rest
        self._credited = max(self._credited, now - SAVED_UP) + rest
