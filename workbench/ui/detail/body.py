"""A document on the screen: only the lines in sight are rendered."""

from typing import ClassVar

from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.ui.detail.styles import COMPONENTS, Painter, component_css
from workbench.ui.render.document import Document


class Body(ScrollView, can_focus=True, inherit_bindings=False):
    """The lines of a `Document`, scrolled. Keys come from outside."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    DEFAULT_CSS = """
    Body {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
    }
    """ + component_css("Body")

    class Moved(Message):
        """The first line in sight is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.document = Document()
        self._strips: LRUCache[int, Strip] = LRUCache(2000)
        self._painter = Painter(self)

    @property
    def room(self) -> int:
        """The cells of a line."""
        return self.scrollable_content_region.width

    @property
    def top(self) -> int:
        """The first line in sight."""
        return round(self.scroll_offset.y)

    @property
    def last_top(self) -> int:
        """The furthest that can be scrolled to."""
        return max(len(self.document.lines) - self.scrollable_content_region.height, 0)

    @property
    def at_end(self) -> bool:
        """Whether the last line is in sight."""
        return self.top >= self.last_top

    def show(self, document: Document, top: int) -> None:
        """Shows another document from line `top` on, or as near to that as its length allows."""
        self.document = document
        self._strips.clear()
        self.virtual_size = Size(self.room, len(document.lines))
        self.go_to(top)
        self.refresh()

    def go_to(self, line: int) -> bool:
        """Scrolls so that `line` is the first in sight, or as near to that as possible; whether that moved anything."""
        target = min(max(line, 0), self.last_top)
        if target == self.top:
            return False
        self.scroll_to(y=target, animate=False, immediate=True, force=True)
        return True

    def render_line(self, y: int) -> Strip:
        index = self.top + y
        strip = self._strips.get(index)
        if strip is None:
            lines = self.document.lines
            strip = self._painter.strip(lines[index] if index < len(lines) else (), self.room)
            self._strips[index] = strip
        return strip

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._painter.forget()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved())
