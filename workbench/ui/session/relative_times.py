"""The current time, durations, and timers that update relative times such as `2 min ago`."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.message_pump import MessagePump
    from textual.timer import Timer

LONGEST = 600.0
"""Maximum wait in seconds. After it, texts are updated anyway, in case the clock was set or the machine slept."""


def now() -> datetime:
    """Return the current time in the user's time zone."""
    return datetime.now().astimezone()


def clock(seconds: float) -> str:
    """Return a duration as `0:07`, `12:03` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class UpdateTimer:
    """A timer of `owner` that calls `refresh` when a text changes.

    `refresh` shows the texts again and calls `wait` for the next time.
    """

    def __init__(self, owner: "MessagePump", refresh: Callable[[], object]) -> None:
        self._owner, self._refresh = owner, refresh
        self._timer: Timer | None = None

    def wait(self, seconds: Iterable[float | None]) -> None:
        """Restart the timer with the shortest of these waits, in seconds. None is for a text that never changes."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        first = min((after for after in seconds if after is not None), default=None)
        if first is not None:
            self._timer = self._owner.set_timer(min(first, LONGEST), self._refresh)
