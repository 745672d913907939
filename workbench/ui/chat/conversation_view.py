"""The pages of a conversation, and the widget that shows them."""

from typing import Any, ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.message import Message

from workbench.files.invocation import content_text
from workbench.results.document import Document
from workbench.results.error import error_lines
from workbench.results.lines import Line, View, hang, hang_text, heading, remark, safe
from workbench.results.panes import Pane
from workbench.results.texts import pretty_lines
from workbench.results.trace import add_trace, add_turn, output_lines
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain
from workbench.ui.chat.conversation import Conversation, ConversationTurn
from workbench.ui.detail.reader import Reader
from workbench.ui.detail.reading import Reading
from workbench.ui.widgets.footer import bindings

MOST_LINES = 1000
"""Maximum number of lines of a state or a part of a case. More would delay each key."""


def conversation_page(conversation: Conversation, view: View) -> Document:
    """Return the page with all turns, oldest first."""
    document = Document()
    for notice in conversation.notices:
        document.add(hang_text(Text.styled(" ! ", "status-not-evaluated"), safe(notice.message), view.width - 1, 3))
        if notice.hint:
            document.add(hang_text(Text.styled(" → ", "hint"), safe(notice.hint), view.width - 1, 3))
        document.gap()
    if conversation.initial:
        document.add([heading("initial state", view.width)])
        document.add(_state_lines(conversation.initial, view))
        document.gap()
    for number, item in enumerate(conversation.turns):
        start = len(document.lines)
        document.turns.append(start)
        laid = _turn(number, item, view)
        document.add(laid.lines)
        for name, lines in laid.places.items():
            document.places[name] = range(start + lines.start, start + lines.stop)
    document.add(_ending(conversation, view))
    return document


def _turn(number: int, item: ConversationTurn, view: View) -> Document:
    """Return the lines of a turn. Finished turns are cached, because streamed text repaints the page often."""
    if item.laid is not None and item.laid[0] == view:
        return item.laid[1]
    document = Document()
    end: Line = Text.styled("…", "label") if item.going else Text()
    document.add([heading(f"turn {number + 1}", view.width, end)])
    add_turn(document, number, item.shown, view)
    if item.error is not None:
        document.add(error_lines(item.error, view, traceback=True))
    document.gap()
    if not item.going:
        item.laid = view, document
    return document


def state_page(conversation: Conversation, view: View) -> Document:
    """Return the page with the current and the initial session state."""
    document = Document()
    current = conversation.state
    document.add([heading("current session state", view.width)])
    if current is None:
        document.add(remark("Not known yet.", view))
    elif current.why:
        document.add(remark(plain(current.why), view))
    elif current.state == {}:
        document.add(remark("Empty.", view))
    else:
        document.add(_state_lines(current.state, view))
    document.gap()
    document.add([heading("initial state", view.width)])
    if conversation.initial:
        document.add(_state_lines(conversation.initial, view))
    else:
        document.add(remark("Empty. e edits it before the first message.", view))
    return document


def _state_lines(state: Any, view: View) -> list[Line]:
    return list(hang(Text(), pretty_lines(state, view.width - 2, most=None if view.full else MOST_LINES), 1))


def output_page(conversation: Conversation, view: View) -> Document:
    """Return the page with the agent's output."""
    document = Document()
    for stream, text in conversation.output.items():
        if text:
            document.add(output_lines(stream, text, view))
            document.gap()
    if not document.lines:
        document.add(remark("No output yet.", view))
    return document


def trace_page(conversation: Conversation, view: View) -> Document:
    """Return the page with the trace: durations, requests and responses."""
    document = Document()
    if conversation.turns:
        turns, going = [item.turn for item in conversation.turns], conversation.turns[-1].going
        add_trace(document, turns, None, conversation.prices, view, going=going)
    else:
        document.add(remark("No trace yet: it starts with the first message.", view))
    return document


CONVERSATION = "Conversation"
PAGES: tuple[Pane[Conversation], ...] = (
    Pane("1", CONVERSATION, conversation_page),
    Pane("2", "State", state_page),
    Pane("3", "Output", output_page),
    Pane("4", "Trace", trace_page, aside=True),
)


