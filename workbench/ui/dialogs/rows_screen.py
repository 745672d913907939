"""What dialogs about a list of rows have in common: the keys that move the cursor, the list of the keys, and the line
that says what came of it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Static

from workbench.actions import Where
from workbench.ui.dialogs.key_help import key_items
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.items import searching
from workbench.ui.keys import bindings
from workbench.ui.widgets.rows import RowView


class RowsScreen(ModalScreen[ScreenResultType]):
    """A subclass puts `rows` and `message` where they belong."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter", "back"),
    ]

    def __init__(self, rows: RowView, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self.rows, self.keys_of = rows, keys
        self.message = Static("", classes="message", markup=False)

    def action_move_down(self) -> None:
        self.rows.move("down")

    def action_move_up(self) -> None:
        self.rows.move("up")

    def action_page_down(self) -> None:
        self.rows.move("page_down")

    def action_page_up(self) -> None:
        self.rows.move("page_up")

    def action_top(self) -> None:
        self.rows.move("top")

    def action_bottom(self) -> None:
        self.rows.move("bottom")

    def action_enter(self) -> None:
        """What enter does with the row under the cursor."""

    def on_row_view_picked(self) -> None:
        self.action_enter()

    def show_keys(self, where: Where, title: str) -> None:
        """The keys that work here; one of them can be picked."""
        self.app.push_screen(PickScreen(title, searching(key_items(where, self.keys_of))), self._do)

    def _do(self, action: Any) -> None:
        if action is not None:
            self.call_later(self.run_action, action)

    def say(self, text: str, *, warning: bool = False) -> None:
        """Safe text in the line that says what came of it."""
        self.message.set_class(warning, "-warning")
        self.message.update(Content(text))
