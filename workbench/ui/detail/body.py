"""A scrollable document with a cursor: its position, and the widget, which renders only visible lines."""

from collections.abc import Callable
from dataclasses import replace

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.cache import LRUCache
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.document import Document, Item
from workbench.results.lines import rule
from workbench.ui.detail.drawing import Aside, Layout, Painter, layout
from workbench.ui.widgets.rows import EDGE, WEAK_EDGE, joined, thumb

_LEAD = 4
"""Maximum number of lines above an item that are scrolled into view with it, such as its heading."""


class Position:
    """The position in a document: `height` lines are visible from line `top` on, and `cursor` is an item's index."""

    def __init__(self) -> None:
        self.document = Document()
        self.height = 0
        self.top = 0
        self.cursor = 0

    @property
    def last_top(self) -> int:
        """The maximum of `top`."""
        return max(len(self.document.lines) - self.height, 0)

    @property
    def item(self) -> Item | None:
        """The item under the cursor, or None in a document without items."""
        items = self.document.items
        return items[min(self.cursor, len(items) - 1)] if items else None

    def begin(self, document: Document, height: int, top: int, cursor: int) -> None:
        """Replace the document. Scroll to line `top` and put the cursor on the item with the index `cursor`.

        The item is made visible unless `top` is beyond the end.
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
        """Go to the next (1) or previous (-1) item. Without such an item, scroll by one line.

        If the item or the text between the items is long, scroll through it first.
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
        """Go to the first item and line, or to the last ones."""
        self.stand_on(len(self.document.items) - 1 if last else 0)
        self.go_to(self.last_top if last else 0)

    def stand_on(self, number: int, *, from_below: bool = False) -> None:
        """Put the cursor on an item and show it."""
        self.cursor = min(max(number, 0), max(len(self.document.items) - 1, 0))
        self._show_item(from_below=from_below)

    def _must_scroll_first(self, item: Item, wanted: int) -> bool:
        """Return whether to scroll before the cursor moves to the item with the index `wanted`.

        If so, the current item continues beyond the visible lines, or a long text is between the items.
        """
        other = self.document.items[wanted]
        if other.start > item.start:
            between = other.start > item.end + _LEAD and other.start >= self.top + self.height
            return between or item.end > self.top + self.height
        between = item.start > other.end + _LEAD and other.end <= self.top
        return between or item.start < self.top

    def _show_item(self, *, from_below: bool = False) -> None:
        """Scroll as little as possible to show the item.

        The upper part of a long item is enough, because the next steps scroll through the rest.
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


_USUAL = 80
"""The usual number of columns of a terminal."""
_WHEEL = 3
"""Lines per step of the mouse wheel."""
_HIGHLIGHTED = 4
"""Maximum height, in lines, of an item that is highlighted as a whole. In a longer item, only the
first line is highlighted."""


class Body(Widget, can_focus=True, inherit_bindings=False):
    """The lines of a `Document`, with a cursor if the document has items. The parent widget handles the keys.

    The body does not use Textual's scrolling, which lays out the whole screen whenever the number of lines changes.
    Each step from case to case would then make three frames.
    """

    DEFAULT_CSS = "Body { height: 1fr; }"

    class Moved(Message):
        """A report that the scroll position or the cursor's item has changed."""

    class Resized(Message):
        """A report that the size available for lines has changed."""

    class Picked(Message):
        """A click on the item under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._position = Position()
        self._pointed = range(0)
        """The lines that a jump led to, until the cursor or the scroll position changes."""
        self._has_aside = False
        self._aside = Aside()
        self._shown_at = Size()
        """The size for which the document was made."""
        self._strips: LRUCache[int, Strip] = LRUCache(2000)
        self._painter = Painter(self)

    def planned(self, aside: bool = False) -> Layout:
        """Return the layout for a document, with room for an `aside` if wanted."""
        return replace(layout(self.size, aside), narrow=self.app.size.width < _USUAL)

    @property
    def shares(self) -> Layout:
        """The current layout."""
        return self._shares(self.size, self.document)

    def _shares(self, size: Size, document: Document) -> Layout:
        return layout(size, self._has_aside, len(document.lines))

    @property
    def height(self) -> int:
        """Number of visible lines of the document."""
        return self.shares.height

    @property
    def document(self) -> Document:
        """The document that is shown."""
        return self._position.document

    @property
    def top(self) -> int:
        """The first visible line."""
        return self._position.top

    @property
    def current_line(self) -> int:
        """The first line that a jump led to, else the first visible line. Meant for documents without items."""
        return self._pointed.start if self._pointed else self.top

    @property
    def at_end(self) -> bool:
        """Whether the last line is visible."""
        return self.top >= self._position.last_top

    @property
    def cursor(self) -> int:
        """Index of the item under the cursor."""
        return self._position.cursor

    @property
    def item(self) -> Item | None:
        """The item under the cursor, or None in a document without items."""
        return self._position.item

    def show(
        self, document: Document, top: int, *, cursor: int = 0, aside: bool = False, pointed: range = range(0)
    ) -> None:
        """Replace the document. Scroll to line `top` and put the cursor on the item with the index `cursor`.

        The item is made visible unless `top` is beyond the end. `pointed` are the lines that a jump led to.
        """
        used = self._used()
        self._has_aside = aside
        self._pointed = pointed
        self._shown_at = self.size
        self._strips.clear()
        self._position.begin(document, self._shares(self.size, document).height, top, cursor)
        self._aside.show(self.item, self.shares)
        used = max(used, self._used())
        if 0 < used < self.size.height:
            self.refresh(Region(0, 0, self.size.width, used))
        else:
            self.refresh()
        self.post_message(self.Moved())

    def _used(self) -> int:
        """Return how many screen lines, counted from the top, can have text. The lines below them are blank."""
        size, used = self.size, len(self.document.lines)
        return used if used < size.height and not self._has_aside and self._shown_at == size else size.height

    def go_to(self, line: int) -> bool:
        """Scroll to `line`, or as near to it as possible. Return whether anything moved."""
        return self._move(lambda: self._position.go_to(line))

    def forget_pointed(self) -> None:
        """Unmark the target of a jump."""
        if self._pointed:
            self._pointed = range(0)
            self.refresh()

    def move(self, direction: str) -> bool:
        """Move the cursor or scroll. Return whether anything moved.

        `down` and `up` go to the next or previous item or line, `page_down` and `page_up` half a page, `top` and
        `bottom` to an end. Pages scroll the aside first if it has more lines.
        """
        position, step = self._position, -1 if direction in ("up", "page_up") else 1
        match direction:
            case "down" | "up":
                return self._move(lambda: position.step(step))
            case "page_down" | "page_up" if self._aside.page(step):
                self._refresh_aside()
                return True
            case "page_down" | "page_up":
                return self._move(lambda: position.page(step))
            case "top" | "bottom":
                return self._move(lambda: position.to_end(last=direction == "bottom"))
        return False

    def stand_on(self, number: int) -> bool:
        """Put the cursor on an item and show it. Return whether anything changed."""
        return self._move(lambda: self._position.stand_on(number))

    def _move(self, move: Callable[[], None]) -> bool:
        """Call `move` and repaint what changed. Return whether anything changed."""
        top, before = self.top, self.item
        move()
        item = self.item
        if self.top == top and item is before:
            return False
        self._aside.show(item, self.shares)
        if self.top != top:
            self.refresh()
        elif before is not None and item is not None:
            for changed in (before, item):
                self._refresh_lines(changed.start, changed.end)
            self._refresh_aside()
        self.post_message(self.Moved())
        return True

    def _refresh_lines(self, start: int, end: int) -> None:
        first, last = max(start - self.top, 0), min(end - self.top, self.height)
        if first < last:
            self.refresh(Region(0, first, self.shares.width, last - first))

    def _refresh_aside(self) -> None:
        shares = self.shares
        if shares.beside:
            self.refresh(Region(shares.width + 1, 0, self.size.width - shares.width - 1, self.size.height))
        elif shares.aside_height:
            self.refresh(Region(0, shares.height, self.size.width, self.size.height - shares.height))

    def render_line(self, y: int) -> Strip:
        """Draw a line of the document, with the aside next to it or below it."""
        size = self.size  # Textual computes it again each time.
        if self._shown_at != size:
            # A widget that was just shown sometimes gets no resize event, but it is always drawn.
            self._shown_at = size
            self._strips.clear()
            self.post_message(self.Resized())
        shares = self._shares(size, self.document)
        if y >= shares.height:
            return self._below(y - shares.height)
        in_thumb = y in thumb(len(self.document.lines), shares.height, self.top)
        bar = Segment("▐", self._painter.get("thumb")) if in_thumb else Segment(" ", self._painter.get(""))
        segments = [*self._listed(self.top + y, shares.width), bar]
        if shares.beside:
            line = Text.assemble((" │ ", "rule"), self._aside.line(y))
            segments += self._painter.strip(line, size.width - shares.width - 1)
        return Strip(joined(segments), size.width)

    def _listed(self, index: int, width: int) -> Strip:
        """Return a line of the document, highlighted if it has the cursor or is the target of a jump."""
        strip = self._strips.get(index)
        if strip is None:
            lines = self.document.lines
            strip = self._painter.strip(lines[index] if index < len(lines) else Text(), width)
            self._strips[index] = strip
        item = self.item
        if index in self._pointed:
            return self._marked(strip, width, highlighted=True)
        if item is not None and item.start <= index < item.end:
            return self._marked(strip, width, highlighted=index == item.start or item.end - item.start <= _HIGHLIGHTED)
        return strip

    def _marked(self, strip: Strip, width: int, *, highlighted: bool) -> Strip:
        """Return a line with the edge of the cursor, and with its background if `highlighted`."""
        suffix = "" if self.has_focus else "-blurred"
        background = Style(bgcolor=self._painter.get(f"cursor{suffix}").bgcolor) if highlighted else Style()
        edge = Segment(EDGE if self.has_focus else WEAK_EDGE, self._painter.get(f"edge{suffix}"))
        rest = strip.crop(1, width)
        return Strip(Segment.apply_style([edge, *rest], post_style=background), width)

    def _below(self, y: int) -> Strip:
        width, aside = self.size.width, self._aside
        line = rule(aside.head, Text(), width) if y == 0 else Text.assemble(" ", aside.line(y - 1))
        return self._painter.strip(line, width)

    def notify_style_update(self) -> None:
        """Forget the cached lines and styles."""
        super().notify_style_update()
        self._strips.clear()
        self._painter.forget()

    def on_focus(self) -> None:
        """Redraw the item under the cursor after a change of the focus."""
        if (item := self.item) is not None:
            self._refresh_lines(item.start, item.end)

    on_blur = on_focus

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        self.go_to(self.top + _WHEEL)

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        self.go_to(self.top - _WHEEL)

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked item, or report a click on the current one."""
        line = self.top + event.y
        if event.y >= self.height or not self.document.items:
            return
        number = self.document.item_at(line)
        item = self.document.items[number]
        if item.start <= line < item.end and not self.stand_on(number):
            self.post_message(self.Picked())
