"""A dialog about rows whose values are typed in a field: going into it, and out of it without losing what was typed."""

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
    """A subclass puts `field`, `key_line` and `field_line` where they belong. `verb` is what ctrl+o does with what was
    typed, in two forms: ("saves", "saved")."""

    verb = ("saves", "saved")

    def __init__(self, rows: RowView, keys: Mapping[str, tuple[str, ...]], footer: Sequence[Action]) -> None:
        super().__init__(rows, keys)
        self.field = ValueField()
        self.key_line = KeyLine(footer, keys)
        self.field_line = Static("", classes="field-keys", markup=False)
        self.field.display = self.field_line.display = False
        self._dropping = False

    def into_field(self, words: str = "", *, key: str = "ctrl+o") -> None:
        """Shows the field, which holds a value already; `key` takes what is typed, `words` are said."""
        self._show_field(True)
        self.field_line.update(Content(f" {key} {self.verb[0]} · esc leaves it as it was"))
        self.say(words)
        self.field.focus()

    def out_of_field(self) -> None:
        """Back to the rows."""
        self._show_field(False)
        self.rows.focus()

    def left_field(self) -> None:
        """The user has left the field; nothing came of it."""

    def _show_field(self, shown: bool) -> None:
        self._dropping = False
        self.field.display = self.field_line.display = shown
        self.key_line.display = not shown

    def on_value_field_left(self) -> None:
        if self.field.changed and not self._dropping:
            self._dropping = True
            self.say(f"not {self.verb[1]}: ctrl+o {self.verb[0]} it, esc once more drops it")
            return
        self.out_of_field()
        self.left_field()

    def on_text_area_changed(self) -> None:
        self._dropping = False
