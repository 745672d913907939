"""A document on the screen: only the lines in sight are rendered."""

from typing import ClassVar

from rich.segment import Segment
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.ui.detail.styles import COMPONENTS, Painter, component_css
from workbench.ui.render.document import Document
from workbench.ui.widgets.rows import thumb
from workbench.ui.widgets.strips import joined

_WHEEL = 3
"""Lines a step of the mouse wheel."""


class Body(Widget, can_focus=True, inherit_bindings=False):
    """The lines of a `Document`, scrolled. Keys come from outside.

    It scrolls by itself: Textual's own scrolling lays the whole screen out again whenever the number of lines changes,
    which would make three frames of each step from case to case.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {*COMPONENTS, "body--thumb"}
    DEFAULT_CSS = """
    Body {
        height: 1fr;
    }
    Body > .body--thumb {
        color: $scrollbar;
    }
    """ + component_css("Body")

    class Moved(Message):
        """The first line in sight is another one."""

    class Resized(Message):
        """There is another room for lines."""

    def __init__(self) -> None:
        super().__init__()
        self.document = Document()
        self.top = 0
        """The first line in sight."""
        self._shown_at = Size()
        """The size for which the document was made."""
        self._strips: LRUCache[int, Strip] = LRUCache(2000)
        self._painter = Painter(self)

    @property
    def room(self) -> int:
        """The cells of a line; the last column is the scroll bar's."""
        return max(self.size.width - 1, 0)

    @property
    def last_top(self) -> int:
        """The furthest that can be scrolled to."""
        return max(len(self.document.lines) - self.size.height, 0)

    @property
    def at_end(self) -> bool:
        """Whether the last line is in sight."""
        return self.top >= self.last_top

    def show(self, document: Document, top: int) -> None:
        """Shows another document from line `top` on, or as near to that as its length allows."""
        self.document = document
        self._shown_at = self.size
        self._strips.clear()
        self.top = -1
        self.go_to(top)

    def go_to(self, line: int) -> bool:
        """Scrolls so that `line` is the first in sight, or as near to that as possible; whether that moved anything."""
        target = min(max(line, 0), self.last_top)
        if target == self.top:
            return False
        self.top = target
        self.refresh()
        self.post_message(self.Moved())
        return True

    def render_line(self, y: int) -> Strip:
        if self._shown_at != self.size:
            # Drawing is what cannot be missed: the resize event of a widget that was just shown sometimes is.
            self._shown_at = self.size
            self._strips.clear()
            self.post_message(self.Resized())
        index = self.top + y
        strip = self._strips.get(index)
        if strip is None:
            lines = self.document.lines
            strip = self._painter.strip(lines[index] if index < len(lines) else (), self.room)
            self._strips[index] = strip
        in_thumb = y in thumb(len(self.document.lines), self.size.height, self.top)
        bar = Segment("▐", self.get_component_rich_style("body--thumb")) if in_thumb else Segment(" ", self.rich_style)
        return Strip(joined([*strip, bar]), self.size.width)

    def on_mouse_scroll_down(self) -> None:
        self.go_to(self.top + _WHEEL)

    def on_mouse_scroll_up(self) -> None:
        self.go_to(self.top - _WHEEL)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._painter.forget()
