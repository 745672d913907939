"""Base classes of screens other than the main screen: a list, and a list with details."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from workbench.events.events import CaseRef
from workbench.results.cells import cell_len, cut
from workbench.ui.actions import BY_ID, Where, footer
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.screen.sides import Right
from workbench.ui.terminal.host import Host, copy
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import KeyLine, bindings
from workbench.ui.widgets.rows import RowView

_SOON = 0.05
"""Seconds for which the cursor must rest on a row before its details are read."""

CASE_KEYS = ("pane", "next_turn", "previous_turn", "to_event")
"""The actions of `SplitScreen` on the panes of a case."""


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
        """Run the default action of the row under the cursor. Subclasses override this method."""

    def on_row_view_picked(self) -> None:
        """Treat a click on the current row like enter."""
        self.action_enter()


class SplitScreen(ListScreen):
    """A base of screens with a list on the left and `details` on the right.

    Below 76 columns, one side is visible at a time. `inside` is the widget in the details that takes the focus. If it
    has the panes of a case, the keys for panes, turns and the trace act on it, in screens that bind them.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("open", "enter", "next_pane", "previous_pane", "maximise")]

    list_name: ClassVar[str] = "cases"
    """Name of the list in the footer."""
    go: Callable[[CaseRef], bool] = lambda ref: False
    """Opens the current version of a case in the main screen. Returns False if the case no longer exists."""

    def __init__(
        self,
        keys: Mapping[str, tuple[str, ...]],
        host: Host,
        listed: RowView,
        frame: Vertical,
        details: Widget,
        inside: Body | Right,
    ) -> None:
        super().__init__(keys, host, listed, frame)
        self.details, self._inside = details, inside
        if isinstance(inside, Right):
            inside.add_class("details")
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
        """Run `read` once the cursor rests. It replaces the function of the previous call. None runs nothing."""
        if self._due is not None:
            self._due.stop()
        self._due = read and self.set_timer(_SOON, lambda: start_work(self, read, "case", exclusive=True))

    def on_body_moved(self, event: Body.Moved) -> None:
        """Stop the message from bubbling."""
        event.stop()

    @property
    def in_right(self) -> bool:
        """Whether the details have the focus."""
        return self.details.has_focus_within

    @property
    def shows_one_side(self) -> bool:
        """Whether the stylesheet hides the other side. If not, a change of sides needs no new layout."""
        return self.has_class("-maximised") or self.has_class("-narrow")

    def go_left(self) -> None:
        """Focus the list."""
        self.list.focus()

    def go_right(self) -> None:
        """Show and focus the details."""
        self.add_class("-in-right", update=self.shows_one_side)
        self._inside.focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Record which side has the focus, and show its keys."""
        self.set_class(self.in_right, "-in-right", update=self.shows_one_side)
        here = {"back": f"back to {self.list_name}", "enter": "full text"} if self.in_right else {}
        shown = [*(BY_ID[name] for name in here if name == "back"), *footer(self.where)]
        self.key_line.show_keys([replace(one, label=here.get(one.id, one.label)) for one in shown], self._keys)
        self.show_bar(*self._bar_parts)

    def action_move(self, direction: str) -> None:
        """Move in the side that has the focus."""
        if self.in_right:
            self._inside.move(direction)
        else:
            super().action_move(direction)

    def action_open(self) -> None:
        """Go to the details, or unfold in them."""
        if self.in_right:
            self._inside.move("right")
        else:
            self.go_right()

    def action_close(self) -> None:
        """Leave the screen. In the details, fold or go back to the list."""
        if not self.in_right:
            self.dismiss(None)
        elif not self._inside.move("left"):
            self.go_left()

    def action_enter(self) -> None:
        """Go to the details."""
        if not self.in_right:
            self.go_right()

    def action_back(self) -> None:
        """Go back to the list, else undo maximising, else leave the screen."""
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

    @property
    def case_here(self) -> CaseRef | None:
        """The execution under the cursor, or None."""
        return None

    @property
    def running(self) -> str:
        """What is still running on this screen, such as "the try is", or ""."""
        return ""

    def action_go_to_current(self) -> None:
        """Open the current version of the case under the cursor in the main screen."""
        if self.case_here is None:
            self.say("put the cursor on a case first")
        elif self.running:
            self.say(f"{self.running} still running: x cancels", warning=True)
        elif not self.go(self.case_here):
            self.say("this case no longer exists", warning=True)

    def action_copy_id(self) -> None:
        """Copy the ID of the case under the cursor."""
        if self.case_here is None:
            self.say("put the cursor on a case first")
        else:
            self.copy("case ID", self.case_here.eval_id)

    @property
    def case_shown(self) -> bool:
        """Whether the panes of a case are on the screen."""
        return isinstance(self._inside, Right) and self._inside.shows_case

    def action_pane(self, number: int) -> None:
        """Show the pane with this number."""
        if isinstance(self._inside, Right) and self.case_shown:
            self._inside.detail.show_pane(number)
            if self.has_class("-narrow"):
                self.go_right()

    def action_turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) turn."""
        if isinstance(self._inside, Right) and self.case_shown:
            self._inside.detail.go_to_turn(step)

    def action_to_event(self) -> None:
        """Go from the item under the cursor to its event in the trace, and back."""
        if isinstance(self._inside, Right) and not (self.case_shown and self._inside.detail.to_event()):
            self.say("no event in the trace for this line")
