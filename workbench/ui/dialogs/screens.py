"""A dialog with a page of lines, a base of dialogs with rows, and a schedule for showing events of a run."""

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.timer import Timer
from textual.widgets import Static

from workbench.results.document import Document
from workbench.results.lines import Line
from workbench.ui.actions import Where
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.terminal.terminal import Pace
from workbench.ui.widgets.footer import bindings
from workbench.ui.widgets.rows import RowView


class PageScreen(ModalScreen[None]):
    """A dialog with a page of lines. The keys for back, close and quit close it.

    `build` returns the lines for a width in cells. `title` is safe text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "back", "close", "quit")
    ]

    def __init__(self, title: str, build: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._title, self._build = title, build
        self._body = Body()

    def compose(self) -> ComposeResult:
        """Lay out the frame with the page in it."""
        with Vertical(classes="dialog -page") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("esc closes")
            yield self._body

    def on_mount(self) -> None:
        """Focus the page."""
        self._body.focus()

    def on_body_resized(self, event: Body.Resized) -> None:
        """Build the page again for its new width."""
        event.stop()
        self.show(self._build)

    def show(self, build: Callable[[int], list[Line]]) -> None:
        """Replace the page. The scroll position stays."""
        self._build = build
        width = self._body.planned().width
        if width > 0:
            self._body.show(Document(build(width)), self._body.top)

    def action_move(self, direction: str) -> None:
        """Scroll the page."""
        self._body.move(direction)

    def action_back(self) -> None:
        """Close the page."""
        self.dismiss(None)

    action_close = action_quit = action_back


class RowsScreen(ModalScreen[ScreenResultType]):
    """A base of dialogs with a list of rows.

    A subclass lays out `rows` and `message`. If `text` is set, page keys scroll it instead of the rows. `where` is the
    place whose actions the help lists.
    """

    where: ClassVar[Where]

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter", "back", "keys")
    ]

    def __init__(self, rows: RowView, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self.rows, self.keys_of = rows, keys
        self.text: VerticalScroll | None = None
        self.message = Static("", classes="message", markup=False)

    def action_move(self, direction: str) -> None:
        """Move the cursor, or scroll the text by a page."""
        match self.text, direction:
            case VerticalScroll(), "page_down":
                self.text.scroll_page_down(animate=False)
            case VerticalScroll(), "page_up":
                self.text.scroll_page_up(animate=False)
            case _:
                self.rows.move(direction)

    def action_keys(self) -> None:
        """Show the keys that work here."""
        show_keys(self, self.where, self.keys_of)

    def action_enter(self) -> None:
        """Run the default action of the row under the cursor. Subclasses override this method."""

    def action_back(self) -> None:
        """Close the dialog without a result."""
        self.dismiss(None)

    def on_row_view_picked(self) -> None:
        """Treat a click on the current row like enter."""
        self.action_enter()

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show safe text in the message line."""
        self.message.set_class(warning, "-warning")
        self.message.update(Content(text))


_BATCH = 0.05
"""Seconds during which events of a run are collected before they are shown."""


class Batches:
    """A schedule for showing events of a run in batches, no faster than the terminal can paint.

    `take` shows all events that have arrived, and returns the number of lines painted.
    """

    def __init__(self, screen: Screen[Any], take: Callable[[], int]) -> None:
        self._screen, self._take = screen, take
        self._pace = Pace()
        self._due: Timer | None = None

    def wake(self) -> None:
        """Schedule a call of `take`. Events that arrive until then are in the same batch. Any thread may call this."""
        self._screen.call_later(self._take_soon)

    def _take_soon(self) -> None:
        if self._due is None:
            self._due = self._screen.set_timer(max(_BATCH, self._pace.wait(time.monotonic())), self._take_now)

    def _take_now(self) -> None:
        self._due = None
        lines = self._take()
        self._pace.painted(time.monotonic(), lines)
