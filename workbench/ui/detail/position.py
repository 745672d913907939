"""Where in a document the reader is: the first line in sight, and the item under the cursor. Without a widget."""

from workbench.rendering.document import Document, Item

_LEAD = 4
"""So many lines of headings above an item are shown with it."""


class Position:
    """`height` lines are in sight, from line `top` on; `cursor` is the number of an item, if there are any."""

    def __init__(self) -> None:
        self.document = Document()
        self.height = 0
        self.top = 0
        self.cursor = 0

    @property
    def last_top(self) -> int:
        """The furthest that can be scrolled to."""
        return max(len(self.document.lines) - self.height, 0)

    @property
    def item(self) -> Item | None:
        """What the cursor stands on; None in a document without items."""
        items = self.document.items
        return items[min(self.cursor, len(items) - 1)] if items else None

    def begin(self, document: Document, height: int, top: int, cursor: int) -> None:
        """Another document from line `top` on, with the cursor on that item, and in sight unless the end was asked for
        (a `top` beyond it)."""
        self.document, self.height = document, height
        self.cursor = min(cursor, max(len(document.items) - 1, 0))
        self.go_to(top)
        if document.items and top <= self.last_top:
            self._show_item()

    def go_to(self, line: int) -> None:
        """Makes `line` the first in sight, or as near to that as possible."""
        self.top = min(max(line, 0), self.last_top)

    def step(self, step: int) -> None:
        """To the next (1) or previous (-1) item; what is longer than the room, or stands outside of the items, is
        scrolled through first."""
        item, wanted = self.item, self.cursor + step
        if item is None or not 0 <= wanted < len(self.document.items) or self._goes_on(item, wanted):
            self.go_to(self.top + step)
        else:
            self.stand_on(wanted, from_below=step < 0)

    def page(self, step: int) -> None:
        """Half a page on (1), or back (-1)."""
        half = max(self.height // 2, 1) * step
        item = self.item
        if item is None or item.end - item.start > self.height:
            self.go_to(self.top + half)
            return
        wanted = self.document.item_at(item.start + half)
        if wanted == self.cursor:
            wanted = min(max(self.cursor + step, 0), len(self.document.items) - 1)
        if wanted == self.cursor:
            self.go_to(self.top + half)
        else:
            self.stand_on(wanted)

    def to_end(self, *, last: bool) -> None:
        """To the first or the last line, and the item there."""
        self.stand_on(len(self.document.items) - 1 if last else 0)
        self.go_to(self.last_top if last else 0)

    def stand_on(self, number: int, *, from_below: bool = False) -> None:
        """Puts the cursor on an item, and shows it."""
        self.cursor = min(max(number, 0), max(len(self.document.items) - 1, 0))
        self._show_item(from_below=from_below)

    def _goes_on(self, item: Item, wanted: int) -> bool:
        """Whether there is more of the item on the way to another one, out of sight, or a long piece between them."""
        other = self.document.items[wanted]
        if other.start > item.start:
            between = other.start > item.end + _LEAD and other.start >= self.top + self.height
            return between or item.end > self.top + self.height
        between = item.start > other.end + _LEAD and other.end <= self.top
        return between or item.start < self.top

    def _show_item(self, *, from_below: bool = False) -> None:
        """Scrolls as little as possible. Of a long item it is enough to see the upper part: who moves on scrolls
        through the rest."""
        item, height = self.item, self.height
        if item is None:
            return
        above = self.document.items[self.cursor - 1].end if self.cursor else 0
        from_above = item.start - above <= _LEAD or (not self.cursor and item.end <= height)
        start = above if from_above else item.start
        long = item.end - item.start > height
        if start < self.top:
            self.go_to(item.end - height if from_below and long else start)
        elif item.end > self.top + height:
            seen = item.end - item.start > height // 2 and item.start - self.top <= height // 2
            if not seen:
                self.go_to(min(item.end - height, start))
