"""The field for a message to the agent."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult

from workbench.ui.widgets.plain_text_area import PlainTextArea, typed

LONGEST = 100_000
"""Maximum length of a message, in characters."""


class MessageBox(PlainTextArea):
    """A text field that grows with its lines. Enter sends the message.

    Line breaks in pasted text stay. ctrl+n inserts one, and so does shift+enter if the terminal can tell it from
    enter. ↑ in an empty box brings back the previous message.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", priority=True),
        Binding("ctrl+n,shift+enter", "new_line", priority=True),
        Binding("up", "previous_message"),
        Binding("pageup", "screen.move('page_up')"),
        Binding("pagedown", "screen.move('page_down')"),
    ]

    class Sent(Message):
        """The user sends the message."""

    class Cut(Message):
        """The pasted text was too long, and its end is missing."""

    def __init__(self) -> None:
        super().__init__(
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="your message",
        )
        self._before = ""

    def edit(self, edit: Edit) -> EditResult:
        """Insert text without control characters, up to the maximum length."""
        edit.text = typed(edit.text)
        room = LONGEST - len(self.text)
        if len(edit.text) > room:
            edit.text = edit.text[: max(room, 0)]
            self.post_message(self.Cut())
        return super().edit(edit)

    def take(self) -> str:
        """Return the message without blank lines around it, and empty the box."""
        message = self.text.strip()
        if message:
            self._before = message
            self.load_text("")
        return message

    def action_send(self) -> None:
        """Send the message."""
        self.post_message(self.Sent())

    def action_new_line(self) -> None:
        """Insert a line break."""
        start, end = self.selection
        self.replace("\n", start, end, maintain_selection_offset=False)

    def action_previous_message(self) -> None:
        """Bring back the previous message, or move the cursor up."""
        if self.text or not self._before:
            self.action_cursor_up()
        else:
            self.load_text(self._before)
            self.move_cursor(self.document.end)
