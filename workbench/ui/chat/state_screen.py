"""The dialog that edits the initial state of a session."""

import json
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.text.safe_text import one_line
from workbench.ui.editing.values import UnreadableError
from workbench.ui.widgets.plain_text_area import PlainTextArea

_WAYS = "A JSON object. ctrl+o accepts, esc closes."


class StateScreen(ModalScreen[dict[str, Any] | None]):
    """A dialog that edits an object as JSON. Its result is None if the user left it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "take", priority=True),
        Binding("escape", "leave", priority=True),
    ]

    def __init__(self, title: str, value: dict[str, Any]) -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        """Lay out the field and its help."""
        with Vertical(classes="dialog -state") as dialog:
            dialog.border_title = Content(self._title)
            yield PlainTextArea(show_line_numbers=True, tab_behavior="indent")
            yield Static(_WAYS, classes="help", markup=False)

    def on_mount(self) -> None:
        """Load the object into the field."""
        field = self.query_one(PlainTextArea)
        field.load_text(json.dumps(self._value, indent=2, ensure_ascii=False) if self._value else "{\n  \n}")
        field.move_cursor(field.document.end if self._value else (1, 2))
        field.focus()

    def action_take(self) -> None:
        """Accept the object, or show what is wrong with the text."""
        field = self.query_one(PlainTextArea)
        try:
            self.dismiss(read_object(field.text))
        except UnreadableError as error:
            field.move_cursor((error.line - 1, error.column - 1))
            message = f"line {error.line}, column {error.column}: {error}"
            self.query_one(".help", Static).update(Content(one_line(message)))

    def action_leave(self) -> None:
        """Close the dialog and keep the object as it was."""
        self.dismiss(None)


def read_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. An empty text is an empty object.

    Raises:
        UnreadableError: The text is not valid JSON, or not an object.
    """
    try:
        value = json.loads(text, parse_constant=_no_number) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise UnreadableError(error.lineno, error.colno, error.msg) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(1, 1, str(error)) from None
    if not isinstance(value, dict):
        raise UnreadableError(1, 1, "the state must be an object: {…}")
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
