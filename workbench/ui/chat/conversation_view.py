"""The widget that shows the pages of a conversation."""

from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.message import Message

from workbench.results.lines import Line
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.chat.conversation import Conversation
from workbench.ui.chat.pages import CONVERSATION, PAGES
from workbench.ui.detail.reader import Reader
from workbench.ui.detail.reading import Reading
from workbench.ui.widgets.keys import bindings

_DOING = {
    "starting": ("starting the agent", "status-running"),
    "answering": ("the agent is working", "status-running"),
    "over": ("over", "status-error"),
}


class ConversationView(Reader[Conversation]):
    """The pages of a conversation. The view follows the end while it is visible."""

    DEFAULT_CSS = "ConversationView { & > Head { height: 2; } }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "top", "bottom", "next_turn", "previous_turn", "pane", "open", "close"),
        *bindings("to_event"),
    ]

    class Turned(Message):
        """The user opened another page."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(Reading(conversation, lambda _: PAGES))

    def show(self, conversation: Conversation) -> None:
        """Show a conversation with its new events."""
        self._reading.take(conversation, same=conversation is self._reading.subject)
        self.refresh_subject()

    def turn_page(self, page: int) -> None:
        """Show another page. The conversation opens at its end, other pages at their start."""
        self._touched = False
        self.open_pane(PAGES[page].title)
        self._open()
        self.post_message(self.Turned())

    def next_page(self) -> None:
        """Show the next page. After the last one comes the first."""
        self.turn_page((self._reading.panes.index(self._reading.pane) + 1) % len(PAGES))

    def toggle_texts(self) -> None:
        """Show long texts in full, or shorten them again."""
        self._set_full(not self._reading.full)

    # Reader

    @property
    def is_over(self) -> bool:
        """Whether the content is final. A conversation can always continue."""
        return False

    @property
    def opens_at_end(self) -> bool:
        """Whether the current page opens at its end."""
        return self._reading.pane.title == CONVERSATION

    def position(self) -> str:
        """Return the number of turns."""
        turns = len(self._reading.subject.turns)
        return counted(turns, "turn") if turns else ""

    def summary(self) -> Line:
        """Return the state of the conversation, or the agent's framework."""
        conversation = self._reading.subject
        return Text.styled(*_DOING.get(conversation.doing, (one_line(conversation.framework), "muted")))

    def show_pane(self, n: int) -> None:
        """Show the page with a number, counted from 1."""
        if 1 <= n <= len(PAGES):
            self.turn_page(n - 1)
        else:
            self._head.explain(f"a conversation has pages 1 to {len(PAGES)}")

    # Keys

    action_move, action_turn, action_to_event = Reader.move, Reader.go_to_turn, Reader.to_event
    action_pane = show_pane

    def action_open(self) -> None:
        """Unfold the selected item."""
        if self._body.item is not None:
            self.move("right")

    def action_close(self) -> None:
        """Fold the selected item."""
        if self._body.item is not None:
            self.move("left")
