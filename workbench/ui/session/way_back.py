"""The way back from a case to the page that opened it."""

from collections.abc import Callable
from typing import NamedTuple


class WayBack(NamedTuple):
    """A page that opened a case. `esc` in the panes of the case calls `go`. `name` is for the footer."""

    name: str
    go: Callable[[], None]
