"""Small widgets of several screens (a framed title, a text field, labelled lines, two sides), and background work."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.events import MouseDown, MouseMove, MouseUp
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from workbench.results.cells import cell_len, cut_name, fit
from workbench.results.lines import hang_text, pieces, wrap
from workbench.text.safe_text import one_line
from workbench.ui.widgets.named_styles import NamedStyles

Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]
"""An async function without arguments, or a `functools.partial` of an async function."""
_CORNERS = 6
"""Cells of a frame's first line beside its title."""


class Titled(Vertical):
    """A frame with a title such as `triage: late_parcel…paid_twice`, whose name is cut to fit.

    The texts are safe. A cut name stays different from `others`.
    """

    def __init__(self, words: str, name: str, *, classes: str, others: Iterable[str] = ()) -> None:
        super().__init__(classes=classes)
        self._words, self._name_in_title, self._others = words, name, tuple(others)

    def use_name(self, name: str) -> None:
        """Replace the name."""
        self._name_in_title = name
        self._write()

    def on_resize(self) -> None:
        """Cut the name for the new width."""
        self._write()

    def _write(self) -> None:
        room = self.outer_size.width - _CORNERS - cell_len(self._words)
        self.border_title = Content(self._words + cut_name(self._name_in_title, max(room, 1), self._others))


class PlainInput(Input):
    """A text field of one line for safe text. The cursor does not blink, so an idle screen sends nothing."""

    def __init__(self, value: str = "", *, placeholder: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Return the value as one safe line. A trailing blank is kept."""
        safe = one_line(value)
        return safe + " " if value.endswith(" ") and safe else safe


Line = tuple[str, str]
"""A label and a text, both safe. Without a text, the label is a heading."""
_LABEL_WIDTH = 12
_WHEEL = 3


class Page(Widget, can_focus=True):
    """A framed page of labelled lines.

    The page wraps lines itself while drawing. With Textual's layout, everything would be painted twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self._styles = NamedStyles(self, {"label": "$label", "heading": "bold $label-strong"}, {})
        self._lines: Sequence[Line] = ()
        self._wrapped: tuple[int, list[Text]] = (-1, [])
        self._top = 0

    def show(self, title: str, lines: Sequence[Line]) -> None:
        """Replace title and lines, and scroll to the top. All texts must be safe."""
        self._lines, self._wrapped, self._top = lines, (-1, []), 0
        self.border_title = Content(title)  # also paints everything

    def move(self, direction: str) -> bool:
        """Scroll in a direction of `RowView.move`. Return whether the page moved."""
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
        rows, style = self._rows()[y + self._top :], self._styles.get
        segments = [Segment(text, style(name)) for text, name in (pieces(rows[0]) if rows else ())]
        return Strip(segments).adjust_cell_length(self.size.width, Style(bgcolor=style().bgcolor))

    def notify_style_update(self) -> None:
        """Forget the cached styles."""
        super().notify_style_update()
        self._styles.forget()

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        for _ in range(_WHEEL):
            self.move("down")

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        for _ in range(_WHEEL):
            self.move("up")

    def _rows(self) -> list[Text]:
        """Return the wrapped lines. Continuation lines are indented by the width of the label."""
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


STEP = 4
"""Number of columns by which a key moves the border."""
_LEAST = 20
"""Minimum width of each side in columns."""
_RULES = ("width", "min_width", "max_width")


class Split(Horizontal):
    """A left and a right side, with a border that the user can drag or move with keys.

    `share` is the left side's share of the width (0 to 1), or None for the width of the stylesheet. `one_side` returns
    whether only one side is visible. The stylesheet's width then applies, too.
    """

    def __init__(self, left: Widget, right: Widget, one_side: Callable[[], bool]) -> None:
        super().__init__(left, right, id="body")
        self._left, self._right, self._one_side = left, right, one_side
        self.share: float | None = None
        self._dragging = False

    def use(self, share: float | None) -> None:
        """Set the left side's share of the width, or None for the width of the stylesheet."""
        self.share = share
        self.fit()

    def widen(self, columns: int) -> bool:
        """Widen the left side by `columns`, which may be negative. Return False if the border cannot move."""
        before = self._left.outer_size.width
        if not self._movable:
            return False
        self._put(before + columns)
        return self._columns() != before

    def fit(self) -> None:
        """Lay out the sides again after the size or the visible sides have changed."""
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
        """Return whether a column of the screen belongs to a border that can move."""
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


def start_work(node: DOMNode, work: Work, group: str, *, exclusive: bool = False) -> None:
    """Run an async function in the background. With `exclusive`, first cancel the group's current work.

    The next key waits for the work, unless its group is in `key_order.BACKGROUND`. `work` is not a coroutine, because
    Python warns about a coroutine that is cancelled before its first step.
    """
    function: Any = work  # The types of `run_worker` do not allow a function that returns None.
    node.run_worker(function, group=group, exclusive=exclusive)
