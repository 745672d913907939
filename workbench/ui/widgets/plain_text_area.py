"""A text field of several lines that accepts no escape codes. It does not blink."""

from typing import Any

from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from workbench.text.safe_text import plain


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
