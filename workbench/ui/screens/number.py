"""A question with a number for an answer."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.ui.widgets.plain_input import PlainInput


class NumberScreen(ModalScreen[int | None]):
    """Ends with a number from 1 to `most`, None if it was left. `question` is safe text."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave")]

    def __init__(self, question: str, proposed: int, most: int) -> None:
        super().__init__()
        self._question, self._proposed, self._most = question, proposed, most

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -small") as dialog:
            dialog.border_title = Content(self._question)
            yield PlainInput(str(self._proposed))
            yield Static("enter starts, esc leaves", classes="help", markup=False)

    def on_mount(self) -> None:
        self.query_one(PlainInput).select_all()

    def on_input_submitted(self) -> None:
        text = self.query_one(PlainInput).value.strip()
        if text.isdecimal() and 1 <= int(text) <= self._most:
            self.dismiss(int(text))
        else:
            self.query_one(".help", Static).update(Content(f"a number from 1 to {self._most:,}, please"))

    def action_leave(self) -> None:
        self.dismiss(None)
