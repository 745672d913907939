"""Where a message to the agent is typed: as many lines as it has, and enter sends it."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult

from workbench.ui.widgets.plain_input import PlainTextArea, typed

LONGEST = 100_000
"""Characters of a message."""


class MessageBox(PlainTextArea):
    """Grows with its lines. Line breaks of what is pasted stay; ctrl+n makes one (and shift+enter, where a terminal
    tells it from enter). ↑ in an empty box brings back the message before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", priority=True),
        Binding("ctrl+n,shift+enter", "new_line", priority=True),
        Binding("up", "earlier"),
        Binding("pageup", "screen.move('page_up')"),
        Binding("pagedown", "screen.move('page_down')"),
    ]

    class Sent(Message):
        """The message is to be sent."""

    class Cut(Message):
        """What was pasted was too long, and its end is missing."""

    def __init__(self) -> None:
        super().__init__(
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="your message",
        )
        self._before = ""

    def edit(self, edit: Edit) -> EditResult:
        edit.text = typed(edit.text)
        room = LONGEST - len(self.text)
        if len(edit.text) > room:
            edit.text = edit.text[: max(room, 0)]
            self.post_message(self.Cut())
        return super().edit(edit)

    def take(self) -> str:
        """The message, without blank lines around it; the box is empty then, unless there was none."""
        message = self.text.strip()
        if message:
            self._before = message
            self.load_text("")
        return message

    def action_send(self) -> None:
        self.post_message(self.Sent())

    def action_new_line(self) -> None:
        start, end = self.selection
        self.replace("\n", start, end, maintain_selection_offset=False)

    def action_earlier(self) -> None:
        if self.text or not self._before:
            self.action_cursor_up()
        else:
            self.load_text(self._before)
            self.move_cursor(self.document.end)
