"""The rows of a criteria config, one line each; what is folded is left out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.authoring.criteria_form import FormRow
from workbench.counting import threshold
from workbench.model.places import Location
from workbench.rendering.cells import cell_len, fit
from workbench.text import one_line
from workbench.ui.widgets.rows import Piece, RowView

_NAME_WIDTH = 26
_FEW = 60
"""Cells below which names get less room."""


class FormList(RowView):
    """Shows rows with a cursor. Rubrics are one line until they are opened; criteria can be closed. `marks` are the
    looks of rows with a fault, by location; `changed` the criteria and keys that differ from the file."""

    def __init__(self) -> None:
        super().__init__()
        self.all_rows: Sequence[FormRow] = ()
        self.rows: list[FormRow] = []
        self.marks: Mapping[Location, str] = {}
        self.changed: frozenset[str] = frozenset()
        self._shut: set[Location] = set()
        self._unfolded: set[Location] = set()

    def show_rows(self, rows: Sequence[FormRow], *, at: Location | None = None) -> None:
        """Replaces the rows; the cursor goes to the first row at or inside a location, else stays where it was."""
        before = at if at is not None else self.row.location if self.row else None
        self.all_rows = rows
        self.rows = [row for row in rows if not self._folded(row)]
        self.rows_changed()
        place = next((n for n, row in enumerate(self.rows) if before and row.location[: len(before)] == before), None)
        self.move_to(self.cursor if place is None else place)
        self.show_cursor()
        self.when_moved()

    @property
    def row(self) -> FormRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows and self.cursor < len(self.rows) else None

    def unfold(self) -> None:
        """Opens what is under the cursor; if it is open, goes one in."""
        row = self.row
        if row is None:
            return
        if _group(row) in self._shut and row.depth == 0:
            self._shut.discard(_group(row))
        elif row.depth == 2 and row.unit not in self._unfolded:
            self._unfolded.add(row.unit)
        else:
            self.move("down")
            return
        self.show_rows(self.all_rows)

    def fold(self) -> bool:
        """Closes what the cursor is in and goes there; False if there was nothing to close."""
        row = self.row
        if row is None:
            return False
        if row.depth >= 2 and row.unit in self._unfolded:
            self._unfolded.discard(row.unit)
            self.show_rows(self.all_rows, at=row.unit)
            return True
        if _group(row) in self._shut or not any(_group(one) == _group(row) and one.depth for one in self.all_rows):
            return False
        self._shut.add(_group(row))
        head = next(one for one in self.all_rows if _group(one) == _group(row))
        self.show_rows(self.all_rows, at=head.location)
        return True

    def _folded(self, row: FormRow) -> bool:
        return (row.depth > 0 and _group(row) in self._shut) or (row.depth == 3 and row.unit not in self._unfolded)

    # What a list gives

    def row_count(self) -> int:
        return len(self.rows)

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        row = self.rows[position]
        mark: Piece = ("! ", self.marks[row.location]) if row.location in self.marks else ("  ", "")
        if row.depth == 0:
            return self._head(row, mark)
        room = 45 if width > 100 else _NAME_WIDTH if width > _FEW else 18
        if row.kind == "rubrics":
            count = "none: a adds one, cases may bring their own" if not row.value else f"{row.value}"
            return [mark, (fit("  rubrics", room), "label"), (count, "muted")], []
        indent = "  " * row.depth
        name = indent + one_line(row.field.name, limit=60)
        if row.depth == 2:
            number = row.unit[-1]
            sign = "▾" if row.unit in self._unfolded else "▸"
            name = f"{indent[2:]}{sign} {number + 1 if isinstance(number, int) else ''}"
            return [mark, (fit(name, 8), "label"), (in_short(row.value), "")], []
        name = fit(name, max(room, cell_len(name) + 1) if width > 70 else room)
        if not row.given:
            return [mark, (name, "label"), (one_line(row.field.default) or "—", "muted")], []
        return [mark, (name, "label"), (in_short(row.value), "muted" if row.kind == "kept" else "")], []

    def _head(self, row: FormRow, mark: Piece) -> tuple[Sequence[Piece], Sequence[Piece]]:
        name = str(row.location[1]) if row.criterion and len(row.location) > 1 else row.field.name
        left: list[Piece] = [mark, (one_line(name, limit=80), "strong" if row.kind != "kept" else "label")]
        if (row.criterion or str(row.unit[0] if row.unit else "")) in self.changed:
            left.append((" changed", "accent"))
        if _group(row) in self._shut:
            left.append((" …", "muted"))
        if row.kind == "threshold":
            return left, [(threshold_words(row.value), "accent")]
        if row.kind == "kept":
            return [*left, (f"  {in_short(row.value)}", "muted")], []
        return left, [("" if row.given else "as it is by default", "muted")]


def threshold_words(value: Any) -> str:
    """Return `≥ 0.80`, or what is there if it is not a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"≥ {threshold(value)}"
    return f"≥ {in_short(value)}"[:30]


def in_short(value: object) -> str:
    """A value on one line, safe."""
    if isinstance(value, str):
        return one_line(value) if value.strip() else "(empty)"
    return one_line(json.dumps(value, ensure_ascii=False))


def _group(row: FormRow) -> Location:
    """The criterion that a row belongs to, or the key of the file."""
    return ("criteria", row.criterion) if row.criterion else row.location[:1]
