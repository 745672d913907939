"""A page of labelled lines, shown on the right side when no case is."""

from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.cells import fit
from workbench.results.lines import hang_text, pieces, wrap

Line = tuple[str, str]
"""A label and a text, both safe. Without a text, the label is a heading."""
_LABEL_WIDTH = 12
_WHEEL = 3


class Page(Widget, can_focus=True):
    """A framed page of labelled lines.

    Lines are wrapped when they are drawn, without Textual's layout, so that nothing is painted twice.
    """

    COMPONENT_CLASSES = {"page--label", "page--heading"}  # noqa: RUF012 - Textual's declaration

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[Line] = ()
        self._wrapped: tuple[int, list[Text]] = (-1, [])
        self._top = 0

    def show(self, title: str, lines: Sequence[Line]) -> None:
        """Replace the page."""
        self._lines, self._wrapped, self._top = lines, (-1, []), 0
        self.border_title = Content(title)  # also paints everything

    def move(self, direction: str) -> bool:
        """Scroll. Return whether the page moved."""
        half = max(1, self.size.height // 2)
        steps = {"down": 1, "up": -1, "page_down": half, "page_up": -half}
        last = max(0, len(self._rows()) - self.size.height)
        wanted = {"top": 0, "bottom": last}.get(direction, self._top + steps.get(direction, 0))
        top = max(0, min(wanted, last))
        if top == self._top:
            return False
        self._top = top
        self.refresh()
        return True

    def render_line(self, y: int) -> Strip:
        """Draw one line of the page."""
        rows, plain = self._rows()[y + self._top :], self.rich_style
        segments = [
            Segment(text, plain + self.get_component_rich_style(f"page--{name}", partial=True) if name else plain)
            for text, name in (pieces(rows[0]) if rows else ())
        ]
        return Strip(segments).adjust_cell_length(self.size.width, Style(bgcolor=plain.bgcolor))

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        for _ in range(_WHEEL):
            self.move("down")

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        for _ in range(_WHEEL):
            self.move("up")

    def _rows(self) -> list[Text]:
        """Return the page as screen lines. Wrapped text is aligned under its first line."""
        width = self.size.width
        if self._wrapped[0] != width:
            self._wrapped = (width, [row for line in self._lines for row in _rows_of(line, width)])
        return self._wrapped[1]


def _rows_of(line: Line, width: int) -> Iterable[Text]:
    label, text = line
    if not text:
        return wrap(Text.styled(label, "heading"), max(width, 10))
    lead = Text.styled(f"{fit(label, _LABEL_WIDTH - 1)} ", "label")
    return hang_text(lead, Text(text), width, _LABEL_WIDTH)
