"""The text field for a value."""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from workbench.authoring.case_rows import CaseRow
from workbench.ui.editing.values import as_json, field_text, read_value
from workbench.ui.widgets.plain_text_area import PlainTextArea


class ValueField(PlainTextArea):
    """A text field of one or more lines. In a field of one line, enter saves.

    The text stays until it is saved or discarded.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "save", priority=True),
        Binding("escape", "leave", priority=True),
        Binding("enter", "enter", priority=True),
    ]

    class Saved(Message):
        """The user saves the value."""

    class Left(Message):
        """The user leaves the field without saving."""

    def __init__(self) -> None:
        super().__init__(show_line_numbers=False, tab_behavior="indent")
        self.row: CaseRow | None = None
        self._first = ""

    def take(self, row: CaseRow) -> None:
        """Load the value of a row, with the cursor at its end."""
        self.row = row
        self._first = field_text(row)
        self.show_line_numbers = as_json(row) and "\n" in self._first
        self.load_text(self._first)
        self.move_cursor(self.document.end)

    @property
    def changed(self) -> bool:
        """Whether the text differs from the saved value."""
        return self.text != self._first

    def value(self) -> Any:
        """Return the typed value.

        Raises:
            UnreadableError: The text is not valid JSON.
        """
        assert self.row is not None
        return read_value(self.text, self.row)

    def point_at(self, line: int, column: int) -> None:
        """Put the cursor on a line and column, both counted from 1."""
        self.show_line_numbers = True
        self.move_cursor((line - 1, column - 1))

    def action_save(self) -> None:
        """Report that the user saves the value."""
        self.post_message(self.Saved())

    def action_leave(self) -> None:
        """Report that the user leaves the field."""
        self.post_message(self.Left())

    def action_enter(self) -> None:
        """Save a value of one line. In longer ones, insert a line break."""
        if self.row is not None and self.row.form == "word" and not as_json(self.row) and "\n" not in self.text:
            self.post_message(self.Saved())
        else:
            self.insert("\n")
