"""Access to the output that Textual sends to a terminal. Textual has no public access to it."""

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.strip import Strip


def shown_strips(app: App[Any]) -> list[Strip]:
    """Return the lines of the whole screen."""
    strips = app.screen._compositor.render_strips(app.size)
    assert len(strips) == app.size.height
    return strips


def record_writes(app: App[Any], write: Callable[[str], None]) -> None:
    """Call `write` with each sequence that a running app sends to the terminal."""
    driver: Any = app._driver
    driver.write = write
