"""The base of screens with rows whose values are edited in a field."""

from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.screen import ScreenResultType
from textual.widgets import Static

from workbench.actions import Action
from workbench.ui.dialogs.rows_screen import RowsScreen
from workbench.ui.editing.field import ValueField
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.rows import RowView


class FieldScreen(RowsScreen[ScreenResultType]):
    """A screen with rows and a field. Esc never discards typed text without a warning.

    A subclass lays out `field`, `key_line` and `field_line`. `verb` names the effect of ctrl+o in two forms, such as
    ("saves", "saved").
    """

    verb = ("saves", "saved")

    def __init__(self, rows: RowView, keys: Mapping[str, tuple[str, ...]], footer: Sequence[Action]) -> None:
        super().__init__(rows, keys)
        self.field = ValueField()
        self.key_line = KeyLine(footer, keys)
        self.field_line = Static("", classes="field-keys", markup=False)
        self.field.display = self.field_line.display = False
        self._dropping = False

    def into_field(self, words: str = "", *, key: str = "ctrl+o") -> None:
        """Show the field, which already holds a value. `key` saves it. `words` is a message for the user."""
        self._show_field(True)
        self.field_line.update(Content(f" {key} {self.verb[0]} · esc closes"))
        self.say(words)
        self.field.focus()

    def out_of_field(self) -> None:
        """Hide the field and go back to the rows."""
        self._show_field(False)
        self.rows.focus()

    def left_field(self) -> None:
        """React to the user leaving the field without a change. Subclasses override it."""

    def _show_field(self, shown: bool) -> None:
        self._dropping = False
        self.field.display = self.field_line.display = shown
        self.key_line.display = not shown

    def on_value_field_left(self) -> None:
        """Leave the field. If its text would be lost, warn first."""
        if self.field.changed and not self._dropping:
            self._dropping = True
            self.say(f"not {self.verb[1]} yet: ctrl+o {self.verb[0]} it, esc again discards it")
            return
        self.out_of_field()
        self.left_field()

    def on_text_area_changed(self) -> None:
        """Warn again before new text is discarded."""
        self._dropping = False
