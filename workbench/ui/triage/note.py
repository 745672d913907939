"""The field for a note on a verdict."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from workbench.ui.widgets.plain_input import PlainInput


class NoteInput(PlainInput):
    """The field for a note. Enter keeps the note and goes back; esc restores the earlier note."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,up,down,tab", "done"),
        Binding("escape", "discard"),
    ]

    class Done(Message):
        """The user goes back."""

    def __init__(self, *, placeholder: str) -> None:
        super().__init__(placeholder=placeholder)
        self._before = ""

    def on_focus(self) -> None:
        """Remember the note, so that esc can restore it."""
        self._before = self.value

    def action_done(self) -> None:
        """Keep the note and go back."""
        self.post_message(self.Done())

    def action_discard(self) -> None:
        """Restore the earlier note and go back."""
        self.value = self._before
        self.post_message(self.Done())