def _ending(conversation: Conversation, view: View) -> list[Line]:
    queued = [
        line
        for content in conversation.waiting
        for line in hang_text(Text.styled(" queued", "label"), safe(content_text(content), "muted"), view.width - 1, 10)
    ]
    if conversation.doing == "starting":
        return queued or list(remark("You can already type a message.", view))
    if conversation.over:
        words = "The conversation is over. T starts a new one." if conversation.turns else "T tries again."
        already_shown = bool(conversation.turns) and conversation.turns[-1].error is conversation.error
        error = None if already_shown else conversation.error
        lines = [] if error is None else list(error_lines(error, view, traceback=view.full or not error.hint))
        return [*lines, *remark(words, view)]
    if not conversation.turns and not conversation.waiting:
        words = "Type a message below. To set the initial session state first, press esc, then e."
        return list(remark(words, view))
    return queued


_DOING = {
    "starting": ("starting the agent", "status-running"),
    "answering": ("the agent is working", "status-running"),
    "over": ("over", "status-error"),
}


class ConversationView(Reader[Conversation]):
    """The pages of a conversation. A view that shows the end scrolls along with new events."""

    DEFAULT_CSS = "ConversationView { & > Head { height: 2; } }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "top", "bottom", "next_turn", "previous_turn", "pane", "open", "close"),
        *bindings("to_event"),
    ]

    class Turned(Message):
        """A report that the user opened another page."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(Reading(conversation, lambda _: PAGES))
        self._left: tuple[str, ...] = ()
        """The place names of the last page with turns, when the user left it."""

    def show(self, conversation: Conversation) -> None:
        """Show the conversation, including its new events."""
        if conversation is not self.reading.subject:
            self._left = ()
        self.reading.take(conversation, same=conversation is self.reading.subject)
        self.refresh_subject()

    def turn_page(self, page: int) -> None:
        """Show another page. The conversation opens at its end, other pages at their start."""
        self._touched, self._left = False, self.place_names
        self.open_pane(PAGES[page].title)
        self._open()
        self.post_message(self.Turned())

    def next_page(self) -> None:
        """Show the next page. After the last one comes the first."""
        self.turn_page((self.reading.panes.index(self.reading.pane) + 1) % len(PAGES))

    def toggle_texts(self) -> None:
        """Show long texts in full, or shorten them again."""
        self._set_full(not self.reading.full)

    @property
    def place_names(self) -> tuple[str, ...]:
        """Names of the current item and turn. On pages without turns, those of the page that the user left."""
        return super().place_names or self._left

    @property
    def is_over(self) -> bool:
        """Whether the content is final. Always False, because a conversation can continue."""
        return False

    @property
    def opens_at_end(self) -> bool:
        """Whether the current page opens at its end."""
        return self.reading.pane.title == CONVERSATION

    def position(self) -> str:
        """Return the number of turns as text, or "" before the first turn."""
        turns = len(self.reading.subject.turns)
        return counted(turns, "turn") if turns else ""

    def summary(self) -> Line:
        """Return the state of the conversation, or the agent's framework while it waits for the user."""
        conversation = self.reading.subject
        return Text.styled(*_DOING.get(conversation.doing, (one_line(conversation.framework), "muted")))

    def show_pane(self, n: int) -> None:
        """Show the page with a number, counted from 1."""
        if 1 <= n <= len(PAGES):
            self.turn_page(n - 1)
        else:
            self.notify(f"a conversation has pages 1 to {len(PAGES)}")

    action_move, action_turn, action_to_event = Reader.move, Reader.go_to_turn, Reader.to_event
    action_pane = show_pane

    def action_open(self) -> None:
        """Unfold the selected item, else jump to the page it leads to."""
        if self._body.item is not None:
            self.move("right")

    def action_close(self) -> None:
        """Fold the selected item, else go back to before the last jump."""
        if self._body.item is not None:
            self.move("left")
