"""What the right side says where there is no case to show: about an agent, or about an empty folder."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

Line = tuple[str, str]
"""A label, and a text; both safe. Without a label the text stands alone, without a text the label is a heading."""
_LABEL_WIDTH = 12


class Overview(VerticalScroll):
    """A framed page of labelled lines."""

    def __init__(self) -> None:
        super().__init__()
        self._page = Static("", markup=False)

    def compose(self) -> ComposeResult:
        yield self._page

    def show(self, title: str, lines: Sequence[Line]) -> None:
        """Replaces the page."""
        self.border_title = Content(title)
        self._page.update(Content("\n").join(map(_line, lines)))
        self.scroll_home(animate=False)

    def move(self, direction: str) -> bool:
        """Scrolls; whether there was anywhere to go."""
        before = self.scroll_offset.y
        half = max(1, self.size.height // 2)
        steps = {"down": 1, "up": -1, "page_down": half, "page_up": -half}
        last = self.max_scroll_y
        self.scroll_to(y={"top": 0, "bottom": last}.get(direction, before + steps.get(direction, 0)), animate=False)
        return self.scroll_offset.y != before


def _line(line: Line) -> Content:
    label, text = line
    if not label:
        return Content(text)
    if not text:
        return Content.styled(label, "bold $label-strong")
    return Content.assemble((f"{label:<{_LABEL_WIDTH}}", "$label"), text)
