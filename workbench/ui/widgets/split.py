"""Two sides with a border between them that can be moved."""

from collections.abc import Callable

from textual.containers import Horizontal
from textual.events import MouseDown, MouseMove, MouseUp
from textual.widget import Widget

STEP = 4
"""Columns by which a key moves the border."""
_LEAST = 20
"""Columns that each side keeps."""
_RULES = ("width", "min_width", "max_width")


class Split(Horizontal):
    """A left and a right side. The user drags the border between them, or moves it by keys.

    `share` is the part of the width that the left side has, or None for that of the stylesheet. `one_side` says whether
    only one side is visible, so that the stylesheet decides.
    """

    def __init__(self, left: Widget, right: Widget, one_side: Callable[[], bool]) -> None:
        super().__init__(left, right, id="body")
        self._left, self._right, self._one_side = left, right, one_side
        self.share: float | None = None
        self._dragging = False

    def use(self, share: float | None) -> None:
        """Give the left side this part of the width."""
        self.share = share
        self.fit()

    def widen(self, columns: int) -> bool:
        """Give the left side more or less columns. Return False if the border cannot move."""
        before = self._left.outer_size.width
        if not self._movable:
            return False
        self._put(before + columns)
        return self._columns() != before

    def fit(self) -> None:
        """Lay out the sides again, because the size or what is visible has changed."""
        if self.share is None or not self._movable:
            for rule in _RULES:
                self._left.styles.clear_rule(rule)
            self._left.refresh(layout=True)
            return
        for rule in _RULES:
            setattr(self._left.styles, rule, self._columns())

    def on_resize(self) -> None:
        """Keep the share of the left side."""
        if self.share is not None:
            self.fit()

    def is_border(self, column: int) -> bool:
        """Return whether a column of the screen belongs to the border, and the border can move."""
        border = self._right.region.x
        return self._movable and column in (border - 1, border)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Start to drag if the button is pressed on the border."""
        if event.button == 1 and self.is_border(int(event.screen_x)):
            self._dragging = True
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Drag the border."""
        if self._dragging:
            self._put(event.screen_x - self.region.x + 1)
            event.stop()

    def on_mouse_up(self, event: MouseUp) -> None:
        """End dragging."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()
            event.stop()

    @property
    def _movable(self) -> bool:
        both = self._left.display and self._right.display
        return both and not self._one_side() and self.size.width >= 2 * _LEAST

    def _columns(self) -> int:
        width = self.size.width
        return max(_LEAST, min(round((self.share or 0.0) * width), width - _LEAST))

    def _put(self, columns: int) -> None:
        width = self.size.width
        share = max(_LEAST, min(columns, width - _LEAST)) / width
        if share != self.share:
            self.use(share)
