"""The current time, and durations as text."""

from datetime import datetime

UPDATED_EVERY = 20.0
"""Seconds between two updates of relative times on a screen."""


def now() -> datetime:
    """Return the current time in the user's time zone."""
    return datetime.now().astimezone()


def clock(seconds: float) -> str:
    """Return a duration as `0:07`, `12:03` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
