"""The two fixed lines over a pane: pane names with the turn, and the verdicts of the case."""

from typing import ClassVar

from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.rendering.cells import cell_len
from workbench.rendering.lines import Line, Segment, cut_line, width_of
from workbench.ui.detail.styles import COMPONENTS, Painter, component_css


class Head(Widget):
    """Lines such as ` 1 Diff  2 Scores  3 Log        turn 2 of 3`, and a summary below."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENTS)
    DEFAULT_CSS = "Head { height: 2; }" + component_css("Head")

    class Chosen(Message):
        """A click on the name of a pane."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__()
        self._titles: tuple[str, ...] = ()
        self._chosen = 0
        self._position = ""
        self._summary: Line = ()
        self._painter = Painter(self)

    def show(self, titles: tuple[str, ...], chosen: int, position: str, summary: Line) -> None:
        """Show the names of the panes, the open one, the visible turn, and the summary."""
        if (titles, chosen, position, summary) != (self._titles, self._chosen, self._position, self._summary):
            self._titles, self._chosen, self._position, self._summary = titles, chosen, position, summary
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the pane names, or the summary."""
        width = self.size.width
        return self._painter.strip(self._strip_line(width) if y == 0 else (Segment(" "), *self._summary), width)

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
        line: list[Segment] = []
        for index, tab in enumerate(tabs(self._titles, self._chosen, width)):
            digit, _, title = tab.strip(" ").partition(" ")
            before, after = len(tab) - len(tab.lstrip(" ")), len(tab) - len(tab.rstrip(" "))
            line += [
                Segment(f"{' ' * before}{digit} ", "tab"),
                Segment(title, "tab-chosen" if index == self._chosen else "tab"),
                Segment(" " * after),
            ]
        room = width - width_of(tuple(line)) - cell_len(self._position) - 1
        if self._position and room >= 0:
            line += [Segment(" " * room), Segment(self._position, "label")]
        return cut_line(tuple(line), width)

    def _places(self) -> list[tuple[int, int]]:
        places: list[tuple[int, int]] = []
        start = 0
        for tab in tabs(self._titles, self._chosen, self.size.width):
            places.append((start, start + cell_len(tab)))
            start += cell_len(tab)
        return places


def tabs(titles: tuple[str, ...], chosen: int, width: int) -> list[str]:
    """Return the pane names with their digits, in `width` cells.

    If there is little room, the spaces go first. Then all names but the chosen one are cut.
    """
    wide = [f" {number} {title} " for number, title in enumerate(titles, 1)]
    if sum(map(cell_len, wide)) <= width:
        return wide
    for letters in range(max(map(len, titles)), 0, -1):
        cut = [title if number == chosen else title[:letters] for number, title in enumerate(titles)]
        tight = [f" {number} {title}" for number, title in enumerate(cut, 1)]
        if sum(map(cell_len, tight)) <= width:
            return tight
    return [f" {number}" if number - 1 != chosen else f" {number} {title}" for number, title in enumerate(titles, 1)]
