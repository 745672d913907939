"""The executions of a fault matrix, and the list that shows them as a table with a cursor on one cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content
from textual.events import Resize
from textual.widget import Widget

from workbench.events.events import FaultWay, Noticed, RunStarted
from workbench.results.cells import cut_name, fit
from workbench.results.faults import Cell, GridRow, columns_for, grid_rows, is_problem, status_of, text_of
from workbench.run.fault_outcome import WAYS
from workbench.store.execution import Execution
from workbench.store.history.summary import Summary
from workbench.store.store import RunSummary, Store
from workbench.ui.running.run_thread import Refused, SideRun
from workbench.ui.session.run_labels import ended_in
from workbench.ui.tree.labels import style_of
from workbench.ui.widgets.rows import Piece, RowsOf

if TYPE_CHECKING:
    from workbench.store.history.run_writer import RunWriter


@dataclass(slots=True)
class Matrix:
    """The executions of a fault matrix: each kind of fault in each tool.

    `link` is their run, or None if they are stored or not started. `writers` are the writers of this session's runs, by
    run ID.
    """

    store: Store = field(default_factory=Store)
    link: SideRun | None = None
    writers: "dict[str, RunWriter]" = field(default_factory=dict)
    refused: Refused | None = None
    warning: Noticed | None = None
    """The first warning of the run."""

    @property
    def records(self) -> list[Execution]:
        """The executions, in the order of the plan."""
        return list(self.store.current_records())

    @property
    def going(self) -> bool:
        """Whether executions may still run."""
        return self.link is not None and not self.link.over

    def take(self) -> None:
        """Apply new events of the run."""
        for event in self.link.take() if self.link is not None else ():
            if isinstance(event, Refused):
                self.refused = event
                continue
            self.store.apply(event)
            if isinstance(event, RunStarted) and event.run_id in self.writers:
                # Details of executions that have ended can then leave memory.
                self.store.writers[event.run_id] = self.writers[event.run_id]
            elif isinstance(event, Noticed) and event.level != "info" and self.warning is None:
                self.warning = event


def stored_matrix(summary: Summary) -> Matrix:
    """Return the matrix of a stored run."""
    store = Store()
    every = summary.executions.items()
    records = {ref: ended_in(summary, one) for ref, one in every if one.planned.fault is not None}
    run = RunSummary(summary.run_id, summary.root, summary.started, interrupted=summary.interrupted, has_faults=True)
    store.restore(run, list(records), records)
    return Matrix(store)


_EDGES = 3
"""Cells of a row that are not content: its edge, a gap, and the scroll bar."""
_WAYS: tuple[FaultWay, ...] = tuple(WAYS)


class GridLine(NamedTuple):
    """A line of the table. A row needs two lines if its name is above its cells."""

    row: GridRow
    has_cells: bool


class FaultGrid(RowsOf[GridLine]):
    """The rows of the table, with the cursor on one cell."""

    def __init__(self) -> None:
        super().__init__()
        self.by_case = False
        """Whether each case has its own row. Otherwise, all cases of a tool share one row."""
        self.when_laid_out: Callable[[], object] = lambda: None
        """Called after the columns, or the column of the cursor, have changed."""
        self.columns = columns_for((), 1)
        self._grid: Sequence[GridRow] = ()
        self._names: Sequence[str] = ()
        """The names of all rows. A name that is cut stays different from the others."""
        self._column = 0

    def show_records(self, records: Sequence[Execution]) -> None:
        """Show these executions. The cursor stays on its cell."""
        before = self.row_or_none.row if self.row_or_none is not None else None
        self._grid = grid_rows(records, by_case=self.by_case)
        self._names = [row.name for row in self._grid]
        self._lay_out()
        if before is not None and self.row_or_none is not None:
            here = (line for line, one in enumerate(self.rows) if one.has_cells and _same(one.row, before))
            self._cursor = next(here, self._cursor)
        self.move_to(self._cursor)
        self.when_moved()

    @property
    def way(self) -> FaultWay:
        """The kind of fault in the column of the cursor."""
        return _WAYS[self._column]

    @property
    def cell(self) -> Cell:
        """The executions of the cell under the cursor, worst first, or () if it has none."""
        return self.cell_at(self.cursor, self._column) if self.row_or_none is not None else ()

    def cell_at(self, position: int, column: int) -> Cell:
        """Return the executions of a cell, worst first, or () if it has none."""
        return self.rows[position].row.cells.get(_WAYS[column], ())

    def step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) column, if there is one."""
        if 0 <= self._column + step < len(_WAYS):
            self._go(self.cursor, self._column + step)

    def next_problem(self, step: int) -> bool:
        """Go to the next (1) or previous (-1) cell whose fault was not handled. Return False if there is none."""
        cells = [
            (line, column) for line in range(len(self.rows)) if self.can_stop(line) for column in range(len(_WAYS))
        ]
        if (self.cursor, self._column) not in cells:
            return False
        start = cells.index((self.cursor, self._column))
        ahead = (cells[(start + step * distance) % len(cells)] for distance in range(1, len(cells) + 1))
        found = next((place for place in ahead if is_problem(self.cell_at(*place))), None)
        if found is not None:
            self._go(*found)
        return found is not None

    def go_to(self, record: Execution) -> None:
        """Move the cursor to the cell of an execution, if there is one."""
        for position in range(len(self.rows)):
            for column in range(len(_WAYS)):
                if self.can_stop(position) and any(one.ref == record.ref for one in self.cell_at(position, column)):
                    self._go(position, column)
                    return

    def _go(self, position: int, column: int) -> None:
        self._column = column
        self.move_to(position)
        self.refresh_lines(self.cursor)
        self.when_laid_out()
        self.when_moved()

    def _lay_out(self) -> None:
        self.columns = columns_for(self._grid, max(self.size.width - _EDGES, 1))
        lines: list[GridLine] = []
        for row in self._grid:
            if self.columns.above and not row.is_heading:
                lines += [GridLine(row, False), GridLine(row, True)]
            else:
                lines.append(GridLine(row, not row.is_heading))
        self.rows = lines
        self.rows_changed()
        self.when_laid_out()

    def can_stop(self, position: int) -> bool:
        """Return whether the row has cells."""
        return self.rows[position].has_cells

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the name and the cells of a row."""
        line = self.rows[position]
        row, columns = line.row, self.columns
        if row.is_heading:
            style = "label" if row.tool else "strong"
            return [(f"{' ' if row.tool else ''}{row.name}", style)], []
        indent = " " * (3 if self.by_case else 2)
        if not line.has_cells:
            return [(f"{indent}{row.name}", "")], []
        name = "" if columns.above else indent + cut_name(row.name, columns.name - len(indent) - 1, self._names)
        pieces: list[Piece] = [(fit(name, columns.name), "")]
        for column, width_of_column in enumerate(columns.ways):
            cell, room = self.cell_at(position, column), width_of_column - 1
            here = position == self.cursor and column == self._column
            pieces.append(
                (fit(text_of(cell, short=columns.short), room), "cell" if here else style_of(status_of(cell)))
            )
            pieces.append((" ", ""))
        return pieces[:-1], []

    def on_resize(self, event: Resize) -> None:
        """Choose the columns for the new width."""
        line = self.row_or_none
        self._lay_out()
        if line is not None:
            self._cursor = next((n for n, one in enumerate(self.rows) if one.has_cells and one.row is line.row), 0)
        self.move_to(self._cursor)
        super().on_resize(event)


def _same(row: GridRow, other: GridRow) -> bool:
    return (row.agent, row.tool, row.name) == (other.agent, other.tool, other.name)


class Titles(Widget):
    """The column titles, one for each kind of fault."""

    def __init__(self, grid: FaultGrid) -> None:
        super().__init__()
        self._grid = grid

    def render(self) -> Content:
        """Return the titles. The title of the cursor's column is underlined."""
        columns = self._grid.columns
        parts = [(" " * (columns.name + 1), "")]
        for way, title in zip(_WAYS, columns.titles(), strict=True):
            text = title.rstrip(" ")
            parts += [(text, "$accent bold underline" if way == self._grid.way else "$label")]
            parts += [(" " * (len(title) - len(text)), "")]
        return Content.assemble(*(part for part in parts if part[0]))
