"""A screen with a list on the left and what is told of its row on the right, as the main screen is."""

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from workbench.actions import Where, footer
from workbench.rendering.cells import cell_len, cut
from workbench.text import one_line
from workbench.ui.dialogs.key_help import key_items
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.host import Host
from workbench.ui.items import searching
from workbench.ui.keys import bindings
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.rows import RowView


class TwoSides(Screen[None]):
    """`list` is the left side, `told` the right one. Below 76 columns one side is seen at a time."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "open", "close", "enter", "back"),
        *bindings("next_pane", "previous_pane", "maximise"),
    ]
    where: ClassVar[Where]

    def __init__(self, keys: Mapping[str, tuple[str, ...]], host: Host, listed: RowView, told: Widget) -> None:
        super().__init__()
        self.keys, self.host = keys, host
        self.list, self.told = listed, told
        self.frame = Vertical(classes="listed")
        self.key_line = KeyLine(footer(self.where), keys)
        self._bar = Static("", classes="which", markup=False)
        self._bar_parts: tuple[str, str] = ("", "")

    def compose(self) -> ComposeResult:
        yield self._bar
        with Horizontal(classes="sides"):
            with self.frame:
                yield self.list
                yield from self.below_list()
            yield self.told
        yield self.key_line

    def below_list(self) -> ComposeResult:
        """What stands below the list, in its frame."""
        yield from ()

    def on_mount(self) -> None:
        self.list.focus()

    def show_bar(self, left: str, right: str) -> None:
        """The line on top: what is shown, and the way back; both safe."""
        self._bar_parts = left, right
        room = self.app.size.width - cell_len(right) - 3
        shown = cut(left, room if room > 20 else self.app.size.width - 2)
        gap = self.app.size.width - cell_len(shown) - cell_len(right) - 2
        self._bar.update(Content(f" {shown}{' ' * gap}{right}" if room > 20 else f" {shown}"))

    def on_resize(self) -> None:
        self.show_bar(*self._bar_parts)

    def say(self, text: str, *, warning: bool = False) -> None:
        """Says something short in the last line; raw text."""
        self.key_line.say(one_line(text), "status-not-evaluated" if warning else "label-strong")

    def show_keys(self) -> None:
        """The keys that work here, as a list; enter does what is marked."""

        def picked(name: str | None) -> None:
            if name is not None:
                self.call_later(self.run_action, name)

        self.app.push_screen(PickScreen("keys", searching(key_items(self.where, self.keys))), picked)

    # What a subclass gives

    def move_told(self, direction: str) -> bool:
        """Moves in the right side; whether there was anywhere to go."""
        raise NotImplementedError

    def enter_told(self) -> None:
        """Enter on the right side."""

    # Sides

    @property
    def in_right(self) -> bool:
        """Whether keys go to the right side."""
        return self.told.has_focus_within

    def go_left(self) -> None:
        """To the list."""
        self.list.focus()

    def go_right(self) -> None:
        """To what is told."""
        self.add_class("-in-right")
        self.focus_told()

    def focus_told(self) -> None:
        """Gives the right side the focus."""
        self.told.focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self.set_class(self.in_right, "-in-right")

    # Keys

    def action_move_down(self) -> None:
        self._move("down")

    def action_move_up(self) -> None:
        self._move("up")

    def action_page_down(self) -> None:
        self._move("page_down")

    def action_page_up(self) -> None:
        self._move("page_up")

    def action_top(self) -> None:
        self._move("top")

    def action_bottom(self) -> None:
        self._move("bottom")

    def action_open(self) -> None:
        if self.in_right:
            self.move_told("right")
        else:
            self.go_right()

    def action_close(self) -> None:
        if not self.in_right:
            self.dismiss(None)
        elif not self.move_told("left"):
            self.go_left()

    def action_enter(self) -> None:
        (self.enter_told if self.in_right else self.go_right)()

    def action_back(self) -> None:
        if self.in_right:
            self.go_left()
        elif self.has_class("-maximised"):
            self.remove_class("-maximised")
        else:
            self.dismiss(None)

    def action_next_pane(self) -> None:
        (self.go_left if self.in_right else self.go_right)()

    action_previous_pane = action_next_pane

    def action_maximise(self) -> None:
        self.toggle_class("-maximised")

    def on_row_view_picked(self) -> None:
        self.action_enter()

    def _move(self, direction: str) -> None:
        if self.in_right:
            self.move_told(direction)
        else:
            self.list.move(direction)
