"""The widget for the tree agent → evalset → case."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.ui.tree.labels import Labels
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Row
from workbench.ui.tree.query import Query, Sort
from workbench.ui.tree.verdicts import Verdicts
from workbench.ui.widgets.rows import Piece, RowView

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace


_FLASH_SECONDS = 0.8
"""Number of seconds for which a changed verdict is highlighted."""


class CaseTree(RowView):
    """The widget that draws a `Tree`.

    A run only repaints labels. Rows change only by the user's keys, `load`, `arrange_again` and `repeats_changed`.
    `now` returns the seconds since the run began.
    """

    def __init__(self, verdicts: Verdicts, now: Callable[[], float]) -> None:
        super().__init__()
        self.model = Tree(verdicts)
        self.when_changed: list[Callable[[set[tuple[int, int]]], None]] = []
        """Called with the cases whose verdicts changed, after they are painted."""
        self.when_arranged: list[Callable[[], None]] = []
        """Called after each `arrange_again`, even if no row has changed."""
        self._now = now
        self._labels = Labels(self.model, now)
        self._flashing: set[tuple[int, int]] = set()
        """Cases that are highlighted because their verdict has just changed."""

    def load(self, workspace: "Workspace") -> None:
        """Load a workspace, read for the first time or again."""
        self.model.load(workspace)
        self._labels = Labels(self.model, self._now)
        self._lay_out()

    def set_query(self, query: Query, *, typing: bool = False) -> None:
        """Filter the cases. If the user is `typing`, scroll to the top and put the cursor on the first match."""
        self.model.set_query(query, typing=typing)
        self._lay_out(from_top=typing)

    def next_sort(self) -> Sort:
        """Switch to the next order of file, status, score, change and time, and return it."""
        sort = self.model.next_sort()
        self._lay_out()
        return sort

    def arrange_again(self) -> None:
        """Filter, sort and fold the cases by the current verdicts, and call `when_arranged`.

        The cursor stays on its case and screen line.
        """
        if self.model.arrange_again():
            self._lay_out()
        for notify in self.when_arranged:
            notify()

    def repeats_changed(self) -> None:
        """Update the rows after the number of repeats changed. The cursor stays on its row, if that still exists."""
        if self.model.repeats_changed():
            self._lay_out()

    def go_to(self, row: Row) -> None:
        """Put the cursor on a row and expand its parents."""
        before = self.cursor
        if self.model.show(row):
            self.rows_changed()
        position = self.model.position
        self._cursor = before
        self.move_to(position)

    def open_row(self) -> None:
        """Expand the row, or if it is expanded, go to its first child."""
        row = self.model.cursor
        if row is not None and self.model.outline.has_children(row):
            if self.model.outline.is_open(row):
                self.move("down")
            else:
                self.toggle_row()

    def close_row(self) -> None:
        """Collapse the row, or if it is not expanded, go to its parent."""
        row = self.model.cursor
        if row is None:
            return
        if self.model.outline.has_children(row) and self.model.outline.is_open(row):
            self.toggle_row()
        elif (parent := self.model.outline.parent(row)) is not None:
            self.go_to(parent)

    def toggle_row(self) -> bool:
        """Expand or collapse the row. Return False if it has no children or is the first row."""
        toggled = self.model.toggle()
        if toggled:
            self._lay_out()
        return toggled

    def next_problem(self, step: int) -> bool | None:
        """Go to the next (1) or previous (-1) problem. Return whether it wrapped around, or None without problems."""
        found = self.model.problem(step)
        if found is None:
            return None
        self.go_to(found[0])
        return found[1]

    def show_verdicts(self) -> int:
        """Paint the cases whose verdicts changed and the headings above them, and call `when_changed`.

        Return the number of lines painted.
        """
        verdicts = self.model.verdicts
        changed, verdicts.changed = verdicts.changed, set()
        flipped, verdicts.just_flipped = verdicts.just_flipped, set()
        if flipped and self.is_attached:
            self._flashing |= flipped
            self.set_timer(_FLASH_SECONDS, lambda: self._end_flash(flipped))
        lines = self.refresh_rows(self.model.touched(changed | flipped, self._visible()))
        for notify in self.when_changed:
            notify(changed)
        return lines

    def _end_flash(self, flipped: set[tuple[int, int]]) -> None:
        self._flashing -= flipped
        self.refresh_rows(self.model.touched(flipped, self._visible()))

    def tick(self) -> int:
        """Repaint the rows that show a running time. Return their number."""
        rows = ((position, self.model.outline.row(position)) for position in self._visible())
        state = self.model.verdicts.state
        return self.refresh_rows(
            [number for number, row in rows if row.case >= 0 and state(row.evalset, row.case) == "running"]
        )

    def row_count(self) -> int:
        """Return the number of visible rows."""
        return len(self.model.outline)

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the two sides of a row."""
        return self._labels.pieces(self.model.outline.row(position), width)

    def is_marked(self, position: int) -> bool:
        """Return whether the row is marked."""
        return self.model.is_marked(position)

    def is_flashing(self, position: int) -> bool:
        """Return whether the row is highlighted because its verdict has just changed."""
        if not self._flashing:
            return False
        row = self.model.outline.row(position)
        return row.kind == "case" and (row.evalset, row.case) in self._flashing

    def moved(self) -> None:
        """Move the cursor of the model, and repaint a range that has changed."""
        self.model.stand_on(self._cursor)
        if self.model.anchor is not None:
            self.refresh()
        super().moved()

    def _visible(self) -> range:
        top = self.scroll_offset.y
        return range(top, min(top + self.size.height, len(self.model.outline)))

    def _lay_out(self, *, from_top: bool = False) -> None:
        """Show the model's rows again. The cursor stays on its screen line, unless the rows are shown `from_top`."""
        line = max(0, self._cursor - self.scroll_offset.y)
        self._cursor = self.model.position
        self.rows_changed()
        if self.size.height:
            self.scroll_to(y=0 if from_top else max(0, self._cursor - line), animate=False)
            self.show_cursor()
        self.when_moved()
