"""Actions that move, mark and find in the cases and the panes."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.ui.actions import BY_ID
from workbench.ui.main.shell import Shell
from workbench.ui.widgets.split import STEP

DIGITS = BY_ID["pane"].keys


def places(panes: Sequence[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the target of each jump key (`cases`, `filter` or a pane's digit) and its name."""
    found = {"c": ("cases", "cases"), "/": ("filter", "filter")}
    return found | {digit: (digit, name) for digit, name in panes}


class JumpScreen(ModalScreen[str | None]):
    """A dialog that returns a target of `places` or any digit, or None for another key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave")]

    def __init__(self, panes: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._places = places(panes)

    def compose(self) -> ComposeResult:
        """List the keys and their targets."""
        with Vertical(classes="corner") as corner:
            corner.border_title = Content("jump to")
            lines = [
                Content.assemble((f" {key} ", "bold $accent"), f" {name} ") for key, (_, name) in self._places.items()
            ]
            yield Static(Content("\n").join(lines))

    def on_key(self, event: Key) -> None:
        """Return the key's target."""
        event.stop()
        key = event.character or ""
        place = self._places.get(key)
        self.dismiss(place[0] if place else key if key in DIGITS else None)

    def action_leave(self) -> None:
        """Close the dialog without a jump."""
        self.dismiss(None)


class Navigation:
    """Movement keys for the side that has the focus. All state is in the widgets."""

    def __init__(self, screen: Shell) -> None:
        self._screen = screen

    # Move

    def move(self, direction: str) -> None:
        """Move by a line (`down`, `up`), half a page (`page_down`, `page_up`) or to an end (`top`, `bottom`)."""
        if self._screen.in_right:
            self._screen.right.move(direction)
            self._screen.show_keys_here()  # In the same frame as the cursor.
        else:
            self._screen.tree_view.move(direction)

    def open(self) -> None:
        """Expand the row or step in. In a pane, unfold."""
        if self._screen.in_right:
            self._screen.right.move("right")
        else:
            self._screen.tree_view.open_row()

    def close(self) -> None:
        """Collapse the row or step out. In a pane, fold, then go to the cases."""
        if not self._screen.in_right:
            self._screen.tree_view.close_row()
        elif not self._screen.right.move("left"):
            self._screen.go_left()

    def enter(self) -> None:
        """Expand or collapse a row. On a case, go to its panes. Picked while the filter is typed: keep the filter."""
        if self._screen.cases.input.has_focus:
            self._screen.cases.input.action_done()
            return
        if self._screen.in_right:
            if self._screen.right.shows_case:
                self._screen.right.detail.toggle_full()
            elif self._screen.right.shows_overview:
                self._screen.open_item()
            return
        row = self._screen.tree_view.row
        if row is None or row.kind in ("case", "repeat") or not self._screen.tree_view.toggle_row():
            self._screen.go_right()

    def back(self) -> None:
        """Go back: leave the field or the pane, drop the marks, or clear the filter."""
        if self._screen.cases.input.has_focus:
            self._screen.cases.input.action_clear()
        elif self._screen.in_right:
            if not (self._screen.right.shows_case and self._screen.right.detail.go_back()):
                self._screen.go_back()
        elif self._screen.tree_view.model.anchor is not None:
            self._screen.tree_view.drop_marks()
        elif self._screen.maximised:
            self._screen.maximise(False)
        elif self._screen.undo_filter():
            pass
        elif not self._screen.cases.input.end():
            self._screen.tree_view.drop_marks()
        self._screen.show_state()

    def turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) turn."""
        if self._screen.right.shows_case:
            self._screen.right.detail.go_to_turn(step)

    def to_event(self) -> None:
        """Go from the item under the cursor to its event in the trace, and back."""
        if not (self._screen.right.shows_case and self._screen.right.detail.to_event()):
            self._screen.say("no event in the trace for this line")

    # Panes

    def pane(self, number: int | None = None) -> None:
        """Show a pane by its number. Without one (picked from the key help), ask for it."""
        if number is None:
            self.jump()
        elif self._screen.right.shows_case:
            self._screen.right.detail.show_pane(number)
            if self._screen.has_class("-narrow"):
                self._screen.go_right()
        else:
            self._screen.say("put the cursor on a case first")

    def other_side(self) -> None:
        """Move the focus between the cases and the panes."""
        (self._screen.go_left if self._screen.in_right else self._screen.go_right)()

    def jump(self) -> None:
        """Ask for one more key and go to its pane."""
        panes = self._screen.right.detail.tabs if self._screen.right.shows_case else ()
        self._screen.app.push_screen(JumpScreen(panes), self._jumped)

    def maximise(self) -> None:
        """Maximise the current side, or undo that."""
        self._screen.maximise(not self._screen.maximised)

    def change(self, steps: int) -> None:
        """Give the cases more columns, or with a negative number of steps less."""
        if not self._screen.split.widen(steps * STEP):
            self._screen.say("the tree cannot be wider" if steps > 0 else "the tree cannot be narrower")

    def hide_tree(self) -> None:
        """Hide or show the cases."""
        if self._screen.has_class("-no-tree"):
            self._screen.go_left()
        else:
            self._screen.go_right()
            self._screen.add_class("-no-tree")

    # Mark

    def mark(self) -> None:
        """Mark or unmark the row's cases."""
        self._screen.tree_view.mark()
        self._screen.show_state()

    def mark_range(self) -> None:
        """Start a range, or mark it."""
        self._screen.tree_view.mark_range()
        self._screen.show_state()

    def mark_all(self) -> None:
        """Mark all cases that the filter shows."""
        self._screen.tree_view.mark_all()
        self._screen.show_state()

    # Find

    def problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) problem."""
        before = self._screen.tree_view.row
        wrapped = self._screen.tree_view.next_problem(step)
        if wrapped is None:
            self._screen.say(self._screen.session.why_nothing_found("nothing failed"))
        elif before == self._screen.tree_view.row:
            self._screen.say("no other problem")
        elif wrapped:
            self._screen.say("wrapped around")

    def filter(self) -> None:
        """Open the filter."""
        self._screen.remove_class("-no-tree")
        self._screen.cases.input.open()

    def show_only(self, text: str) -> None:
        """Filter the cases by a text."""
        self._screen.remove_class("-no-tree")
        self._screen.set_filter(text)

    def sort(self) -> None:
        """Switch to the next sort order."""
        self._screen.tree_view.next_sort()
        self._screen.show_state()

    def _jumped(self, place: str | None) -> None:
        if place == "cases":
            self._screen.go_left()
        elif place == "filter":
            self.filter()
        elif place is not None:
            self.pane(int(place))
            if self._screen.right.shows_case:
                self._screen.go_right()
