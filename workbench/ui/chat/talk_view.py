"""The pages of a conversation, and the keys with which they are read."""

from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from workbench.counting import counted
from workbench.rendering.lines import Line, Segment
from workbench.text import one_line
from workbench.ui.chat.pages import CONVERSATION, PAGES
from workbench.ui.chat.talk import Talk
from workbench.ui.detail.reader import Reader
from workbench.ui.detail.reading import Reading
from workbench.ui.keys import bindings

_DOING = {
    "starting": ("starting the agent …", "status-running"),
    "answering": ("the agent is at work …", "status-running"),
    "over": ("over", "status-error"),
}


class TalkView(Reader[Talk]):
    """Reads a conversation. Its end is followed as long as it is in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "top", "bottom", "next_turn", "previous_turn", "pane", "open", "close"),
        *bindings("to_event"),
    ]

    class Turned(Message):
        """Another page is shown."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(Reading(talk, lambda _: PAGES))

    def show(self, talk: Talk) -> None:
        """Show what is new in a conversation, or another one."""
        self._reading.take(talk, same=talk is self._reading.subject)
        self.refresh_subject()

    def turn_page(self, page: int) -> None:
        """Show another page: the conversation at its end, the others from their beginning."""
        self._touched = False
        self._reading.choose(page + 1)
        self._open()
        self.post_message(self.Turned())

    def next_page(self) -> None:
        """Show the page behind this one, after the last the first."""
        self.turn_page((self._reading.panes.index(self._reading.pane) + 1) % len(PAGES))

    def toggle_texts(self) -> None:
        """Show all of long texts, or their beginnings again."""
        self._set_full(not self._reading.full)

    # Reader

    @property
    def is_over(self) -> bool:
        return False

    @property
    def opens_at_end(self) -> bool:
        return self._reading.pane.title == CONVERSATION

    def position(self) -> str:
        turns = len(self._reading.subject.turns)
        return counted(turns, "turn") if turns else ""

    def summary(self, width: int) -> Line:
        talk = self._reading.subject
        return (Segment(*_DOING.get(talk.doing, (one_line(talk.framework), "muted"))),)

    def show_pane(self, n: int) -> None:
        if n <= len(PAGES):
            self.turn_page(n - 1)

    # Keys

    action_move, action_turn, action_to_event = Reader.move, Reader.go_to_turn, Reader.to_event
    action_pane = show_pane

    def action_open(self) -> None:
        if self._body.item is not None:
            self.move("right")

    def action_close(self) -> None:
        if self._body.item is not None:
            self.move("left")
