"""The dialog that asks for a name."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.text.safe_text import one_line
from workbench.ui.widgets.plain_input import PlainInput


class NameScreen(ModalScreen[str | None]):
    """A dialog that asks for a name. Its result is None if the user left it.

    `fault` returns what is wrong with a name, or "" to accept it. `question` is safe text. `proposed` is the initial
    text of the field.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave")]

    def __init__(self, question: str, fault: Callable[[str], str], proposed: str = "", ways: str = "") -> None:
        super().__init__()
        self._question, self._fault, self._proposed = question, fault, proposed
        self._ways = ways or "enter accepts · esc closes"

    def compose(self) -> ComposeResult:
        """Lay out the field and its help."""
        with Vertical(classes="dialog -small") as dialog:
            dialog.border_title = Content(self._question)
            yield PlainInput(self._proposed)
            yield Static(self._ways, classes="help", markup=False)

    def on_mount(self) -> None:
        """Select the proposed name, so that typing replaces it."""
        self.query_one(PlainInput).select_all()

    def on_input_changed(self) -> None:
        """Replace the message about a fault with the keys."""
        self.query_one(".help", Static).update(Content(self._ways))

    def on_input_submitted(self) -> None:
        """Accept the name, or show what is wrong with it."""
        name = self.query_one(PlainInput).value.strip()
        fault = self._fault(name)
        if fault:
            self.query_one(".help", Static).update(Content(one_line(fault)))
        else:
            self.dismiss(name)

    def action_leave(self) -> None:
        """Close the dialog without a name."""
        self.dismiss(None)
