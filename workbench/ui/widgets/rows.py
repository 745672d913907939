"""Lists of one-line rows. Only visible rows are drawn, so 50,000 rows cost no more than ten."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.results.cells import cell_len
from workbench.results.lines import JOINERS, cut_line, pieces
from workbench.ui.terminal.terminal import over_ssh
from workbench.ui.widgets.named_styles import NamedStyles

RowType = TypeVar("RowType")
Piece: TypeAlias = tuple[str, str]
"""A safe text and the name of its style, or "" for the style of the row."""
_STYLES = {
    "thumb": "$scrollbar",
    "cursor": "bold $block-cursor-foreground on $block-cursor-background",
    "cursor-blurred": "$block-cursor-blurred-foreground on $block-cursor-blurred-background",
    "marked": "$foreground on $block-cursor-blurred-background",
    "flash": "bold $foreground on $accent 35%",
    "edge": "$accent",
    "cell": "bold $background on $accent",
    "strong": "bold $label-strong",
    "label": "$label",
    "accent": "$accent",
    "muted": "$status-muted",
    **{
        status: f"$status-{status}"
        for status in (
            "passed",
            "failed",
            "error",
            "not-evaluated",
            "not-applicable",
            "informational",
            "flaky",
            "running",
            "queued",
            "not-run",
        )
    },
}
_IN_ANSI = {
    # Sixteen colours have no quiet background, so only the * marks the row.
    "marked": "$foreground",
    "flash": "bold reverse $foreground",
    "cell": "bold $accent on $background",
}
EDGE, WEAK_EDGE = "▌", "▏"
"""Edge of the row under the cursor with and without the focus, different even without colours."""
_EDGES = {"cursor": EDGE, "cursor-blurred": WEAK_EDGE, "flash": "»"}
"""The edge of a row by its style."""


class RowView(ScrollView, can_focus=True):
    """A list with a cursor.

    A subclass defines the number of rows (`row_count`) and their content (`row_pieces`).
    """

    class Picked(Message):
        """A click on the row that already had the cursor."""

        def __init__(self, view: "RowView", position: int) -> None:
            super().__init__()
            self.view = view
            self.position = position

    def __init__(self) -> None:
        super().__init__()
        self.when_moved: Callable[[], None] = lambda: None
        """Called when the cursor may be on another row, before the next frame is painted."""
        self._cursor = 0
        self._styles = NamedStyles(self, _STYLES, _IN_ANSI)

    # Defined by subclasses

    def row_count(self) -> int:
        """Return the number of rows."""
        raise NotImplementedError

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the left and right side of a row. If both do not fit into `width` cells, the left side is cut."""
        raise NotImplementedError

    def is_marked(self, position: int) -> bool:
        """Return whether the row is drawn as marked."""
        return False

    def is_flashing(self, position: int) -> bool:
        """Return whether the row is highlighted for a moment."""
        return False

    def can_stop(self, position: int) -> bool:
        """Return whether the cursor can stop on the row. Lists with headings override this method."""
        return True

    @property
    def cursor(self) -> int:
        """The position of the cursor, or 0 in an empty list."""
        return self._cursor

    def move_to(self, position: int) -> None:
        """Put the cursor on the row at `position` and show it.

        If the cursor cannot stop there, it goes to the next possible row in the direction of the move, else back.
        """
        count = self.row_count()
        if not count:
            self._cursor = 0
            return
        position = max(0, min(position, count - 1))
        ahead, back = range(position, count), range(position, -1, -1)
        nearest = chain(ahead, back) if position >= self._cursor else chain(back, ahead)
        position = next(filter(self.can_stop, nearest), position)
        before, self._cursor = self._cursor, position
        self.show_cursor()
        if before != position:
            self.refresh_lines(before)
            self.refresh_lines(position)
            self.moved()

    def moved(self) -> None:
        """Call `when_moved` after the cursor has moved to another row."""
        self.when_moved()

    def move(self, direction: str) -> None:
        """Move the cursor: `up`, `down`, `page_up`, `page_down` (half a page), `top` or `bottom`."""
        half = max(1, self.size.height // 2)
        steps = {"up": -1, "down": 1, "page_up": -half, "page_down": half}
        last = self.row_count() - 1
        self.move_to({"top": 0, "bottom": last}.get(direction, self._cursor + steps.get(direction, 0)))

    def next_where(self, wanted: Callable[[int], bool], step: int) -> bool:
        """Move to the next (1) or previous (-1) wanted row, wrapping around. Return False if there is none."""
        count = self.row_count()
        ahead = ((self._cursor + step * distance) % count for distance in range(1, count + 1))
        place = next(filter(wanted, ahead), None)
        if place is not None:
            self.move_to(place)
        return place is not None

    def show_cursor(self) -> None:
        """Scroll to show the cursor: as little as possible, or a third of the height more over SSH."""
        height, top = self.size.height, self.scroll_offset.y
        if not height:
            return
        # Each scroll sends all rows again, so over a slow line it is cheaper to scroll rarely and far.
        jump = height // 3 if over_ssh() else 0
        if self._cursor < top:
            self.scroll_to(y=max(0, self._cursor - jump), animate=False)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1 + jump, animate=False)

    def rows_changed(self) -> None:
        """Update the scroll size, move the cursor to an existing row, and repaint everything.

        Call this after rows were added, removed or moved.
        """
        self.virtual_size = Size(0, self.row_count())
        self._cursor = max(0, min(self._cursor, self.row_count() - 1))
        self.refresh()

    def refresh_rows(self, positions: Iterable[int]) -> int:
        """Repaint the visible ones of these rows. Return their number."""
        top, height = self.scroll_offset.y, self.size.height
        visible = [position for position in positions if top <= position < top + height]
        for position in visible:
            self.refresh_lines(position)
        return len(visible)

    def render_line(self, y: int) -> Strip:
        """Draw a row: edge, left side, right side and scroll bar."""
        width, top = self.size.width, self.scroll_offset.y
        position, count = y + top, self.row_count()
        if position >= count:
            return Strip.blank(width, self._style("", ""))
        look = self._look(position)
        bar = thumb(count, self.size.height, top)
        room = width - (3 if bar else 2)
        left, right = self.row_pieces(position, room)
        edge = "*" if self.is_marked(position) else _EDGES.get(look, " ")
        segments = [Segment(edge, self._style(look, "muted" if edge == WEAK_EDGE else "edge"))]
        segments += self._fill(left, right, room, look)
        if bar:
            segments.append(Segment(" ", self._style(look, "")))
        last = ("▐", self._style("", "thumb")) if y in bar else (" ", self._style(look, ""))
        return Strip(joined([*segments, Segment(*last)]), width)

    def notify_style_update(self) -> None:
        """Forget the cached styles."""
        self._styles.forget()
        super().notify_style_update()

    def _fill(self, left: Sequence[Piece], right: Sequence[Piece], width: int, look: str) -> list[Segment]:
        end = sum(cell_len(text) for text, _ in right)
        if end > width - 4:
            right, end = (), 0
        room = width - end - bool(end)
        used = sum(cell_len(text) for text, _ in left)
        if used > room or any(joiner in text for text, _ in left for joiner in JOINERS):
            # Most rows need no `Text`, which takes several times as long. Each move of the cursor may draw all rows.
            line = cut_line(Text.assemble(*left), room)
            left, used = list(pieces(line)), line.cell_len
        parts = (*left, (" " * (width - end - used), ""), *right)
        return [Segment(text, self._style(look, name)) for text, name in parts if text]

    def _look(self, position: int) -> str:
        if self.is_flashing(position):
            return "flash"
        if position == self._cursor:
            return "cursor" if self.has_focus or self.has_class("-active") else "cursor-blurred"
        return "marked" if self.is_marked(position) else ""

    def _style(self, look: str, name: str) -> Style:
        """Return a row's style with a piece's colours on top. With sixteen colours, the cursor's colours stay.

        The cell under the cursor always has its own colours.
        """
        keeps = look.startswith("cursor") and name != "cell" and self.app.native_ansi_color
        return self._styles.get(look, "" if keeps else name)

    def on_resize(self, event: Resize) -> None:
        """Keep the cursor visible."""
        self.show_cursor()

    def on_focus(self) -> None:
        """Redraw the row under the cursor after a change of the focus."""
        self.refresh_lines(self._cursor)

    on_blur = on_focus

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked row, or report a click on the current one."""
        position = event.y + self.scroll_offset.y
        if 0 <= position < self.row_count() and self.can_stop(position):
            if position == self._cursor:
                self.post_message(self.Picked(self, position))
            else:
                self.move_to(position)


class RowsOf(RowView, Generic[RowType]):
    """A list with a row for each item of a sequence. A subclass defines the content of a row."""

    def __init__(self, rows: Sequence[RowType] = ()) -> None:
        super().__init__()
        self.rows = rows

    @property
    def row(self) -> RowType:
        """The row under the cursor.

        Raises:
            IndexError: The list is empty.
        """
        return self.rows[self.cursor]

    @property
    def row_or_none(self) -> RowType | None:
        """The row under the cursor, or None in an empty list."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def row_count(self) -> int:
        """Return the number of rows."""
        return len(self.rows)


