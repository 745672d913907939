"""Text fields that accept no escape codes. They do not blink, so that an idle screen sends nothing."""

from typing import Any

from textual.widgets import Input, TextArea
from textual.widgets.text_area import Edit, EditResult

from workbench.text import one_line, plain


class PlainInput(Input):
    """An `Input` that shows only safe text."""

    def __init__(self, value: str = "", *, placeholder: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Return the value as one safe line. A blank at its end stays."""
        safe = one_line(value)
        return safe + " " if value.endswith(" ") and safe else safe


class PlainTextArea(TextArea):
    """A `TextArea` that takes only safe text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(soft_wrap=True, compact=True, **options)
        self.cursor_blink = False
        self.indent_width = 2

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit with safe text."""
        edit.text = typed(edit.text)
        return super().edit(edit)


def typed(text: str) -> str:
    """Return typed or pasted text without control codes. Tabs and line breaks stay."""
    return "\t".join(plain(piece, limit=len(piece) + 1) for piece in text.split("\t"))
