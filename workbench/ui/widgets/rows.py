"""Lists of one-line rows that draw only what is visible, so that a key costs the same with ten rows and 50 000."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Generic, TypeAlias, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.rendering.cells import cell_len, cut
from workbench.ui.pace import over_ssh
from workbench.ui.widgets.strips import joined

RowType = TypeVar("RowType")
Piece: TypeAlias = tuple[str, str]
"""Safe text, and the name of a component class without the widget's prefix ("" for the row's own style)."""


class RowView(ScrollView, can_focus=True):
    """A list with a cursor. A subclass says how many rows there are (`row_count`) and what each holds (`row_pieces`).

    Component classes `rows--cursor`, `rows--cursor-blurred` and one for each name a subclass uses in its pieces must
    have styles in the stylesheet.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--cursor",
        "rows--cursor-blurred",
        "rows--edge",
        "rows--thumb",
        "rows--marked",
        "rows--strong",
        "rows--label",
        "rows--muted",
        "rows--accent",
        "rows--match",
        "rows--passed",
        "rows--failed",
        "rows--error",
        "rows--not-evaluated",
        "rows--flaky",
        "rows--running",
        "rows--queued",
        "rows--not-run",
    }

    class Picked(Message):
        """A row was clicked on that had the cursor already."""

        def __init__(self, view: "RowView", position: int) -> None:
            super().__init__()
            self.view = view
            self.position = position

        @property
        def control(self) -> "RowView":
            return self.view

    def __init__(self) -> None:
        super().__init__()
        self.when_moved: Callable[[], None] = _nothing
        """Called when the cursor stands on another row: at once, so that what follows is painted in the same frame."""
        self._cursor = 0
        self._styles: dict[tuple[str, str], Style] = {}

    # What a subclass gives

    def row_count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The left and the right side of a row; the left is cut where both do not fit into `width` cells."""
        raise NotImplementedError

    def is_marked(self, position: int) -> bool:
        """Whether the row is drawn as marked."""
        return False

    def can_stop(self, position: int) -> bool:
        """Whether the cursor may stand on the row (False for headings)."""
        return True

    # The cursor

    @property
    def cursor(self) -> int:
        """The position of the cursor; 0 in an empty list."""
        return self._cursor

    def move_to(self, position: int) -> None:
        """Puts the cursor on the row nearest to `position` and shows it."""
        count = self.row_count()
        if not count:
            self._cursor = 0
            return
        position = max(0, min(position, count - 1))
        position = self._stop_near(position, count, forwards=position >= self._cursor)
        before, self._cursor = self._cursor, position
        self.show_cursor()
        if before != position:
            self.refresh_lines(before)
            self.refresh_lines(position)
            self.moved()

    def moved(self) -> None:
        """The cursor stands on another row."""
        self.when_moved()

    def move(self, direction: str) -> None:
        """`up`, `down`, `page_up`, `page_down` (half a page), `top` or `bottom`."""
        half = max(1, self.size.height // 2)
        steps = {"up": -1, "down": 1, "page_up": -half, "page_down": half}
        last = self.row_count() - 1
        self.move_to({"top": 0, "bottom": last}.get(direction, self._cursor + steps.get(direction, 0)))

    def next_where(self, wanted: Callable[[int], bool], step: int) -> bool:
        """Move to the next (1) or previous (-1) of the wanted rows, from the other end again. Return whether there is
        any."""
        count = self.row_count()
        ahead = ((self._cursor + step * distance) % count for distance in range(1, count + 1))
        place = next(filter(wanted, ahead), None)
        if place is not None:
            self.move_to(place)
        return place is not None

    def show_cursor(self) -> None:
        """Scrolls as little as possible."""
        height, top = self.size.height, self.scroll_offset.y
        if not height:
            return
        # Over a slow line it is cheaper to scroll seldom and far: each scroll sends all rows again.
        jump = height // 3 if over_ssh() else 0
        if self._cursor < top:
            self.scroll_to(y=max(0, self._cursor - jump), animate=False)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1 + jump, animate=False)

    def rows_changed(self) -> None:
        """To be called when the number or order of rows changed: takes the new length and paints everything."""
        self.virtual_size = Size(0, self.row_count())
        self._cursor = max(0, min(self._cursor, self.row_count() - 1))
        self.refresh()

    def refresh_rows(self, positions: Iterable[int]) -> int:
        """Paints those of the rows that are visible; returns how many."""
        top, height = self.scroll_offset.y, self.size.height
        visible = [position for position in positions if top <= position < top + height]
        for position in visible:
            self.refresh_lines(position)
        return len(visible)

    # Drawing

    def render_line(self, y: int) -> Strip:
        width, top = self.size.width, self.scroll_offset.y
        position, count = y + top, self.row_count()
        if position >= count:
            return Strip.blank(width, self._style("", ""))
        look = self._look(position)
        bar = thumb(count, self.size.height, top)
        room = width - (3 if bar else 2)
        left, right = self.row_pieces(position, room)
        edge = "*" if self.is_marked(position) else "▌" if position == self._cursor else " "
        segments = [Segment(edge, self._style(look, "edge"))]
        segments += self._fill(left, right, room, look)
        if bar:
            segments.append(Segment(" ", self._style(look, "")))
        last = ("▐", self._style("", "thumb")) if y in bar else (" ", self._style(look, ""))
        return Strip(joined([*segments, Segment(*last)]), width)

    def notify_style_update(self) -> None:
        self._styles.clear()
        super().notify_style_update()

    def _fill(self, left: Sequence[Piece], right: Sequence[Piece], width: int, look: str) -> list[Segment]:
        taken = sum(cell_len(text) for text, _ in right)
        if taken > width - 4:
            right, taken = [], 0
        room = width - taken - (1 if right else 0)
        segments = []
        for text, name in left:
            shown = cut(text, room)
            room -= cell_len(shown)
            segments.append(Segment(shown, self._style(look, name)))
            if shown != text:
                break
        segments.append(Segment(" " * (room + (1 if right else 0)), self._style(look, "")))
        return segments + [Segment(text, self._style(look, name)) for text, name in right]

    def _look(self, position: int) -> str:
        if position == self._cursor:
            return "cursor" if self.has_focus or self.has_class("-active") else "cursor-blurred"
        return "marked" if self.is_marked(position) else ""

    def _style(self, look: str, name: str) -> Style:
        """The look of the row with the colours of the piece on top; in sixteen colours the cursor keeps its own."""
        if (look, name) not in self._styles:
            style = self.get_component_rich_style(f"rows--{look}") if look else self.rich_style
            if name and not (look == "cursor" and self.app.native_ansi_color):
                style += self.get_component_rich_style(f"rows--{name}", partial=True)
            self._styles[look, name] = style
        return self._styles[look, name]

    def _stop_near(self, position: int, count: int, *, forwards: bool) -> int:
        ways = (range(position, count), range(position, -1, -1))
        for way in ways if forwards else reversed(ways):
            for candidate in way:
                if self.can_stop(candidate):
                    return candidate
        return position

    # What the terminal says

    def on_resize(self, event: Resize) -> None:
        self.show_cursor()

    def on_focus(self) -> None:
        self.refresh_lines(self._cursor)

    def on_blur(self) -> None:
        self.refresh_lines(self._cursor)

    def on_click(self, event: Click) -> None:
        position = event.y + self.scroll_offset.y
        if 0 <= position < self.row_count() and self.can_stop(position):
            if position == self._cursor:
                self.post_message(self.Picked(self, position))
            else:
                self.move_to(position)


class RowsOf(RowView, Generic[RowType]):
    """A `RowView` of a sequence; a subclass says what each row holds."""

    def __init__(self, rows: Sequence[RowType] = ()) -> None:
        super().__init__()
        self.rows = rows

    @property
    def row(self) -> RowType:
        """The row under the cursor. Raises IndexError in an empty list."""
        return self.rows[self.cursor]

    @property
    def row_or_none(self) -> RowType | None:
        """The row under the cursor, None in an empty list."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def row_count(self) -> int:
        return len(self.rows)


def _nothing() -> None:
    """Nobody listens."""


def thumb(count: int, height: int, top: int) -> range:
    """The lines on which a scroll bar of our own shows where we are. Textual's would be sent again with each layout."""
    if count <= height or height < 1:
        return range(0)
    size = max(1, height * height // count)
    start = round(top * (height - size) / (count - height))
    return range(start, start + size)
