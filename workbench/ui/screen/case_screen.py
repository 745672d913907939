"""The base of screens beside the main screen that show the panes of a case."""

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical

from workbench.ui.dialogs.screens import SplitScreen
from workbench.ui.screen.sides import Right
from workbench.ui.terminal.host import Host
from workbench.ui.widgets.footer import bindings
from workbench.ui.widgets.rows import RowView


class CaseScreen(SplitScreen):
    """A screen with a list of cases on the left, and the panes of the case under the cursor on the right."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("pane", "next_turn", "previous_turn", "to_event")]

    def __init__(
        self, keys: Mapping[str, tuple[str, ...]], host: Host, listed: RowView, frame: Vertical, right: Right
    ) -> None:
        super().__init__(keys, host, listed, frame, right, right, right.move)
        self.right = right
        right.add_class("details")

    @property
    def case_shown(self) -> bool:
        """Whether the panes of a case are on the screen."""
        return self.right.shows_case

    def action_pane(self, number: int) -> None:
        """Show the pane with this number."""
        if self.case_shown:
            self.right.detail.show_pane(number)
            if self.has_class("-narrow"):
                self.go_right()

    def action_turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) turn."""
        if self.case_shown:
            self.right.detail.go_to_turn(step)

    def action_to_event(self) -> None:
        """Go from the item under the cursor to its event in the trace, and back."""
        if not (self.case_shown and self.right.detail.to_event()):
            self.say("no event in the trace for this line")
