"""The table without its widgets: rows, columns, cursor, sort order and filter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from workbench.results.case_table import CASE, Column, Layout, in_order, lay_out, reachable
from workbench.ui.table.sources import CriteriaCells, Name, RunCells
from workbench.ui.tree.model import Marks, Tree
from workbench.ui.tree.outline import ALL, Pair
from workbench.ui.tree.query import arrange, parse_query
from workbench.ui.tree.scope import Scope, name_of, scope_at, scope_of

_ORDERS_KEPT = 4


Source: TypeAlias = CriteriaCells | RunCells
"""The columns and cells of a table."""


def table_scope(tree: Tree, selected: Scope | None = None) -> Scope:
    """Return the cases of a table: marked cases, else cases `selected` in the overview, else the row's cases.

    If the cursor is on a case, the table has all cases of its evalset. The table starts with the filter of the tree.
    """
    row = tree.cursor or ALL
    if len(tree.marks):
        return scope_at(tree, ALL)
    if selected is not None:
        return selected
    return scope_at(tree, row if row.case < 0 else tree.row_of(row.evalset), filtered=False)


_ORDER_WORDS = {
    "input": ("input A to Z", "input Z to A"),
    "time": ("slowest first", "fastest first"),
    "cost": ("most expensive first", "cheapest first"),
    "tokens": ("most tokens first", "fewest tokens first"),
    "case": ("worst verdict first", "best verdict first"),
}
"""Texts for the sort order and for the reversed one, by kind of column."""


@dataclass(frozen=True, slots=True)
class Order:
    """A sort order by one column: the worst value is at the top, or if `is_reversed` the best one."""

    column: Column
    is_reversed: bool = False

    def is_by(self, column: Column) -> bool:
        """Return whether the rows are sorted by this column."""
        return (self.column.kind, self.column.name) == (column.kind, column.name)

    def __str__(self) -> str:
        title = self.column.title
        both = _ORDER_WORDS.get(self.column.kind, (f"worst {title} first", f"best {title} first"))
        return both[self.is_reversed]


class Table:
    """The cases of a scope as rows, and the columns of a source.

    The cursor is on a case and a column, and stays on them when rows or columns change.
    """

    def __init__(self, scope: Scope, source: Source, tree: Tree) -> None:
        self.scope, self.query, self._verdicts = scope, parse_query(scope.query), tree.verdicts
        self.pairs = list(scope)
        """All cases, before the filter."""
        self.where = name_of(scope, tree)
        """The name of the scope, as safe text."""
        row = scope.row
        self._name = tree.names().name_of(row if row.evalset < 0 else tree.row_of(row.evalset))
        self.source = source
        self.rows: list[Pair] = []
        self.row = 0
        """Index of the row under the cursor."""
        self.column = 0
        """Index of the column under the cursor."""
        self._orders: list[Order] = [Order(CASE)]
        """The sort orders, newest last. Earlier ones sort rows that are equal in the newest one."""
        self.name_width = 0
        """Width of the longest name in cells."""
        self._first = 0
        self._layout: tuple[tuple[object, ...], Layout] | None = None
        self._places: dict[Pair, int] = {}

    def scope_in(self, tree: Tree) -> Scope:
        """Return the same scope after the folder was read again, without deleted cases.

        The current cursor and marks of the tree do not matter.
        """
        before = self.scope
        if before.marked or before.name:
            return scope_of(self._verdicts.places(self.names_of(self.pairs)), before.name, marked=before.marked)
        return scope_at(tree, tree.names().row(self._name, tree.outline), filtered=False)

    def load(self, entries: Sequence[object], marks: Marks) -> None:
        """Update the columns, and filter and sort the cases by the current verdicts.

        The cursor stays on its case, if that is still in the table.
        """
        pairs = self.pairs
        orders = arrange(entries, self._verdicts, self.query, "file", marks)  # type: ignore[arg-type]
        if orders is not None:
            matching = {evalset: frozenset(cases) for evalset, cases in orders.items()}
            pairs = [pair for pair in pairs if pair[1] in matching[pair[0]]]
        self.source.update(self.pairs)
        self.name_width = self.source.cases.width(pairs)
        self._sort(pairs, self._orders)

    def position(self, pair: Pair) -> int | None:
        """Return the index of a case's row, or None if the table does not have it."""
        return self._places.get(pair)

    @property
    def pair(self) -> Pair | None:
        """The case under the cursor, or None in an empty table."""
        return self.rows[self.row] if self.row < len(self.rows) else None

    @property
    def name(self) -> Name | None:
        """The name of the case under the cursor, or None in an empty table."""
        return None if self.pair is None else self.source.cases.key(self.pair)

    def names_of(self, pairs: Iterable[Pair]) -> set[Name]:
        """Return the names of some cases."""
        return set(map(self.source.cases.key, pairs))

    def adopt(self, other: "Table") -> None:
        """Copy the filter, the sort orders, the current column and the read inputs of another table."""
        self.source.cases.keep_inputs(other.source.cases)
        self.query, self._orders, self.column = other.query, other._orders, other.column

    def stand_on(self, pair: Pair) -> bool:
        """Put the cursor on a case. Return False if the table does not have it."""
        place = self._places.get(pair)
        self.row = self.row if place is None else place
        return place is not None

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, visible or not."""
        return self.source.columns

    @property
    def current(self) -> Column:
        """The column under the cursor."""
        return self.columns[min(self.column, len(self.columns) - 1)]

    def step(self, step: int, room: int, terminal: int) -> bool:
        """Go to the next (1) or previous (-1) column that fits on the screen. Return False if there is none."""
        numbers = reachable(self.columns, room, terminal)
        place = numbers.index(self.column) if self.column in numbers else 0
        if not 0 <= place + step < len(numbers):
            return False
        self.column = numbers[place + step]
        return True

    def layout(self, room: int, terminal: int) -> Layout:
        """Return the visible columns, which include the current one. If it does not fit, go to the first column."""
        wanted = self.columns, self.column, self.name_width, room, terminal
        if self._layout is None or self._layout[0] != wanted:
            if self.column not in reachable(self.columns, room, terminal):
                self.column = 0
            found = lay_out(self.columns, room, terminal, self.name_width, self._first, self.column)
            self._first = found.first
            self._layout = (self.columns, self.column, self.name_width, room, terminal), found
        return self._layout[1]

    def replace_source(self, source: Source) -> None:
        """Replace the columns, and sort the rows by verdict."""
        self.source, self._first, self._orders = source, 0, [Order(CASE)]
        source.update(self.pairs)
        self._sort(sorted(self.rows), self._orders)

    @property
    def order(self) -> Order:
        """The current sort order."""
        return self._orders[-1]

    def unread(self) -> list[Pair]:
        """Return the cases whose inputs must be read before sorting by the current column."""
        return self.source.cases.unread(self.rows) if self.current.kind == "input" else []

    def sort_by_cursor(self) -> None:
        """Sort by the current column, worst value first. If the rows are sorted by it already, reverse the order."""
        before, column = self.order, self.current
        order = Order(column, is_reversed=before.is_by(column) and not before.is_reversed)
        self._orders = [*(one for one in self._orders if not one.is_by(column)), order][-_ORDERS_KEPT:]
        self._sort(self.rows, [order])

    def _sort(self, pairs: Iterable[Pair], orders: Iterable[Order]) -> None:
        """Sort the rows by each order in turn. The last one decides, and earlier ones sort equal rows."""
        found = list(pairs)
        for order in orders:
            column = next((one for one in self.columns if order.is_by(one)), None)
            if column is not None:
                # The largest value is at the top for a column that is `largest_first`, or for one that is reversed.
                descending = column.largest_first != order.is_reversed
                found = in_order(found, partial(self.source.cell, column=column), descending=descending)
        self._place(found)

    def problem(self, step: int) -> int | None:
        """Return the index of the next (1) or previous (-1) failure or error, wrapping around, or None without one."""
        count = len(self.rows)
        ahead = ((self.row + step * distance) % count for distance in range(1, count + 1))
        states = ((place, self._verdicts.state(*self.rows[place])) for place in ahead)
        return next((place for place, state in states if state in ("failed", "error")), None)

    def _place(self, pairs: list[Pair]) -> None:
        before = self.pair
        self.rows, self._places = pairs, {pair: place for place, pair in enumerate(pairs)}
        found = None if before is None else self._places.get(before)
        self.row = found if found is not None else min(self.row, max(len(pairs) - 1, 0))
