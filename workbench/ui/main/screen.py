"""The main screen with its controllers, and its actions for moving, marking and filtering."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.ui.actions import BY_ID
from workbench.ui.actions.main_screen import MAIN_SCREEN
from workbench.ui.screen.view import View
from workbench.ui.session.session import Session
from workbench.ui.terminal.host import Host
from workbench.ui.tree.case_tree import CaseTree
from workbench.ui.widgets.basics import STEP
from workbench.ui.widgets.footer import bindings_of

if TYPE_CHECKING:
    from workbench.results.changed_verdicts import Change
    from workbench.store.execution import Execution
    from workbench.ui.main.wiring import Controllers
    from workbench.ui.running.engine_run import Engine
    from workbench.ui.screen.overview_contents import Showing

DIGITS = BY_ID["pane"].keys


def places(panes: Sequence[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return, for each jump key, its target (`cases`, `filter` or a pane's digit) and the target's name."""
    found = {"c": ("cases", "cases"), "/": ("filter", "filter")}
    return found | {digit: (digit, name) for digit, name in panes}


class JumpScreen(ModalScreen[str | None]):
    """A dialog that waits for one key. The result is a target of `places`, a digit, or None for any other key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss")]

    def __init__(self, panes: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._places = places(panes)

    def compose(self) -> ComposeResult:
        """Lay out the keys and their targets."""
        with Vertical(classes="corner") as corner:
            corner.border_title = Content("jump to")
            lines = [
                Content.assemble((f" {key} ", "bold $accent"), f" {name} ") for key, (_, name) in self._places.items()
            ]
            yield Static(Content("\n").join(lines))

    def on_key(self, event: Key) -> None:
        """Close the dialog with the key's target as its result."""
        event.stop()
        key = event.character or ""
        place = self._places.get(key)
        self.dismiss(place[0] if place else key if key in DIGITS else None)


