"""A dialog with a page of lines, and base classes of dialogs with rows and of screens with a list."""

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import DescendantFocus
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from workbench.results.cells import cell_len, cut
from workbench.results.document import Document
from workbench.results.lines import Line
from workbench.ui.actions import BY_ID, Where, footer
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.terminal.host import Host, copy
from workbench.ui.terminal.terminal import Pace
from workbench.ui.widgets.footer import KeyLine, bindings
from workbench.ui.widgets.rows import RowView


class PageScreen(ModalScreen[None]):
    """A dialog with a page of lines. The keys for back, close and quit close it.

    `build` returns the lines for a width in cells. `title` is safe text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "back", "close", "quit")
    ]

    def __init__(self, title: str, build: Callable[[int], list[Line]], keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._title, self._build, self._keys = title, build, keys
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
        width = self._body.planned("never").width
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
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter", "back", "keys"),
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
        """Run the default action of the row under the cursor."""

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


_SOON = 0.05
"""Seconds for which the cursor must rest on a row before its details are read."""


class ListScreen(Screen[None]):
    """A base of screens with a framed list, and a footer that also shows messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "back", "close")
    ]
    where: ClassVar[Where]

    def __init__(self, keys: Mapping[str, tuple[str, ...]], host: Host, listed: RowView, frame: Vertical) -> None:
        super().__init__()
        self._keys, self._host = keys, host
        self.list, self.frame = listed, frame
        frame.add_class("listed")
        self.key_line = KeyLine(footer(self.where), keys)

    def compose(self) -> ComposeResult:
        """Lay out the list and the footer."""
        yield self.frame
        yield self.key_line

    def on_mount(self) -> None:
        """Focus the list."""
        self.list.focus()

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show a short message in the footer. The text need not be safe."""
        self.key_line.say(text, warning=warning)

    def copy(self, what: str, text: str) -> None:
        """Copy a text to the clipboard and show a message. `what` is a name for the text."""
        self.say(copy(what, text, self._host.copy).message)

    def action_move(self, direction: str) -> None:
        """Move the cursor."""
        self.list.move(direction)

    def action_keys(self) -> None:
        """Show the keys of this screen."""
        show_keys(self, self.where, self._keys)

    def action_enter(self) -> None:
        """Run the default action of the row under the cursor."""

    def on_row_view_picked(self) -> None:
        """Treat a click on the current row like enter."""
        self.action_enter()


class SplitScreen(ListScreen):
    """A base of screens with a list on the left and `details` on the right.

    Below 76 columns, one side is visible at a time. `inside` is the widget in the details that takes the focus.
    `move_details` scrolls or moves the cursor in it, and returns whether anything changed.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("open", "enter", "next_pane", "previous_pane", "maximise")]

    list_name: ClassVar[str] = "cases"
    """Name of the list in the footer."""

    def __init__(
        self,
        keys: Mapping[str, tuple[str, ...]],
        host: Host,
        listed: RowView,
        frame: Vertical,
        details: Widget,
        inside: Widget,
        move_details: Callable[[str], bool],
    ) -> None:
        super().__init__(keys, host, listed, frame)
        self.details, self._inside, self._move_details = details, inside, move_details
        self._bar = Static("", classes="which", markup=False)
        self._bar_parts: tuple[str, str] = ("", "")
        self._due: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the first line, the two sides and the footer."""
        yield self._bar
        with Horizontal(classes="sides"):
            yield self.frame
            yield self.details
        yield self.key_line

    def show_bar(self, left: str, right: str) -> None:
        """Show the first line. Both texts are safe. The right one is hidden while the details have the focus."""
        self._bar_parts = left, right
        right = "" if self.in_right else right  # In the details, the footer has it, because it leads to the list.
        room = self.app.size.width - cell_len(right) - (5 if right else 2)
        shown = cut(left, room if room > 20 else self.app.size.width - 2)
        gap = self.app.size.width - cell_len(shown) - cell_len(right) - 2
        self._bar.update(Content(f" {shown}{' ' * gap}{right}" if room > 20 else f" {shown}"))

    def on_resize(self) -> None:
        """Fit the first line to the new width."""
        self.show_bar(*self._bar_parts)

    def when_resting(self, read: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        """Run `read` once the cursor rests. It replaces the function of the call before. None only cancels that."""
        if self._due is not None:
            self._due.stop()
        self._due = read and self.set_timer(_SOON, lambda: self.run_worker(read(), group="case", exclusive=True))

    def on_body_moved(self, event: Body.Moved) -> None:
        """Stop the message from bubbling."""
        event.stop()

    # Sides

    @property
    def in_right(self) -> bool:
        """Whether the details have the focus."""
        return self.details.has_focus_within

    def go_left(self) -> None:
        """Focus the list."""
        self.list.focus()

    def go_right(self) -> None:
        """Show and focus the details."""
        self.add_class("-in-right")
        self._inside.focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Record which side has the focus, and show its keys."""
        self.set_class(self.in_right, "-in-right")
        here = {"back": f"back to {self.list_name}", "enter": "full text"} if self.in_right else {}
        shown = [*(BY_ID[name] for name in here if name == "back"), *footer(self.where)]
        self.key_line.show_keys([replace(one, label=here.get(one.id, one.label)) for one in shown], self._keys)
        self.show_bar(*self._bar_parts)

    # Keys

    def action_move(self, direction: str) -> None:
        """Move in the side that has the focus."""
        if self.in_right:
            self._move_details(direction)
        else:
            super().action_move(direction)

    def action_open(self) -> None:
        """Go to the details, or unfold in them."""
        if self.in_right:
            self._move_details("right")
        else:
            self.go_right()

    def action_close(self) -> None:
        """Leave the screen. In the details, fold or go back to the list."""
        if not self.in_right:
            self.dismiss(None)
        elif not self._move_details("left"):
            self.go_left()

    def action_enter(self) -> None:
        """Go to the details."""
        if not self.in_right:
            self.go_right()

    def action_back(self) -> None:
        """Go back to the list, undo maximising, or leave the screen."""
        if self.in_right:
            self.go_left()
        elif self.has_class("-maximised"):
            self.remove_class("-maximised")
        else:
            self.dismiss(None)

    def action_other_side(self) -> None:
        """Move the focus to the other side."""
        (self.go_left if self.in_right else self.go_right)()

    def action_maximise(self) -> None:
        """Maximise the current side, or show both sides again."""
        self.toggle_class("-maximised")


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
