"""The rows of a case, text fields for their values, and the base of screens with rows and a field."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import ScreenResultType
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Edit, EditResult

from workbench.editing.case_rows import CaseRow
from workbench.files.faults import Location
from workbench.results.cells import fit
from workbench.text.safe_text import one_line, plain
from workbench.ui.actions import Action
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.editing.drafts import as_json, field_text, in_short, read_value
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.rows import Piece, RowsOf, RowView


class PlainTextArea(TextArea):
    """A text field of several lines that removes control codes from its input. Its cursor does not blink."""

    def __init__(self, **options: Any) -> None:
        super().__init__(soft_wrap=True, compact=True, **options)
        self.cursor_blink = False
        self.indent_width = 2

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit, with control codes removed from its text."""
        edit.text = typed(edit.text)
        return super().edit(edit)


def typed(text: str) -> str:
    """Return typed or pasted text without control codes. Tabs and line breaks stay."""
    return "\t".join(plain(piece, limit=len(piece) + 1) for piece in text.split("\t"))


class EditField(PlainTextArea):
    """A text field that ctrl+o saves and esc leaves. The text stays until it is saved or discarded."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "save", priority=True),
        Binding("escape", "leave", priority=True),
    ]

    class Saved(Message):
        """The user's request to save the text."""

    class Left(Message):
        """The user's request to leave the field without saving."""

    def __init__(self) -> None:
        super().__init__(show_line_numbers=False, tab_behavior="indent")

    def action_save(self) -> None:
        """Post `Saved`."""
        self.post_message(self.Saved())

    def action_leave(self) -> None:
        """Post `Left`."""
        self.post_message(self.Left())


class ValueField(EditField):
    """A text field for one value. Enter saves a value that has only one line, such as an ID."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "enter", priority=True)]

    def __init__(self) -> None:
        super().__init__()
        self.row: CaseRow | None = None
        self._first = ""

    def load(self, row: CaseRow) -> None:
        """Load the value of a row, with the cursor at its end."""
        self.row = row
        self._first = field_text(row)
        self.show_line_numbers = as_json(row) and "\n" in self._first
        self.load_text(self._first)
        self.move_cursor(self.document.end)

    @property
    def changed(self) -> bool:
        """Whether the text differs from the loaded value."""
        return self.text != self._first

    def value(self) -> Any:
        """Return the typed value.

        Raises:
            UnreadableError: The value is edited as JSON, and the text is not valid JSON.
        """
        assert self.row is not None
        return read_value(self.text, self.row)

    def point_at(self, line: int, column: int) -> None:
        """Put the cursor on a line and column, both counted from 1, and show line numbers."""
        self.show_line_numbers = True
        self.move_cursor((line - 1, column - 1))

    def action_enter(self) -> None:
        """Save the value if it can have only one line. Otherwise, insert a line break."""
        if self.row is not None and self.row.form == "word" and not as_json(self.row) and "\n" not in self.text:
            self.post_message(self.Saved())
        else:
            self.insert("\n")


_NAME_WIDTH = 11
_LOOKS = {"call": "accent", "user": "strong"}


class RowList(RowsOf[CaseRow]):
    """Rows with a cursor. The cursor also stops on headings of turns, because turns can be moved and deleted."""

    def show_rows(self, rows: Sequence[CaseRow], *, at: Location | None = None) -> None:
        """Replace the rows. With `at`, move the cursor to the first row at or inside that location."""
        self.rows = rows
        self.rows_changed()
        if at is not None:
            inside = (number for number, row in enumerate(rows) if row.location[: len(at)] == at)
            number = next(inside, None)
            if number is not None:
                self.move_to(number)
        self.move_to(self.cursor)
        self.show_cursor()
        self.when_moved()

    def next_turn(self, step: int) -> None:
        """Go to the heading of the next (1) or previous (-1) turn."""
        headings = [number for number, row in enumerate(self.rows) if row.form == "heading"]
        ahead = [number for number in headings if (number - self.cursor) * step > 0]
        if ahead:
            self.move_to(min(ahead) if step > 0 else max(ahead))

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return name, author and value of a row."""
        row = self.rows[position]
        if row.form == "heading":
            return [(row.name, "label"), (" " + "─" * max(width - len(row.name) - 2, 0), "muted")], []
        indent = "  " if row.turn is not None else ""
        name = fit(indent + row.name, _NAME_WIDTH + 2)
        author = f"{one_line(row.author, limit=40)}  " if row.author and width > 40 and row.kind != "call" else ""
        if row.missing or row.value is None:
            return [(name, "label"), ("—", "muted")], []
        return [(name, "label"), (author, "muted"), (in_short(row.value), _LOOKS.get(row.kind, ""))], []


class FieldScreen(RowsScreen[ScreenResultType]):
    """A screen with rows and a field. Typed text is never discarded without a warning.

    A subclass lays out `field`, `key_line` and `field_line`. `verb` says what ctrl+o does, in two forms such as
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
        """Show the field, which already holds a value. `key` names the keys that save it, `words` is a message."""
        self._show_field(True)
        self.field_line.update(Content(f" {key} {self.verb[0]} · esc closes"))
        self.say(words)
        self.field.focus()

    def out_of_field(self) -> None:
        """Hide the field and go back to the rows."""
        self._show_field(False)
        self.rows.focus()

    def left_field(self) -> None:
        """Do nothing after the user has left the field without saving. Subclasses override this method."""

    def _show_field(self, shown: bool) -> None:
        self._dropping = False
        self.field.display = self.field_line.display = shown
        self.key_line.display = not shown

    def on_edit_field_left(self) -> None:
        """Leave the field. If typed text would be lost, warn the first time."""
        if self.field.changed and not self._dropping:
            self._dropping = True
            self.say(f"not {self.verb[1]} yet: ctrl+o {self.verb[0]} it, esc again discards it")
            return
        self.out_of_field()
        self.left_field()

    def on_text_area_changed(self) -> None:
        """Forget an earlier warning, because the text has changed."""
        self._dropping = False
