"""The rows of a case, one line each."""

from collections.abc import Sequence

from workbench.authoring.case_rows import CaseRow
from workbench.model.faults import Location
from workbench.rendering.cells import fit
from workbench.text import one_line
from workbench.ui.editing.values import json_head
from workbench.ui.widgets.rows import Piece, RowsOf

_NAME_WIDTH = 11
_MOST = 2_000
"""Characters of a value that are rendered for its row."""
_LOOKS = {"call": "accent", "user": "strong"}


class RowList(RowsOf[CaseRow]):
    """Rows with a cursor. It also stops on headings of turns, because turns are moved and deleted there."""

    def show_rows(self, rows: Sequence[CaseRow], *, at: Location | None = None) -> None:
        """Replace the rows. Move the cursor to the first row at or inside a location, if there is one."""
        self.rows = rows
        self.rows_changed()
        if at is not None:
            inside = (number for number, row in enumerate(rows) if row.location[: len(at)] == at)
            number = next(inside, None)
            if number is not None:
                self.move_to(number)
        self.move_to(self.cursor)
        self.show_cursor()
        self.when_moved()

    def next_turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) heading."""
        headings = [number for number, row in enumerate(self.rows) if row.form == "heading"]
        ahead = [number for number in headings if (number - self.cursor) * step > 0]
        if ahead:
            self.move_to(min(ahead) if step > 0 else max(ahead))

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return name, author and value of a row."""
        row = self.rows[position]
        if row.form == "heading":
            return [(row.name, "label"), (" " + "─" * max(width - len(row.name) - 2, 0), "muted")], []
        indent = "  " if row.turn is not None else ""
        name = fit(indent + row.name, _NAME_WIDTH + 2)
        author = f"{one_line(row.author, limit=40)}  " if row.author and width > 40 and row.kind != "call" else ""
        if row.missing or row.value is None:
            return [(name, "label"), ("—", "muted")], []
        return [(name, "label"), (author, "muted"), (in_short(row.value), _LOOKS.get(row.kind, ""))], []


def in_short(value: object) -> str:
    """Return a value as safe text on one line."""
    if isinstance(value, str):
        return one_line(value) if value[:_MOST].strip() else "(empty)"
    return one_line(json_head(value, _MOST))
