"""What the right side says where there is no case to show: about an agent, or about an empty folder."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from workbench.ui.cells import fit, wrap

Line = tuple[str, str]
"""A label, and a text; both safe. Without a text the label is a heading."""
_LABEL_WIDTH = 12


class Overview(VerticalScroll):
    """A framed page of labelled lines."""

    def __init__(self) -> None:
        super().__init__()
        self._page = Static("", markup=False)
        self._lines: Sequence[Line] = ()

    def compose(self) -> ComposeResult:
        yield self._page

    def show(self, title: str, lines: Sequence[Line]) -> None:
        """Replaces the page."""
        self.border_title = Content(title)
        self._lines = lines
        self._lay_out()
        self.scroll_home(animate=False)

    def on_resize(self) -> None:
        self._lay_out()

    def move(self, direction: str) -> bool:
        """Scrolls; whether there was anywhere to go."""
        before = self.scroll_offset.y
        half = max(1, self.size.height // 2)
        steps = {"down": 1, "up": -1, "page_down": half, "page_up": -half}
        last = self.max_scroll_y
        self.scroll_to(y={"top": 0, "bottom": last}.get(direction, before + steps.get(direction, 0)), animate=False)
        return self.scroll_offset.y != before

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        self._page.update(Content("\n").join([part for line in self._lines for part in _line(line, width)]))


def _line(line: Line, width: int) -> list[Content]:
    """A line of the page, as many lines of the screen as it needs; what follows the first stands under its text."""
    label, text = line
    if not text:
        return [Content.styled(label, "bold $label-strong")]
    first, *rest = wrap(text, max(width - _LABEL_WIDTH, 10))
    indented = [Content(" " * _LABEL_WIDTH + more) for more in rest]
    return [Content.assemble((fit(label, _LABEL_WIDTH - 1) + " ", "$label"), first), *indented]
