"""The rows of the criteria editor, one line each, without folded ones."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from workbench.editing.criteria_form import FormRow
from workbench.files.faults import Location
from workbench.results.cells import cell_len, cut, fit
from workbench.text.counting import threshold
from workbench.text.safe_text import one_line
from workbench.ui.editing.values import in_short
from workbench.ui.widgets.rows import Piece, RowsOf

_Group: TypeAlias = tuple[int, Location]
"""A foldable group: the number of a config, and a location in it."""
_NAME_WIDTH = 26
_LEAST_VALUE = 14
"""Cells that a long name leaves to its value."""


class FormList(RowsOf[FormRow]):
    """Rows with a cursor. Criteria can be folded, and rubrics are folded at first.

    Three dicts have the number of a config as their key. `marks` maps locations with a fault to their style,
    `changed` holds the criteria and keys that differ from the file, and `off` the criteria that are turned off.
    `typed` is the number being typed at the cursor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.all_rows: Sequence[FormRow] = ()
        self.marks: dict[int, Mapping[Location, str]] = {}
        self.changed: dict[int, Collection[str]] = {}
        self.off: dict[int, Collection[str]] = {}
        self.typed = ""
        self._collapsed: set[_Group] = set()
        self._unfolded: set[_Group] = set()

    def fold_all(self, rows: Sequence[FormRow]) -> None:
        """Fold all criteria."""
        self._collapsed = {_group(row) for row in rows}

    def show_rows(self, rows: Sequence[FormRow], *, at: Location | None = None) -> None:
        """Replace the rows.

        The cursor goes to the first row of its config at or inside the location `at`, else it stays.
        """
        row = self.row_or_none
        file = row.file if row else 0
        before = at if at is not None else row.location if row else None
        self.all_rows = rows
        self.rows = [row for row in rows if not self._folded(row)]
        self.rows_changed()
        found = (n for n, row in enumerate(self.rows) if row.file == file and _is_at(row, before))
        place = next(found, None)
        self.move_to(self.cursor if place is None else place)
        self.show_cursor()
        self.when_moved()

    def go_to(self, row: FormRow) -> None:
        """Put the cursor on a row, or on the criterion that hides it."""
        shown = [n for n, one in enumerate(self.rows) if one.file == row.file and one.criterion == row.criterion]
        place = next((n for n in shown if self.rows[n].location == row.location), next(iter(shown), None))
        if place is not None:
            self.move_to(place)

    @property
    def choice(self) -> FormRow | None:
        """The first row with choices in the criterion under the cursor."""
        row = self.row_or_none
        inside = (one for one in self.all_rows if row is not None and _group(one) == _group(row))
        return next((one for one in inside if one.kind == "choice"), None)

    def unfold(self) -> None:
        """Expand the row under the cursor. If it is expanded, step in."""
        row = self.row_or_none
        if row is None:
            return
        if _group(row) in self._collapsed and row.depth == 0:
            self._collapsed.discard(_group(row))
        elif row.depth == 2 and _unit(row) not in self._unfolded:
            self._unfolded.add(_unit(row))
        else:
            self.move("down")
            return
        self.show_rows(self.all_rows)

    def fold(self) -> bool:
        """Fold the group around the cursor and go to its head. Return False if there is nothing to fold."""
        row = self.row_or_none
        if row is None:
            return False
        if row.depth >= 2 and _unit(row) in self._unfolded:
            self._unfolded.discard(_unit(row))
            self.show_rows(self.all_rows, at=row.unit)
            return True
        inside = any(_group(one) == _group(row) and one.depth for one in self.all_rows)
        if _group(row) in self._collapsed or not inside:
            return False
        self._collapsed.add(_group(row))
        head = next(one for one in self.all_rows if _group(one) == _group(row))
        self.show_rows(self.all_rows, at=head.location)
        return True

    def _folded(self, row: FormRow) -> bool:
        return (row.depth > 0 and _group(row) in self._collapsed) or (
            row.depth == 3 and _unit(row) not in self._unfolded
        )

    # Rows

    def can_stop(self, position: int) -> bool:
        """Return whether the cursor can stop on a row. It skips the names of files."""
        return self.rows[position].kind != "file"

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return name and value of a row."""
        row = self.rows[position]
        marks = self.marks.get(row.file, {})
        mark: Piece = ("! ", marks[row.location]) if row.location in marks else ("  ", "")
        if row.kind == "file":
            return [(one_line(row.field.name), "label")], []
        if row.depth == 0:
            return self._head(row, mark, self.typed if position == self.cursor else "")
        room = 45 if width > 100 else _NAME_WIDTH
        if row.kind == "rubrics":
            count = "none: + adds one; cases may have their own" if not row.value else f"{row.value}"
            return [mark, (fit("  rubrics", room), "label"), (count, "muted")], []
        indent = "  " * row.depth
        name = indent + one_line(row.field.name, limit=60)
        if row.depth == 2:
            number = row.unit[-1]
            sign = "▾" if _unit(row) in self._unfolded else "▸"
            name = f"{indent[2:]}{sign} {number + 1 if isinstance(number, int) else ''}"
            return [mark, (fit(name, 8), "label"), (in_short(row.value), "")], []
        room = max(room, min(cell_len(name) + 1, width - _LEAST_VALUE))
        name = fit(cut(name, room - 1), room)
        if self.typed and position == self.cursor:
            return [mark, (name, "label"), (f"{self.typed}▏", "accent")], []
        if not row.given:
            return [mark, (name, "label"), (one_line(row.field.default) or "—", "muted")], []
        return [mark, (name, "label"), (in_short(row.value), "muted" if row.kind == "kept" else "")], []

    def _head(self, row: FormRow, mark: Piece, typed: str) -> tuple[Sequence[Piece], Sequence[Piece]]:
        name = str(row.location[1]) if row.criterion and len(row.location) > 1 else row.field.name
        off = row.criterion in self.off.get(row.file, ())
        left: list[Piece] = [mark]
        if row.kind == "threshold":
            left.append(("[ ] ", "muted") if off else ("[x] ", "passed"))
        left.append((one_line(name, limit=80), "muted" if off else "strong" if row.kind != "kept" else "label"))
        if (row.criterion or str(row.unit[0] if row.unit else "")) in self.changed.get(row.file, ()):
            left.append((" changed", "accent"))
        if _group(row) in self._collapsed:
            left.append((self._in_short(row), "muted"))
        if typed:
            return left, [(f"≥ {typed}▏", "accent")]
        if row.kind == "threshold":
            return left, [("" if off else threshold_words(row.value), "accent")]
        if row.kind == "kept":
            return [*left, (f"  {in_short(row.value)}", "muted")], []
        return left, [("" if row.given else "default", "muted")]

    def _in_short(self, head: FormRow) -> str:
        """Return the choices and the judge of a folded criterion."""
        inside = [row for row in self.all_rows if _group(row) == _group(head) and row.depth]
        values = [
            in_short(row.value) for row in inside if row.depth == 1 and row.given and row.kind in ("choice", "word")
        ]
        return f"  {' · '.join(values)}" if values else " ▸" if inside else ""


def threshold_words(value: Any) -> str:
    """Return `≥ 0.80`, or the value as it is if it is not a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"≥ {threshold(value)}"
    return "no threshold" if value is None else f"≥ {in_short(value)}"[:30]


def _group(row: FormRow) -> _Group:
    """Return the criterion or the top-level key that a row belongs to."""
    return row.file, ("criteria", row.criterion) if row.criterion else row.location[:1]


def _unit(row: FormRow) -> _Group:
    return row.file, row.unit


def _is_at(row: FormRow, location: Location | None) -> bool:
    return bool(location) and location is not None and row.location[: len(location)] == location