def thumb(count: int, height: int, top: int) -> range:
    """Return the line numbers of a scroll bar's thumb, or an empty range if all lines fit.

    Textual's own scroll bar would be sent to the terminal with each layout.
    """
    if count <= height or height < 1:
        return range(0)
    size = max(1, height * height // count)
    start = round(top * (height - size) / (count - height))
    return range(start, start + size)


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """Return the same line in fewer segments. Each change of colour costs about forty bytes.

    Adjacent segments of one style become one. Blanks take the style of a neighbour with the same background.
    """
    found: list[Segment] = []
    for segment in segments:
        text, style, _ = segment
        if not text:
            continue
        if found and style is not None and (before := found[-1].style) is not None:
            if style == before or (text.isspace() and _alike(style, before)):
                found[-1] = Segment(found[-1].text + text, before)
                continue
            if found[-1].text.isspace() and _alike(style, before):
                found[-1] = Segment(found[-1].text + text, style)
                continue
        found.append(segment)
    return found


@lru_cache(maxsize=4096)
def _alike(one: Style, other: Style) -> bool:
    """Return whether a blank looks the same in both styles."""
    marks = (one.underline, other.underline, one.strike, other.strike, one.reverse, other.reverse)
    return one.bgcolor == other.bgcolor and not any(marks)
