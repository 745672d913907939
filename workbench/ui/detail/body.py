"""A document on the screen: only the lines in sight are rendered."""

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.rendering.document import AsideWhen, Document, Item
from workbench.rendering.lines import Segment as Piece
from workbench.rendering.lines import rule
from workbench.ui.detail.aside import Aside, Layout, layout
from workbench.ui.detail.position import Position
from workbench.ui.detail.styles import COMPONENTS, Painter, component_css
from workbench.ui.widgets.rows import thumb
from workbench.ui.widgets.strips import joined

_WHEEL = 3
"""Lines a step of the mouse wheel."""
_LIT = 4
"""An item of so many lines is lit as a whole; of a longer one the first line only."""


class Body(Widget, can_focus=True, inherit_bindings=False):
    """The lines of a `Document`, scrolled, with a cursor if it has items. Keys come from outside.

    It scrolls by itself: Textual's own scrolling lays the whole screen out again whenever the number of lines changes,
    which would make three frames of each step from case to case.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *COMPONENTS,
        "body--thumb",
        "body--edge",
        "body--cursor",
        "body--cursor-blurred",
    }
    DEFAULT_CSS = """
    Body {
        height: 1fr;
        & > .body--thumb { color: $scrollbar; }
        & > .body--edge { color: $accent; }
        & > .body--cursor { background: $block-cursor-background; }
        & > .body--cursor-blurred { background: $block-cursor-blurred-background; }
        /* In sixteen colours there is no quiet background: the edge says it alone. */
        &:ansi > .body--cursor, &:ansi > .body--cursor-blurred { background: transparent; }
    }
    """ + component_css("Body")

    class Moved(Message):
        """The first line in sight is another one, or the cursor stands on another item."""

    class Resized(Message):
        """There is another room for lines."""

    class Picked(Message):
        """The item under the cursor was clicked on."""

    def __init__(self) -> None:
        super().__init__()
        self._position = Position()
        self._pointed = range(0)
        """Lines that were jumped to, until something moves."""
        self._when_aside: AsideWhen = "never"
        self._aside = Aside()
        self._shown_at = Size()
        """The size for which the document was made."""
        self._strips: LRUCache[int, Strip] = LRUCache(2000)
        self._painter = Painter(self)

    # What is where

    def planned(self, aside: AsideWhen) -> Layout:
        """How the room would be shared by a document with such an aside."""
        return layout(self.size, aside)

    @property
    def shares(self) -> Layout:
        """How the room is shared now."""
        return layout(self.size, self._when_aside)

    @property
    def height(self) -> int:
        """How many lines of the document are in sight."""
        return self.shares.height

    @property
    def document(self) -> Document:
        """What is shown."""
        return self._position.document

    @property
    def top(self) -> int:
        """The first line in sight."""
        return self._position.top

    @property
    def meant(self) -> int:
        """The line that a reader looks at in a document without items: what was jumped to, else the first in sight."""
        return self._pointed.start if self._pointed else self.top

    @property
    def at_end(self) -> bool:
        """Whether the last line is in sight."""
        return self.top >= self._position.last_top

    @property
    def cursor(self) -> int:
        """The number of the item that the cursor stands on."""
        return self._position.cursor

    @property
    def item(self) -> Item | None:
        """What the cursor stands on; None in a document without items."""
        return self._position.item

    # What is shown

    def show(
        self, document: Document, top: int, *, cursor: int = 0, aside: AsideWhen = "never", pointed: range = range(0)
    ) -> None:
        """Shows another document from line `top` on, or as near to that as its length allows, with the cursor on that
        item, and in sight unless the end was asked for (a `top` beyond it)."""
        self._when_aside = aside
        self._pointed = pointed
        self._shown_at = self.size
        self._strips.clear()
        self._position.begin(document, self.height, top, cursor)
        self._aside.show(self.item, self.shares)
        self.refresh()
        self.post_message(self.Moved())

    def go_to(self, line: int) -> bool:
        """Scrolls so that `line` is the first in sight, or as near to that as possible; whether that moved anything."""
        return self._move(lambda: self._position.go_to(line))

    def forget_pointed(self) -> None:
        """What was jumped to is no longer marked."""
        if self._pointed:
            self._pointed = range(0)
            self.refresh()

    # The cursor

    def move(self, direction: str) -> bool:
        """Move to the next item or line (`down`, `up`), by half a page (`page_down`, `page_up`; of the aside as long as
        there is more of it) or to an end (`top`, `bottom`). Return whether that moved anything."""
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
        """Puts the cursor on an item, and shows it; whether it stood elsewhere."""
        return self._move(lambda: self._position.stand_on(number))

    def _move(self, move: Callable[[], None]) -> bool:
        """Moves, and paints what that changed: all lines only if they are others."""
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

    # Drawing

    def render_line(self, y: int) -> Strip:
        size = self.size  # Textual works it out anew each time.
        if self._shown_at != size:
            # Drawing is what cannot be missed: the resize event of a widget that was just shown sometimes is.
            self._shown_at = size
            self._strips.clear()
            self.post_message(self.Resized())
        shares = layout(size, self._when_aside)
        if y >= shares.height:
            return self._below(y - shares.height)
        in_thumb = y in thumb(len(self.document.lines), shares.height, self.top)
        bar = (
            Segment("▐", self.get_component_rich_style("body--thumb"))
            if in_thumb
            else Segment(" ", self._painter.style(""))
        )
        segments = [*self._listed(self.top + y, shares.width), bar]
        if shares.beside:
            told = (Piece(" │ ", "rule"), *self._aside.line(y))
            segments += self._painter.strip(told, size.width - shares.width - 1)
        return Strip(joined(segments), size.width)

    def _listed(self, index: int, width: int) -> Strip:
        """A line of the document, as the cursor and a jump make it look."""
        strip = self._strips.get(index)
        if strip is None:
            lines = self.document.lines
            strip = self._painter.strip(lines[index] if index < len(lines) else (), width)
            self._strips[index] = strip
        item = self.item
        if index in self._pointed:
            return self._marked(strip, width, lit=True)
        if item is not None and item.start <= index < item.end:
            return self._marked(strip, width, lit=index == item.start or item.end - item.start <= _LIT)
        return strip

    def _marked(self, strip: Strip, width: int, *, lit: bool) -> Strip:
        """A line of what the cursor stands on."""
        look = "body--cursor" if self.has_focus else "body--cursor-blurred"
        background = Style(bgcolor=self.get_component_rich_style(look).bgcolor) if lit else Style()
        edge = Segment("▌", self.get_component_rich_style("body--edge"))
        rest = strip.crop(1, width)
        return Strip(Segment.apply_style([edge, *rest], post_style=background), width)

    def _below(self, y: int) -> Strip:
        line = rule(self._aside.head, (), self.size.width) if y == 0 else (Piece(" "), *self._aside.line(y - 1))
        return self._painter.strip(line, self.size.width)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._painter.forget()

    # What the terminal says

    def on_focus(self) -> None:
        self._cursor_look_changed()

    def on_blur(self) -> None:
        self._cursor_look_changed()

    def _cursor_look_changed(self) -> None:
        if (item := self.item) is not None:
            self._refresh_lines(item.start, item.end)

    def on_mouse_scroll_down(self) -> None:
        self.go_to(self.top + _WHEEL)

    def on_mouse_scroll_up(self) -> None:
        self.go_to(self.top - _WHEEL)

    def on_click(self, event: Click) -> None:
        line = self.top + event.y
        if event.y >= self.height or not self.document.items:
            return
        number = self.document.item_at(line)
        item = self.document.items[number]
        if item.start <= line < item.end and not self.stand_on(number):
            self.post_message(self.Picked())
