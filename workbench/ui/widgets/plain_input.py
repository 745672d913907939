"""A text field of one line that accepts no escape codes. It does not blink, so that an idle screen sends nothing."""

from textual.widgets import Input

from workbench.text.safe_text import one_line


class PlainInput(Input):
    """An `Input` that shows only safe text."""

    def __init__(self, value: str = "", *, placeholder: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Return the value as one safe line. A blank at its end stays."""
        safe = one_line(value)
        return safe + " " if value.endswith(" ") and safe else safe
