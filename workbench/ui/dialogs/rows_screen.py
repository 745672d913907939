"""The base of dialogs with a list of rows: keys that move the cursor, and a message line."""

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Static

from workbench.ui.actions import Where
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.widgets.keys import bindings
from workbench.ui.widgets.rows import RowView


class RowsScreen(ModalScreen[ScreenResultType]):
    """A dialog with a list of rows.

    A subclass lays out `rows` and `message`. If `text` is set, page keys scroll it instead of the rows. `where` names
    its actions for the help.
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

    def on_row_view_picked(self) -> None:
        """Treat a click on the current row like enter."""
        self.action_enter()

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show safe text in the message line."""
        self.message.set_class(warning, "-warning")
        self.message.update(Content(text))