class MainScreen(View):
    """The main screen. A key calls the method that the action table gives for it.

    `engine` creates the engine. It is called when the controllers are created: after the first frame, or at the first
    key.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("main")]

    def __init__(
        self, session: Session, keys: Mapping[str, tuple[str, ...]], engine: "Callable[[], Engine]", host: Host
    ) -> None:
        super().__init__(session, keys)
        self._engine, self._host = engine, host

    @cached_property
    def controllers(self) -> "Controllers":
        """The controllers, created on first use, because the first frame does not need their modules."""
        from workbench.ui.main.wiring import Controllers

        return Controllers(self, self._engine(), self._host)

    def on_row_view_picked(self, event: CaseTree.Picked) -> None:
        """Treat a click on the current row like enter."""
        if event.view is self.tree_view:
            self.do("enter")

    def show_row(self) -> None:
        """Show the row under the cursor. Once the cursor rests, load its past runs, trend and costs."""
        super().show_row()
        self.controllers.past_results.cursor_moved()
        self.controllers.overview.cursor_moved()

    @property
    def overviews(self) -> "Showing":
        """The overviews of rows. Their delayed updates count towards the screen's paint rate."""
        overviews = super().overviews
        overviews.painted = self.controllers.news.painted
        return overviews

    def on_overview_pane_chosen(self) -> None:
        """Treat a click on the current item of the overview like enter."""
        self.controllers.overview.enter()

    def change_of(self, record: "Execution | None") -> "Change | None":
        """Return how the case's verdict differs from the one before, or None if it does not."""
        return self.controllers.watch.change_of(record)

    def action_move(self, direction: str) -> None:
        """Move in the side with the focus: `down`, `up`, `page_down` (half a page), `page_up`, `top` or `bottom`."""
        if self.in_right:
            self.right.move(direction)
            self.show_keys_here()  # In the same frame as the cursor.
        else:
            self.tree_view.move(direction)

    def action_open(self) -> None:
        """Expand the row or step in. In a pane, unfold."""
        if self.in_right:
            self.right.move("right")
        else:
            self.tree_view.open_row()

    def action_close(self) -> None:
        """Collapse the row or step out. In a pane, fold, then go to the cases."""
        if not self.in_right:
            self.tree_view.close_row()
        elif not self.right.move("left"):
            self.go_left()

    def action_enter(self) -> None:
        """Expand or collapse a row. On a case, go to its panes. In the filter field, keep the filter.

        In a pane, unfold or fold the item, or go to its source. In the overview, go to the changed case or filter.
        """
        if self.cases.input.has_focus:
            self.cases.input.action_done()
            return
        if self.in_right:
            if self.right.shows_case:
                self.right.detail.toggle_full()
            elif self.right.shows_overview:
                self.controllers.overview.enter()
            return
        row = self.rows.cursor
        if row is None or row.kind in ("case", "repeat") or not self.tree_view.toggle_row():
            self.go_right()

    def action_back(self) -> None:
        """Go back one step.

        This clears the filter that is being typed, leaves a pane, drops a range, undoes maximising, undoes a filter of
        the overview, clears the filter, or drops the marks.
        """
        if self.cases.input.has_focus:
            self.cases.input.action_clear()
        elif self.in_right:
            if not (self.right.shows_case and self.right.detail.go_back()):
                self.go_back()
        elif self.rows.anchor is not None:
            self.rows.drop_marks()
        elif self.maximised:
            self.maximise(False)
        elif not self.controllers.overview.back() and not self.cases.input.end():
            self.rows.drop_marks()
        self._show_marks()

    def action_turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) turn."""
        if self.right.shows_case:
            self.right.detail.go_to_turn(step)

    def action_to_event(self) -> None:
        """Go from the item under the cursor to its event in the trace, and back."""
        if not (self.right.shows_case and self.right.detail.to_event()):
            self.say("no event in the trace for this line")

    def action_pane(self, number: int | None = None) -> None:
        """Show the pane with this number. None, as from the key help, asks for the number."""
        if number is None:
            self.action_jump()
        elif self.right.shows_case:
            self.right.detail.show_pane(number)
            if self.has_class("-narrow"):
                self.go_right()
        else:
            self.say("put the cursor on a case first")

    def action_other_side(self) -> None:
        """Move the focus between the cases and the panes."""
        (self.go_left if self.in_right else self.go_right)()

    def action_jump(self) -> None:
        """Ask for a key and go to its target."""
        panes = self.right.detail.tabs if self.right.shows_case else ()
        self.app.push_screen(JumpScreen(panes), self._jumped)

    def action_maximise(self) -> None:
        """Maximise the current side, or show both sides again."""
        self.maximise(not self.maximised)

    def action_change(self, steps: int) -> None:
        """Widen the tree by this number of steps, or narrow it if the number is negative."""
        if not self.split.widen(steps * STEP):
            self.say("the tree cannot be wider" if steps > 0 else "the tree cannot be narrower")

    def action_hide_tree(self) -> None:
        """Hide or show the cases."""
        if self.has_class("-no-tree"):
            self.go_left()
        else:
            self.go_right()
            self.add_class("-no-tree")

    def action_mark(self) -> None:
        """Mark or unmark the row's cases, and go one row down. If a range was started, mark the range instead."""
        in_range = self.rows.anchor is not None
        self.rows.mark()
        if not in_range:
            self.tree_view.move("down")
        self._show_marks()

    def action_mark_range(self) -> None:
        """Start a range at the cursor, or mark the cases from its start to the cursor."""
        self.rows.mark_range()
        self._show_marks()

    def action_mark_all(self) -> None:
        """Mark all cases that the filter shows, or unmark them if all are marked."""
        self.rows.marks.toggle(self.rows.outline.all_cases())
        self._show_marks()

    def _show_marks(self) -> None:
        self.tree_view.refresh()
        self.show_state()

    def action_problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) case that failed or ended in an error."""
        before = self.rows.cursor
        wrapped = self.tree_view.next_problem(step)
        if wrapped is None:
            self.say(
                self.session.why_nothing_found("nothing failed" if self.rows.query.empty else "nothing failed here")
            )
        elif before == self.rows.cursor:
            self.say("no other problem")
        elif wrapped:
            self.say("wrapped around")

    def action_filter(self) -> None:
        """Open the filter."""
        self.remove_class("-no-tree")
        self.cases.input.open()

    def action_show_only(self, text: str) -> None:
        """Filter the cases by a text."""
        self.remove_class("-no-tree")
        self.set_filter(text)

    def action_sort(self) -> None:
        """Switch to the next sort order."""
        self.tree_view.next_sort()
        self.show_state()

    def _jumped(self, place: str | None) -> None:
        if place == "cases":
            self.go_left()
        elif place == "filter":
            self.action_filter()
        elif place is not None:
            self.action_pane(int(place))
            if self.right.shows_case:
                self.go_right()


def _calls(controller: str, method: str) -> Callable[..., Any]:
    def call(self: MainScreen, *arguments: Any) -> Any:
        return getattr(getattr(self.controllers, controller), method)(*arguments)

    return call


for _action in MAIN_SCREEN:
    if _action.by:
        setattr(MainScreen, f"action_{_action.method}", _calls(_action.by, _action.method))
