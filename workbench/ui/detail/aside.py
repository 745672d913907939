"""Details of the item under the cursor: beside the list if there is room, else below it."""

import sys
from dataclasses import dataclass

from rich.text import Text
from textual.geometry import Size

from workbench.results.document import AsideWhen, Item
from workbench.results.lines import SIDE_BY_SIDE, Line, cut_line
from workbench.text.counting import counted

_LEAST_HEIGHT = 9
"""Minimum height, in lines, for an aside. With less, only the list is shown."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Shares of a widget's cells.

    The list has `width` × `height`, with its scroll bar on the right. The aside has `aside_width` × `aside_height` (0:
    none). `beside` puts it to the right of the list, after a line, else below a line. The screen is `narrow` if it has
    fewer columns than a terminal usually has.
    """

    width: int
    height: int
    aside_width: int = 0
    aside_height: int = 0
    beside: bool = False
    narrow: bool = False


def layout(size: Size, aside: AsideWhen, listed: int = sys.maxsize) -> Layout:
    """Return the shares of a widget of this size. An aside below gets what a list of `listed` lines does not need."""
    width, height = max(size.width - 1, 0), size.height
    wide = width >= SIDE_BY_SIDE
    if height < _LEAST_HEIGHT or aside == "never":
        return Layout(width, height)
    if wide:
        column = size.width * 11 // 20
        return Layout(column, height, size.width - column - 4, height, beside=True)
    below = max(height * 2 // 5, 4, height - listed - 1)
    return Layout(width, height - below, width - 1, below - 1)


class Aside:
    """The lines about one item, and their scroll position."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self.head: Line = Text()
        """The heading for the line between list and aside, if the aside is below."""
        self._of: tuple[Item | None, Layout] = (None, Layout(0, 0))
        self._top = 0

    def show(self, item: Item | None, shares: Layout) -> None:
        """Show the details of another item from the first line on."""
        if (item, shares) != self._of:
            shown = item is not None and item.aside is not None and shares.aside_width > 0
            self._lines = list(item.aside(shares.aside_width)) if shown and item and item.aside else []
            self._of, self._top = (item, shares), 0
            self.head = self._lines.pop(0) if self._lines and not shares.beside else Text()

    def page(self, step: int) -> bool:
        """Scroll by a page if there is more that way. Return whether it scrolled."""
        height = self._of[1].aside_height
        last = max(len(self._lines) - height, 0)
        top = min(max(self._top + step * max(height - 2, 1), 0), last)
        moved = top != self._top
        self._top = top
        return moved

    def line(self, y: int) -> Line:
        """Return line `y`. The last line says how much more there is."""
        shares = self._of[1]
        more = len(self._lines) - self._top - shares.aside_height
        if more > 0 and y == shares.aside_height - 1:
            return cut_line(Text.styled(f"… {counted(more + 1, 'more line')}: ctrl+d", "fold"), shares.aside_width)
        index = self._top + y
        return self._lines[index] if index < len(self._lines) else Text()
