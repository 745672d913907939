"""The widgets that show a case or a conversation: a line with the names of the panes, and the open pane."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Self

from rich.text import Text
from textual.app import ComposeResult
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.cells import cell_len
from workbench.results.document import Document, Item
from workbench.results.lines import Line, cut_line
from workbench.results.panes import Read
from workbench.ui.detail.body import Body
from workbench.ui.detail.drawing import Painter
from workbench.ui.detail.reading import TRACE, Reading


class Tab(NamedTuple):
    """The name of a pane in the head: a blank, the digit and the name. With enough room, blanks are around the name."""

    lead: str
    digit: str
    title: str
    after: str = ""

    @property
    def size(self) -> int:
        """The width in cells."""
        return sum(map(cell_len, self))


class Head(Widget):
    """A line such as ` 1 Evidence  2 Judges  3 Trace  4 History        turn 2/3`, and an optional summary."""

    DEFAULT_CSS = "Head { height: 1; }"

    class Chosen(Message):
        """A click on the name of a pane."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__()
        self._tabs: tuple[tuple[str, str], ...] = ()
        self._chosen = 0
        self._position = ""
        self._summary: Line = Text()
        self._painter = Painter(self)

    def show(self, tabs: tuple[tuple[str, str], ...], chosen: int, position: str, summary: Line) -> None:
        """Show the digits and names of the panes, with the one at index `chosen` open, the position and the summary."""
        if (tabs, chosen, position, summary) != (self._tabs, self._chosen, self._position, self._summary):
            self._tabs, self._chosen, self._position, self._summary = tabs, chosen, position, summary
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the pane names, or the summary."""
        width = self.size.width
        return self._painter.strip(self._strip_line(width) if y == 0 else Text.assemble(" ", self._summary), width)

    def notify_style_update(self) -> None:
        """Forget the cached styles."""
        super().notify_style_update()
        self._painter.forget()

    def on_click(self, event: Click) -> None:
        """Report a click on a pane name."""
        for index, (start, end) in enumerate(self._places()):
            if event.y == 0 and start <= event.x < end:
                self.post_message(self.Chosen(index))

    def _strip_line(self, width: int) -> Line:
        line = Text()
        for index, tab in enumerate(self._laid_out(width)):
            line.append(tab.lead).append(f"{tab.digit}{' ' if tab.title[:1] == ' ' else ''}", "tab")
            line.append(tab.title.removeprefix(" "), "tab-chosen" if index == self._chosen else "tab")
            line.append(tab.after)
        room = width - line.cell_len - cell_len(self._position) - 1
        if self._position and room >= 0:
            line.append(" " * room).append(self._position, "label")
        return cut_line(line, width)

    def _laid_out(self, width: int) -> list[Tab]:
        return tabs(self._tabs, self._chosen, width, cell_len(self._position))

    def _places(self) -> list[tuple[int, int]]:
        places: list[tuple[int, int]] = []
        start = 0
        for tab in self._laid_out(self.size.width):
            places.append((start, start + tab.size))
            start += tab.size
        return places


def tabs(panes: Sequence[tuple[str, str]], chosen: int, width: int, position: int = 0) -> list[Tab]:
    """Return the names of the panes, fitted into `width` cells with `position` cells at the right end.

    If there is too little room, blanks are left out first, then the position. Only then are names cut, except the
    chosen one.
    """
    room = width - (position + 1 if position else 0)
    for before, after, size in ((" ", " ", room), (" ", "", room), ("", "", room), (" ", "", width), ("", "", width)):
        named = [Tab(" ", digit, f"{before}{title}", after) for digit, title in panes]
        if sum(tab.size for tab in named) <= size:
            return named
    left = width - 2 * len(panes) - (cell_len(panes[chosen][1]) if panes else 0)
    most = max(left // max(len(panes) - 1, 1), 1)
    return [Tab(" ", digit, title if index == chosen else title[:most]) for index, (digit, title) in enumerate(panes)]


_ABOVE = 3
"""Number of visible lines above the target of a jump."""


class Reader(Widget, Generic[Read]):
    """A `Reading` on the screen, with a head and a body.

    A pane opens at its first problem, or at its end while lines are being added. Updates go there, too. Once the user
    has scrolled, the pane keeps its place, but a pane at its end follows new lines.
    """

    DEFAULT_CSS = "Reader { layout: vertical; }"

    def __init__(self, reading: Reading[Read]) -> None:
        super().__init__()
        self.reading = reading
        self._turn: int | None = None
        """The turn that a jump led to, until the pane is scrolled."""
        self._touched = False
        """Whether the user has scrolled. If not, updates scroll to the first problem."""
        self._ended = True
        """Whether the subject was finished when the current document was made."""
        self._head = Head()
        self._body = Body()

    def compose(self) -> ComposeResult:
        """Lay out the head and the body."""
        yield self._head
        yield self._body

    # Defined by subclasses

    @property
    def is_over(self) -> bool:
        """Whether the subject is finished."""
        raise NotImplementedError

    @property
    def opens_at_end(self) -> bool:
        """Whether the pane opens at its end, because lines are still being added."""
        raise NotImplementedError

    def summary(self) -> Line:
        """Return the line for the summary, which is shown if the head has two lines."""
        return Text()

    def position(self) -> str:
        """Return the visible turn, such as `turn 2/3`, or "" if the pane is not divided into several turns."""
        turn, count = self._visible_turn(), len(self._body.document.turns)
        named = turn is not None and count > 1 and self.reading.pane.by_turns
        return f"turn {(turn or 0) + 1}/{count}" if named else ""

    @property
    def tabs(self) -> tuple[tuple[str, str], ...]:
        """The digits and names of the panes, in order."""
        return tuple((pane.digit, pane.title) for pane in self.reading.panes)

    def refresh_subject(self) -> None:
        """Update the pane after the subject has changed."""
        self.reading.refresh()
        if not self._touched:
            self._open()
            return
        body, document = self._body, self._build()
        self._lay_out(document, len(document.lines) if not self._ended and body.at_end else body.top)

    def on_body_moved(self) -> None:
        """Update the head."""
        self._write_head()

    def _write_head(self) -> None:
        reading = self.reading
        self._head.show(self.tabs, reading.panes.index(reading.pane), self.position(), self.summary())

    def _visible_turn(self) -> int | None:
        """Return the turn that a jump led to, else the turn of the item under the cursor, else the first visible one.

        At the end of a document without items, it is the last turn. Return None without turns.
        """
        document, body = self._body.document, self._body
        if self._turn is not None and self._turn < len(document.turns):
            return self._turn
        if body.item is not None:
            return document.turn_at(body.item.start)
        if document.turns and body.at_end and body.top > 0:
            return len(document.turns) - 1
        return document.turn_at(body.top)

    def show_pane(self, n: int) -> None:
        """Open the pane with digit `n`, or show that there is none."""
        pane = next((pane for pane in self.reading.panes if pane.digit == str(n)), None)
        if pane is None:
            self.notify(f"no pane {n} here: evalsets and unreadable cases have only pane 1")
        else:
            self.open_pane(pane.title)

    def open_pane(self, title: str) -> None:
        """Open the pane with this title, for this subject and later ones. The title must be one of `reading.titles`."""
        if self.reading.choose(title):
            self._touched = False
            self._open()

    def move(self, direction: str) -> bool:
        """Scroll the pane or move its cursor. Return whether anything changed.

        `right` unfolds long texts, or jumps to the item's place in another pane. `left` folds, or goes back to before
        the last jump.
        """
        body = self._body
        if direction == "right":
            return self._go_in() if body.item is not None else self._set_full(True)
        if direction == "left":
            return self._go_out() if body.item is not None or self.reading.away else self._set_full(False)
        self._touched = True
        self._turn = None
        body.forget_pointed()
        return body.move(direction)

    def go_back(self) -> bool:
        """Go back to before the last jump. Return False if there was none."""
        place = self.reading.back()
        if place is None:
            return False
        self._lay_out(self._build(), place.top, place.item)
        return True

    def to_event(self) -> bool:
        """Go from the current item to its event in the trace, and back. Return False if it has none."""
        if self.reading.pane.title == TRACE and self.go_back():
            return True
        body = self._body
        item = body.item or body.document.link_from(body.current_line, TRACE)
        if item is None:
            return False
        only = None if self.reading.pane.title == TRACE else TRACE
        return self._follow(item, only)

    @property
    def place_names(self) -> tuple[str, ...]:
        """Names of the current item in this and other panes, the most specific first, then the name of the turn."""
        body, turn, item = self._body, self._visible_turn(), self._body.item
        if item is None and self._turn is None:
            item = body.document.link_from(body.current_line, TRACE)
        names = (item.key, *(name for target in item.targets for name in target.places)) if item is not None else ()
        return (*names, *(() if turn is None else (f"user/{turn}",)))

    @property
    def can_unfold(self) -> bool:
        """Whether `toggle_full` has any effect."""
        item, reading = self._body.item, self.reading
        if item is None:
            return reading.full or bool(self._body.document.folded)
        return item.opens or reading.is_open(item) or any(target.pane in reading.titles for target in item.targets)

    def toggle_full(self) -> None:
        """Unfold or fold the item under the cursor, or jump to another pane. Without items, toggle all long texts."""
        item = self._body.item
        if item is None:
            self._set_full(not self.reading.full)
        elif self.reading.is_open(item) and not item.targets:
            self._go_out()
        else:
            self._go_in()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the body."""
        self._body.focus(scroll_visible)
        return self

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the pane for its new size."""
        event.stop()
        self._fit()

    def on_body_picked(self, event: Body.Picked) -> None:
        """Unfold or fold the clicked item, or jump to its place in another pane."""
        event.stop()
        self.toggle_full()

    def on_head_chosen(self, event: Head.Chosen) -> None:
        """Open the pane whose name was clicked."""
        event.stop()
        self.open_pane(self.reading.titles[event.index])

    def _fit(self) -> None:
        """Lay out the pane again after a change of its size or its content."""
        if self._touched:
            self._keep_place()
        else:
            self._open()

    def _open(self) -> None:
        """Lay out the pane at its first problem, or at its end if lines are still being added."""
        document = self._build()
        self._turn = document.opening
        if self.opens_at_end:
            top = len(document.lines)
        else:
            top = 0 if document.opening is None else document.turns[document.opening]
        key = document.items[document.opening_item].key if document.items else ""
        self._lay_out(document, top, key)

    def _keep_place(self) -> None:
        """Lay out the pane again. The current item stays on its screen line.

        In a pane without items, the distance to the start of the turn stays.
        """
        body = self._body
        if (item := body.item) is not None:
            document = self._build()
            number = document.item_named(item.key)
            start = document.items[number].start if number is not None else item.start
            self._lay_out(document, start - (item.start - body.top))
            return
        turn = body.document.turn_at(body.top)
        offset = body.top - (body.document.turns[turn] if turn is not None else 0)
        document = self._build()
        start = document.turns[turn] if turn is not None and turn < len(document.turns) else 0
        self._lay_out(document, start + offset)

    def _build(self) -> Document:
        return self.reading.document(self._body.planned)

    def _lay_out(self, document: Document, top: int, key: str | None = None, pointed: range = range(0)) -> None:
        """Show a document with the cursor on the item named `key`, or on the current item if `key` is None.

        If the document lacks that item, the cursor is on the first one.
        """
        item, self._ended = self._body.item, self.is_over
        if key is None and item is not None:
            key = item.key
        cursor = document.item_named(key) if key else None
        aside = self.reading.pane.aside and bool(document.items)
        self._body.show(document, top, cursor=cursor or 0, aside=aside, pointed=pointed)
        self._write_head()

    def _go_in(self) -> bool:
        """Unfold the item under the cursor, else jump to another pane. Return False if neither is possible."""
        item = self._body.item
        if item is None:
            return False
        if self.reading.unfold(item):
            self._touched = True
            self._keep_place()
            return True
        return self._follow(item)

    def _follow(self, item: Item, only: str | None = None) -> bool:
        """Jump to the place of an item in another pane, or only in pane `only`. Return False if there is none."""
        arrival = self.reading.follow(item, self._body.top, self._body.planned, only=only)
        if arrival is None:
            return False
        document, lines, key = arrival
        self._touched, self._turn = True, None
        self._lay_out(document, max(lines.start - _ABOVE, 0), key, range(0) if key else lines)
        return True

    def _go_out(self) -> bool:
        """Fold the item under the cursor, else go back to before the last jump. Return False if neither is possible."""
        item = self._body.item
        if item is not None and not self.reading.away and self.reading.fold(item):
            self._touched = True
            self._keep_place()
            return True
        return self.go_back()

    def _set_full(self, full: bool) -> bool:
        if full == self.reading.full or (full and not self._body.document.folded):
            return False
        self.reading.full = full
        self._touched = True
        self._keep_place()
        return True

    def go_to_turn(self, step: int) -> None:
        """Go to the start of the next (1) or previous (-1) turn."""
        document, body = self._body.document, self._body
        current = self._visible_turn()
        if current is None or not 0 <= current + step < len(document.turns):
            return
        self._touched = True
        self._turn = current + step
        start = document.turns[self._turn]
        if document.items:
            number = document.item_at(start)
            body.stand_on(number if document.items[number].start >= start else number + 1)
        body.go_to(start)
        self._write_head()
