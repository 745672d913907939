"""The fixed lines over a pane: pane names with the turn, and in a conversation its state."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from workbench.results.cells import cell_len
from workbench.results.lines import Line, cut_line
from workbench.ui.detail.styles import COMPONENTS, Painter, component_css

_EXPLAINED = 5.0
"""Seconds for which a remark replaces the pane names."""


class Tab(NamedTuple):
    """A pane in the strip: a blank, its digit, a blank if there is room with its name, and a blank."""

    lead: str
    digit: str
    title: str
    after: str = ""

    @property
    def size(self) -> int:
        """Its width in cells."""
        return sum(map(cell_len, self))


class Head(Widget):
    """A line such as ` 1 Evidence  2 Judges  3 Trace  4 History        turn 2/3`, and perhaps a summary below."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    DEFAULT_CSS = "Head { height: 1; }" + component_css("Head")

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
        self._remark = ""
        self._timer: Timer | None = None
        self._painter = Painter(self)

    def show(self, tabs: tuple[tuple[str, str], ...], chosen: int, position: str, summary: Line) -> None:
        """Show the digits and names of the panes, the open one, the visible turn, and the summary."""
        if (tabs, chosen, position, summary) != (self._tabs, self._chosen, self._position, self._summary):
            self._tabs, self._chosen, self._position, self._summary = tabs, chosen, position, summary
            self.refresh()

    def explain(self, remark: str) -> None:
        """Show a remark instead of the pane names for a while. "" shows the names again."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if remark:
            self._timer = self.set_timer(_EXPLAINED, lambda: self.explain(""))
        if remark != self._remark:
            self._remark = remark
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
        if self._remark:
            return cut_line(Text.styled(f" {self._remark}", "status-not-evaluated"), width)
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
        for tab in [] if self._remark else self._laid_out(self.size.width):
            places.append((start, start + tab.size))
            start += tab.size
        return places


def tabs(panes: Sequence[tuple[str, str]], chosen: int, width: int, position: int = 0) -> list[Tab]:
    """Return the panes with their digits and names, in `width` cells with `position` cells to the right of them.

    If there is little room, blanks go first, then the position, then the ends of names, that of the chosen one last.
    """
    room = width - (position + 1 if position else 0)
    for before, after, size in ((" ", " ", room), (" ", "", room), ("", "", room), (" ", "", width), ("", "", width)):
        named = [Tab(" ", digit, f"{before}{title}", after) for digit, title in panes]
        if sum(tab.size for tab in named) <= size:
            return named
    left = width - 2 * len(panes) - (cell_len(panes[chosen][1]) if panes else 0)
    most = max(left // max(len(panes) - 1, 1), 1)
    return [Tab(" ", digit, title if index == chosen else title[:most]) for index, (digit, title) in enumerate(panes)]
