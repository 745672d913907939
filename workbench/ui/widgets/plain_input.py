"""A text field that cannot be fed escape codes by pasting."""

from textual.widgets import Input

from workbench.text import one_line


class PlainInput(Input):
    """An `Input` without blinking (nothing is sent while nobody types) that shows only safe text."""

    def __init__(self, value: str = "", *, placeholder: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        safe = one_line(value)
        return safe + " " if value.endswith(" ") and safe else safe
