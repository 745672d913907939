"""The field in which a value is typed."""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from workbench.authoring.case_rows import CaseRow
from workbench.ui.editing.values import as_json, field_text, read_value
from workbench.ui.widgets.plain_input import PlainTextArea


class ValueField(PlainTextArea):
    """Several lines, or one: then enter saves. What is typed stays until it is saved or dropped."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "save", priority=True),
        Binding("escape", "leave", priority=True),
        Binding("enter", "enter", priority=True),
    ]

    class Saved(Message):
        """The value is to be saved."""

    class Left(Message):
        """The user wants out of the field."""

    def __init__(self) -> None:
        super().__init__(show_line_numbers=False, tab_behavior="indent")
        self.row: CaseRow | None = None
        self._first = ""

    def take(self, row: CaseRow) -> None:
        """Shows the value of a row, with the cursor at its end."""
        self.row = row
        self._first = field_text(row)
        self.show_line_numbers = as_json(row) and "\n" in self._first
        self.load_text(self._first)
        self.move_cursor(self.document.end)

    @property
    def changed(self) -> bool:
        """Whether anything was typed that is not saved."""
        return self.text != self._first

    def value(self) -> Any:
        """What was typed.

        Raises:
            UnreadableError: it is no JSON.
        """
        assert self.row is not None
        return read_value(self.text, self.row)

    def point_at(self, line: int, column: int) -> None:
        """Puts the cursor on a place, both counted from 1."""
        self.show_line_numbers = True
        self.move_cursor((line - 1, column - 1))

    def action_save(self) -> None:
        self.post_message(self.Saved())

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def action_enter(self) -> None:
        if self.row is not None and self.row.form == "word" and not as_json(self.row) and "\n" not in self.text:
            self.post_message(self.Saved())
        else:
            self.insert("\n")
