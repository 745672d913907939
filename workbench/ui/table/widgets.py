"""The widgets of the table: column titles, rows, and the explanation of a cell."""

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.case_table import Cell, Layout
from workbench.results.cells import cell_len, cut, cut_name, cut_sibling, fit
from workbench.results.faces import FROZEN
from workbench.results.lines import wrap
from workbench.ui.table.model import Table
from workbench.ui.tree.labels import NEIGHBOURS, style_of
from workbench.ui.tree.outline import Pair
from workbench.ui.widgets.rows import Piece, RowView, thumb

_EDGES = 3
"""Width in cells of the edge, the gap and the scroll bar beside a row's content."""


class TableRows(RowView):
    """The rows of a `Table`. Only visible rows and columns are drawn."""

    def __init__(self, table: Table, marks: Callable[[Pair], bool]) -> None:
        """Create the rows. `marks` returns whether a case is marked."""
        super().__init__()
        self.table, self._marked = table, marks
        self.when_column_moved: Callable[[], None] = lambda: None
        self._strips: dict[tuple[int, bool, bool], Strip] = {}
        """A cache of drawn lines by position, mark and scroll bar, because scrolling would draw all lines again."""
        self._strips_layout: tuple[Layout, int] | None = None

    @property
    def room(self) -> int:
        """Width of a row's content in cells."""
        return max(self.size.width - _EDGES, 1)

    def layout_now(self) -> Layout:
        """Return the visible columns."""
        return self.table.layout(self.room, self.app.size.width)

    def show(self, line: int | None = None) -> None:
        """Show the rows again after a change of the table. The cursor stays on its screen line, or goes to `line`."""
        if line is None:
            line = max(0, self._cursor - self.scroll_offset.y)
        self._strips.clear()
        self._cursor = self.table.row
        self.rows_changed()
        self.scroll_to(y=max(0, self._cursor - line), animate=False)
        self.show_cursor()
        self.when_moved()

    def step(self, step: int) -> bool:
        """Go to the next (1) or previous (-1) column. Return False if there is none."""
        before = self.layout_now()
        if not self.table.step(step, self.room, self.app.size.width):
            return False
        if self.layout_now() == before:
            self.refresh_lines(self._cursor)
        else:
            self.refresh()
        self.when_column_moved()
        return True

    def row_count(self) -> int:
        """Return the number of cases."""
        return len(self.table.rows)

    def render_line(self, y: int) -> Strip:
        """Draw a row, or return it from the cache."""
        top, width = self.scroll_offset.y, self.size.width
        position, count = y + top, self.row_count()
        if position >= count or position == self._cursor:
            return super().render_line(y)
        layout = self.layout_now(), width
        if layout != self._strips_layout:
            self._strips_layout = layout
            self._strips.clear()
        key = position, self.is_marked(position), y in thumb(count, self.size.height, top)
        if key not in self._strips:
            self._strips[key] = super().render_line(y)
        return self._strips[key]

    def notify_style_update(self) -> None:
        """Clear the cache after a change of the style."""
        self._strips.clear()
        super().notify_style_update()

    def forget_drawn(self) -> None:
        """Clear the cache after a change of cells."""
        self._strips.clear()

    def is_marked(self, position: int) -> bool:
        """Return whether the case is marked."""
        return self._marked(self.table.rows[position])

    def moved(self) -> None:
        """Move the cursor of the table to the same row."""
        self.table.row = self._cursor
        super().moved()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the visible cells of a row."""
        table = self.table
        pair = table.rows[position]
        pieces: list[Piece] = []
        for shown in self.layout_now().shown:
            column = table.columns[shown.number]
            here = position == self._cursor and shown.number == table.column
            if pieces:
                pieces.append((" ", ""))
            if column.kind == "case":
                pieces += self._case(position, shown.width, here)
                continue
            cell = table.source.cell(pair, column)
            filled = fit(cell.text, shown.width) if column.kind == "input" else _right(cell.text, shown.width)
            pieces.append((filled, "cell" if here else _look(cell)))
        return pieces, []

    def _case(self, position: int, width: int, here: bool) -> list[Piece]:
        rows, cases = self.table.rows, self.table.source.cases
        glyph, state = cases.face(rows[position])
        frozen = cases.verdicts.is_frozen(*rows[position])
        near = rows[max(position - NEIGHBOURS, 0) : position + NEIGHBOURS]
        room = max(width - (4 if frozen else 2), 0)
        name = cut_sibling(cases.name(rows[position]), room, map(cases.name, near))
        mark: list[Piece] = [(f"{FROZEN.glyph} ", "accent")] if frozen else []
        return [(f"{glyph} ", style_of(state)), *mark, (fit(name, room), "cell" if here else "")]


def _look(cell: Cell) -> str:
    if cell.status is None:
        return "muted"
    return style_of(cell.status) if cell.status != "passed" else ""


def _right(text: str, width: int) -> str:
    short = cut(text, width)
    return " " * (width - cell_len(short)) + short


class Titles(Widget):
    """The line with the titles of the visible columns. `‹` and `›` show that there are more columns."""

    def __init__(self, rows: TableRows) -> None:
        super().__init__()
        self._rows = rows

    def render(self) -> Content:
        """Return the titles over their columns."""
        table, layout = self._rows.table, self._rows.layout_now()
        parts: list[tuple[str, str]] = [(" ", "")]
        for place, shown in enumerate(layout.shown):
            column = table.columns[shown.number]
            if place:
                parts.append(("‹" if layout.more_left and shown.number == layout.first else " ", "$accent"))
            arrow = ("▴" if table.order.is_reversed else "▾") if table.order.is_by(column) else ""
            title = f"{column.title}{column.marks}"
            if column.kind == "case":
                # The column is sorted by the signs of verdicts, not by the names.
                text = fit(f"{arrow or ' '} {title}", shown.width)
            else:
                title += arrow
                text = fit(title, shown.width) if column.kind == "input" else ""
            style = "$accent bold underline" if shown.number == table.column else "$label"
            words = (text or _right(title, shown.width)).partition(title)
            parts += [(words[0], ""), (words[1], style), (words[2], "")]
        parts.append((" ›" if layout.more_right else "", "$accent"))
        return Content.assemble(*(part for part in parts if part[0]))


class Foot(Widget):
    """The explanation of the cell under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._text = self._case = ""

    def show(self, text: str, case: str) -> None:
        """Replace the text, which must be safe. `case` is the name in it whose middle may be cut."""
        if text != self._text:
            self._text, self._case = text, case
            self.refresh()

    def render(self) -> Content:
        """Return the text, cut to the lines of the widget."""
        width, height = self.size
        lines = wrap(Text(self._text), width)
        if len(lines) > height:
            lines = wrap(Text(self._text.replace(self._case, cut_name(self._case, width // 2), 1)), width)
        texts = [line.plain for line in lines]
        return Content("\n".join([*texts[: height - 1], cut(" ".join(texts[height - 1 : height + 1]), width)]).rstrip())
