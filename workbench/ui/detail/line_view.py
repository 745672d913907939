"""A widget that shows a few lines, without focus or scrolling."""

from collections.abc import Sequence

from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.lines import Line
from workbench.ui.detail.styles import Painter


class LineView(Widget):
    """Styled lines. Its height is their number.

    The colours are those of `styled`, a widget with all component classes, because they are slow to make.
    """

    DEFAULT_CSS = "LineView { height: 1; }"

    def __init__(self, styled: Widget) -> None:
        super().__init__()
        self._lines: Sequence[Line] = ()
        self._painter = Painter(styled)

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
        """Forget the cached styles."""
        super().notify_style_update()
        self._painter.forget()
