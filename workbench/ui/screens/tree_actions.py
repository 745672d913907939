"""Moving, marking, finding: the keys of the tree and the panes."""

from workbench.ui.screens.jump import JumpScreen
from workbench.ui.screens.moving import Moving
from workbench.ui.screens.shell import Shell
from workbench.ui.widgets.case_tree import CaseTree


class TreeActions(Moving, Shell):
    """Letters that move go to the side that has the focus."""

    # Move

    def action_open(self) -> None:
        if not self.in_right:
            self.tree_view.open_row()
        elif self.right.shows_case:
            self.right.detail.move("right")

    def action_close(self) -> None:
        if not self.in_right:
            self.tree_view.close_row()
        elif not (self.right.shows_case and self.right.detail.move("left")):
            self.go_left()

    def action_enter(self) -> None:
        if self.in_right:
            if self.right.shows_case:
                self.right.detail.action_toggle_full()
            return
        row = self.tree_view.row
        if row is None or row.kind in ("case", "repeat") or not self.tree_view.toggle_row():
            self.go_right()

    def action_back(self) -> None:
        if self.in_right:
            if not (self.right.shows_case and self.right.detail.go_back()):
                self.go_left()
        elif self.tree_view.model.anchor is not None:
            self.tree_view.drop_marks()
        elif self.has_class("-maximised"):
            self.remove_class("-maximised")
        elif not self.cases.clear_filter():
            self.tree_view.drop_marks()
        self.cases.show_state()

    def action_next_turn(self) -> None:
        if self.right.shows_case:
            self.right.detail.action_next_turn()

    def action_previous_turn(self) -> None:
        if self.right.shows_case:
            self.right.detail.action_previous_turn()

    def action_to_event(self) -> None:
        if not (self.right.shows_case and self.right.detail.to_event()):
            self.say("there is no event of that in the trace")

    # Panes

    def action_pane(self, number: int) -> None:
        if self.right.shows_case:
            self.right.detail.show_pane(number)
            if self.has_class("-narrow"):
                self.go_right()

    def action_next_pane(self) -> None:
        (self.go_left if self.in_right else self.go_right)()

    action_previous_pane = action_next_pane

    def action_jump(self) -> None:
        panes = self.right.detail.pane_titles if self.right.shows_case else ()
        self.app.push_screen(JumpScreen(panes), self._jumped)

    def action_maximise(self) -> None:
        self.toggle_class("-maximised")

    def action_hide_tree(self) -> None:
        if self.has_class("-no-tree"):
            self.go_left()
        else:
            self.go_right()
            self.add_class("-no-tree")

    # Mark

    def action_mark(self) -> None:
        self.tree_view.mark()
        self.cases.show_state()

    def action_mark_range(self) -> None:
        self.tree_view.mark_range()
        self.cases.show_state()

    def action_mark_all(self) -> None:
        self.tree_view.mark_all()
        self.cases.show_state()

    # Find

    def action_next_problem(self) -> None:
        self._problem(1)

    def action_previous_problem(self) -> None:
        self._problem(-1)

    def action_filter(self) -> None:
        self.remove_class("-no-tree")
        self.cases.open_filter()

    def action_sort(self) -> None:
        self.tree_view.next_sort()
        self.cases.show_state()

    def move_side(self, direction: str) -> None:
        if not self.in_right:
            self.tree_view.move(direction)
        elif self.right.shows_case:
            self.right.detail.move(direction)  # type: ignore[arg-type]
        else:
            self.right.overview.move(direction)

    def _problem(self, step: int) -> None:
        before = self.tree_view.row
        anew = self.tree_view.next_problem(step)
        if anew is None:
            self.say(self.session.nothing_found("nothing failed"))
        elif before == self.tree_view.row:
            self.say("this is the only one")
        elif anew:
            self.say("from the other end again")

    def _jumped(self, place: str | None) -> None:
        if place == "cases":
            self.go_left()
        elif place == "filter":
            self.action_filter()
        elif place is not None:
            self.right.detail.show_pane(int(place))
            self.go_right()

    def on_row_view_picked(self, event: CaseTree.Picked) -> None:
        if event.view is self.tree_view:
            self.action_enter()
