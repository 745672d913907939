"""The position in a document: first visible line, and item under the cursor. Without a widget."""

from workbench.results.document import Document, Item

_LEAD = 4
"""Lines of headings above an item that are shown with it."""


class Position:
    """A position: `height` lines are visible from line `top` on. `cursor` is the index of an item, if any."""

    def __init__(self) -> None:
        self.document = Document()
        self.height = 0
        self.top = 0
        self.cursor = 0

    @property
    def last_top(self) -> int:
        """The last line that can be scrolled to the top."""
        return max(len(self.document.lines) - self.height, 0)

    @property
    def item(self) -> Item | None:
        """The item under the cursor, or None in a document without items."""
        items = self.document.items
        return items[min(self.cursor, len(items) - 1)] if items else None

    def begin(self, document: Document, height: int, top: int, cursor: int) -> None:
        """Start a document at line `top`, with the cursor on an item.

        The item is visible unless `top` is beyond the end.
        """
        self.document, self.height = document, height
        self.cursor = min(cursor, max(len(document.items) - 1, 0))
        self.go_to(top)
        if document.items and top <= self.last_top:
            self._show_item()

    def go_to(self, line: int) -> None:
        """Scroll to `line`, or as near to it as possible."""
        self.top = min(max(line, 0), self.last_top)

    def step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) item.

        A long item, or text outside the items, is scrolled through first.
        """
        item, wanted = self.item, self.cursor + step
        if item is None or not 0 <= wanted < len(self.document.items) or self._must_scroll_first(item, wanted):
            self.go_to(self.top + step)
        else:
            self.stand_on(wanted, from_below=step < 0)

    def page(self, step: int) -> None:
        """Go half a page forward (1) or back (-1)."""
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
        """Go to the first or the last line, and the item there."""
        self.stand_on(len(self.document.items) - 1 if last else 0)
        self.go_to(self.last_top if last else 0)

    def stand_on(self, number: int, *, from_below: bool = False) -> None:
        """Put the cursor on an item and show it."""
        self.cursor = min(max(number, 0), max(len(self.document.items) - 1, 0))
        self._show_item(from_below=from_below)

    def _must_scroll_first(self, item: Item, wanted: int) -> bool:
        """Return whether to scroll before the cursor moves.

        Either more of the item is hidden that way, or a long text lies between the items.
        """
        other = self.document.items[wanted]
        if other.start > item.start:
            between = other.start > item.end + _LEAD and other.start >= self.top + self.height
            return between or item.end > self.top + self.height
        between = item.start > other.end + _LEAD and other.end <= self.top
        return between or item.start < self.top

    def _show_item(self, *, from_below: bool = False) -> None:
        """Scroll as little as possible to show the item.

        For a long item, its upper part is enough, because the next steps scroll through the rest.
        """
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
