"""Drawing of lines: styles from the theme, the layout of a list with an aside, and a widget for styled lines."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.text import Text
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.document import Item
from workbench.results.faces import FACES, FLAKY
from workbench.results.lines import SIDE_BY_SIDE, Line, cut_line, pieces
from workbench.text.counting import counted
from workbench.ui.widgets.named_styles import NamedStyles
from workbench.ui.widgets.rows import joined

_STYLES = {
    "muted": "$status-muted",
    "label": "$label",
    "strong": "bold",
    "name": "bold",
    "user": "italic",
    "heading": "bold $label-strong",
    "rule": "$border-blurred",
    "hint": "bold $accent",
    "fold": "$label",
    "underlined": "underline $label",
    "status-error-strong": "bold $status-error",
    "diff-same": "$diff-same",
    "diff-differs": "bold $diff-differs",
    "diff-missing": "$diff-missing",
    "diff-extra": "$diff-extra",
    "diff-moved": "$diff-moved",
    "mark-missing": "bold underline $diff-missing on $diff-missing-background",
    "mark-extra": "bold underline $diff-extra on $diff-extra-background",
    "evidence-for": "$status-passed",
    "evidence-against": "$status-failed",
    "tab": "$status-muted",
    "tab-chosen": "bold underline $label-strong",
    **{face.variable: f"bold ${face.variable}" for face in (*FACES.values(), FLAKY)},
    "thumb": "$scrollbar",
    "edge": "$accent",
    "edge-blurred": "$status-muted",
    "cursor": "on $block-cursor-background",
    "cursor-blurred": "on $block-cursor-blurred-background",
    "chosen": "on $block-cursor-background",
}
_IN_ANSI = {
    # Sixteen colours have no quiet background, so only the edge marks the cursor.
    "cursor": "",
    "cursor-blurred": "",
}


class Painter(NamedStyles):
    """A converter of lines to strips in the styles of a widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__(widget, _STYLES, _IN_ANSI)

    def strip(self, line: Line, width: int) -> Strip:
        """Return the line in exactly `width` cells."""
        strip = Strip([Segment(text, self.get(name)) for text, name in pieces(line)])
        return Strip(joined(strip.adjust_cell_length(width, self.get(""))), width)


_LEAST_HEIGHT = 9
"""Minimum height of the widget, in lines, for showing an aside."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of a list and its aside, in cells.

    The list has `width` × `height`, without its scroll bar. The aside has `aside_width` × `aside_height`. Without an
    aside, both are 0. `beside`: the aside is on the right of the list, not below it. `narrow`: the screen has fewer
    than the usual number of columns.
    """

    width: int
    height: int
    aside_width: int = 0
    aside_height: int = 0
    beside: bool = False
    narrow: bool = False


def layout(size: Size, aside: bool, listed: int = sys.maxsize) -> Layout:
    """Return the layout for a widget of this size, whose list has `listed` lines.

    A low widget has no aside. An aside below the list gets at least the lines that the list does not need.
    """
    width, height = max(size.width - 1, 0), size.height
    if height < _LEAST_HEIGHT or not aside:
        return Layout(width, height)
    if width >= SIDE_BY_SIDE:
        column = size.width * 11 // 20
        return Layout(column, height, size.width - column - 4, height, beside=True)
    below = max(height * 2 // 5, 4, height - listed - 1)
    return Layout(width, height - below, width - 1, below - 1)


class Aside:
    """The details of one item, beside or below the list, with a scroll position."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self.head: Line = Text()
        """The heading on the line between the list and an aside below it."""
        self._of: tuple[Item | None, Layout] = (None, Layout(0, 0))
        self._top = 0

    def show(self, item: Item | None, shares: Layout) -> None:
        """Replace the details if the item or the layout changed, and scroll to the top."""
        if (item, shares) != self._of:
            shown = item is not None and item.aside is not None and shares.aside_width > 0
            self._lines = list(item.aside(shares.aside_width)) if shown and item and item.aside else []
            self._of, self._top = (item, shares), 0
            self.head = self._lines.pop(0) if self._lines and not shares.beside else Text()

    def page(self, step: int) -> bool:
        """Scroll a page forward (1) or back (-1). Return whether anything changed."""
        height = self._of[1].aside_height
        last = max(len(self._lines) - height, 0)
        top = min(max(self._top + step * max(height - 2, 1), 0), last)
        moved = top != self._top
        self._top = top
        return moved

    def line(self, y: int) -> Line:
        """Return the visible line `y`. If more lines follow, the last visible line says how many."""
        shares = self._of[1]
        more = len(self._lines) - self._top - shares.aside_height
        if more > 0 and y == shares.aside_height - 1:
            return cut_line(Text.styled(f"… {counted(more + 1, 'more line')}: ctrl+d", "fold"), shares.aside_width)
        index = self._top + y
        return self._lines[index] if index < len(self._lines) else Text()


class LineView(Widget):
    """A widget that shows styled lines and is as high as their number."""

    DEFAULT_CSS = "LineView { height: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[Line] = ()
        self._painter = Painter(self)

    def show(self, lines: Sequence[Line]) -> None:
        """Replace the lines."""
        if list(lines) == list(self._lines):
            return
        if len(lines) != len(self._lines):
            self.styles.height = len(lines)
        self._lines = lines
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        return self._painter.strip(self._lines[y] if y < len(self._lines) else Text(), self.size.width)

    def notify_style_update(self) -> None:
        """Clear the cached styles."""
        super().notify_style_update()
        self._painter.forget()
