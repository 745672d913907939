"""How often the screen takes in what happened: often enough to look alive, seldom enough for a slow line."""

import os

FASTEST = 0.1
OVER_SSH = 0.25
BYTES_A_SECOND = 8_000
SAVED_UP = 1.5
"""Seconds that a quiet screen has to its credit, so that the first verdicts are shown at once."""
_BYTES_A_LINE = 240
"""Measured: a row of the tree with its colours."""


def over_ssh() -> bool:
    """Whether the terminal is at the other end of a network."""
    return any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))


class Pace:
    """Says when to paint next. Times in seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._shortest = OVER_SSH if over_ssh() else FASTEST
        self._next = self._credited = 0.0

    def wait(self, now: float, *, decided: bool = False) -> float:
        """How long to wait before painting; 0 if now is the time. `decided`: a case has its verdict, which is worth
        what was saved up."""
        return max(0.0, (self._credited if decided else self._next) - now)

    def painted(self, now: float, lines: int) -> None:
        """So many lines were painted: the more, the longer the rest that keeps the line below its budget."""
        rest = max(self._shortest, lines * _BYTES_A_LINE / BYTES_A_SECOND)
        self._next = max(self._next, now) + rest
        self._credited = max(self._credited, now - SAVED_UP) + rest
