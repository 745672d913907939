"""What was said and done, on pages, and the keys with which it is read."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from workbench.counting import counted
from workbench.rendering.lines import Line, Segment
from workbench.rendering.rows import View
from workbench.text import one_line
from workbench.ui.chat.pages import CONVERSATION, PAGES, TRACE
from workbench.ui.chat.talk import Talk
from workbench.ui.detail.body import Body
from workbench.ui.detail.head import Head
from workbench.ui.keys import bindings

_ABOVE = 3
"""Lines that are seen above what was jumped to."""


class TalkView(Vertical):
    """The pages of a conversation. The end is followed as long as it is in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "top", "bottom", "next_turn", "previous_turn", "pane", "open", "close"),
        *bindings("to_event"),
    ]

    class Turned(Message):
        """Another page, or the room for it is another one: it is to be shown anew."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self.talk = talk
        self._page = 0
        self._full = False
        self._jumped = ""
        """The place of this page that was jumped to."""
        self._opened: set[str] = set()
        """The items that are unfolded."""
        self._head = Head()
        self._body = Body()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._body

    def show(self, *, to_end: bool | None = None) -> None:
        """Lays the page out anew."""
        page, item = PAGES[self._page], self._body.item
        shares = self._body.planned(page.aside)
        if shares.width <= 0:
            return
        follow = self._body.at_end if to_end is None else to_end
        view = View(shares.width, self._full, opened=frozenset(self._opened), aside=shares.beside)
        document = page.build(self.talk, view)
        top = len(document.lines) if follow and not document.items else self._body.top
        cursor = document.item_named(item.key) if item is not None else None
        aside = page.aside if document.items else "never"
        self._body.show(document, top, cursor=cursor or 0, aside=aside)
        turns = len(self.talk.turns)
        position = counted(turns, "turn") if turns else ""
        self._head.show(tuple(page.title for page in PAGES), self._page, position, _summary(self.talk))

    def read(self) -> None:
        """Gives its keys to the reader."""
        self._body.focus()

    def turn_page(self, page: int) -> None:
        """Shows another page: the conversation at its end, the others from their beginning."""
        self._page = page
        self._jumped = ""
        self.show(to_end=page == 0)
        self.post_message(self.Turned())

    def next_page(self) -> None:
        """Shows the page behind this one, after the last the first."""
        self.turn_page((self._page + 1) % len(PAGES))

    def toggle_full(self) -> None:
        """Shows all of long texts, or their beginnings again."""
        self._full = not self._full
        self.show(to_end=False)

    def action_move(self, direction: str) -> None:
        self._body.move(direction)

    def action_turn(self, step: int) -> None:
        turns = self._body.document.turns
        ahead = [line for line in turns if (line - self._body.top) * step > 0]
        if ahead:
            self._body.go_to(min(ahead) if step > 0 else max(ahead))

    def action_open(self) -> None:
        """Unfolds what the cursor stands on."""
        item = self._body.item
        if item is not None and item.opens:
            self._opened.add(item.key)
            self.show(to_end=False)

    def action_close(self) -> None:
        """Folds it again."""
        item = self._body.item
        if item is not None and item.key in self._opened:
            self._opened.discard(item.key)
            self.show(to_end=False)

    def action_to_event(self) -> None:
        """From the message that was jumped to, or the first one in sight, to its row of the trace; from there to the
        message of the row under the cursor."""
        body, page = self._body, PAGES[self._page].title
        if page == CONVERSATION:
            places = body.document.places
            jumped = self._jumped if self._jumped in places else ""
            self._go(TRACE, [jumped, *(name for name, lines in places.items() if lines.start >= body.top)])
        elif page == TRACE and body.item is not None:
            self._go(CONVERSATION, [name for target in body.item.targets for name in target.places])

    def _go(self, page: str, names: list[str]) -> None:
        """Turns to the page with that title, to the first of these places that it has; stays if it has none."""
        before = self._page
        number = next(number for number, one in enumerate(PAGES) if one.title == page)
        self.turn_page(number)
        document = self._body.document
        name = next((name for name in names if name in document.places), None)
        if name is None:
            self.turn_page(before)
            return
        lines = document.places[name]
        self._jumped = name
        if document.items:
            self._body.stand_on(document.item_at(lines.start))
        else:
            self._body.show(document, max(lines.start - _ABOVE, 0), pointed=lines)

    def on_body_picked(self) -> None:
        item = self._body.item
        if item is not None and item.key in self._opened:
            self.action_close()
        else:
            self.action_open()

    def action_pane(self, number: int) -> None:
        if number <= len(PAGES):
            self.turn_page(number - 1)

    def on_head_chosen(self, event: Head.Chosen) -> None:
        self.turn_page(event.index)

    def on_body_resized(self) -> None:
        self.show()


def _summary(talk: Talk) -> Line:
    match talk.doing:
        case "starting":
            return (Segment("starting the agent …", "status-running"),)
        case "answering":
            return (Segment("the agent is at work …", "status-running"),)
        case "over":
            return (Segment("over", "status-error"),)
        case _:
            return (Segment(one_line(talk.framework), "muted"),)
