"""The rows of the criteria editor, and typing of values in the field."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from workbench.editing.case_rows import CaseRow
from workbench.editing.case_rows import Form as TextForm
from workbench.editing.criteria_change import ValueRefusedError, read_typed
from workbench.editing.criteria_form import FormRow
from workbench.files.faults import Location
from workbench.judges.base import DEFAULT_MODEL, NotAvailableError
from workbench.judges.kinds import kind_of
from workbench.results.cells import cell_len, cut, fit
from workbench.text.counting import exact, threshold
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.drafts import in_short
from workbench.ui.editing.field import ValueField
from workbench.ui.widgets.rows import Piece, RowsOf

_Group: TypeAlias = tuple[int, Location]
"""A group that can be folded, as (index of its config, location)."""
_NAME_WIDTH = 26
_LEAST_VALUE = 14
"""Minimum width of a value, in cells, beside a long name."""


class FormList(RowsOf[FormRow]):
    """Rows with a cursor. Criteria can be folded. Rubrics are folded at first.

    The keys of these dicts are indexes of configs. `marks` has the style of each location with a fault. `changed` has
    the criteria and keys that differ from the file. `off` has the criteria that are turned off.

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
        """Fold all criteria and other groups."""
        self._collapsed = {_group(row) for row in rows}

    def show_rows(self, rows: Sequence[FormRow], *, at: Location | None = None) -> None:
        """Replace the rows, and move the cursor to the first row at or inside the location `at`.

        Only rows of the cursor's config are considered. Without `at`, the cursor stays on its row.
        """
        row = self.row_or_none
        file = row.file if row else 0
        before = at if at is not None else row.location if row else None
        self.all_rows = rows
        self.rows = [row for row in rows if not self._folded(row)]
        self.rows_changed()
        inside = [n for n, row in enumerate(self.rows) if before and row.location[: len(before)] == before]
        found = (n for n in inside if self.rows[n].file == file)
        place = next(found, None)
        self.move_to(self.cursor if place is None else place)
        self.show_cursor()
        self.when_moved()

    def go_to(self, row: FormRow) -> None:
        """Put the cursor on a row, or on its criterion if the row is folded."""
        shown = [n for n, one in enumerate(self.rows) if one.file == row.file and one.criterion == row.criterion]
        place = next((n for n in shown if self.rows[n].location == row.location), next(iter(shown), None))
        if place is not None:
            self.move_to(place)

    def unfold(self) -> None:
        """Unfold the row under the cursor, or move down if it has nothing to unfold."""
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
        """Fold the group around the cursor and go to its first row. Return False if there is nothing to fold."""
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
        if row.depth > 0 and _group(row) in self._collapsed:
            return True
        return row.depth == 3 and _unit(row) not in self._unfolded

    def can_stop(self, position: int) -> bool:
        """Return whether the cursor can stop on a row. File names are skipped."""
        return self.rows[position].kind != "file"

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the name of a row with its value. The threshold of a criterion is on the right side."""
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
        """Return the choices and words that a folded group sets, or " ▸" if it sets none, or "" if it has no rows."""
        inside = [row for row in self.all_rows if _group(row) == _group(head) and row.depth]
        named = (row for row in inside if row.depth == 1 and row.given and row.kind in ("choice", "word"))
        values = [in_short(row.value) for row in named]
        return f"  {' · '.join(values)}" if values else " ▸" if inside else ""


def threshold_words(value: Any) -> str:
    """Return a threshold as text, such as `≥ 0.80`, or "no threshold" for None.

    For a value that is not a number, the text is cut to 30 characters.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"≥ {threshold(value)}"
    return "no threshold" if value is None else f"≥ {in_short(value)}"[:30]


def _group(row: FormRow) -> _Group:
    return row.file, ("criteria", row.criterion) if row.criterion else row.location[:1]


def _unit(row: FormRow) -> _Group:
    return row.file, row.unit


JUDGE_MODEL = "judge_model"

FORMS: Mapping[str, TextForm] = {
    "threshold": "word",
    "number": "word",
    "word": "word",
    "text": "text",
    "lines": "text",
    "json": "json",
}
"""Way to edit each kind of row in the field. Other kinds have no field."""


def judge_items(rows: Iterable[FormRow]) -> list[Item]:
    """Return the judges to pick from: those used in the editor, the default, and "other judge"."""
    named = [row.value for row in rows if row.field.name == JUDGE_MODEL and isinstance(row.value, str)]
    items = [Item(one_line(model), model) for model in dict.fromkeys([*named, DEFAULT_MODEL])]
    return [*items, Item("other judge", "", help="gemini-…, provider/model (LiteLLM), python:package.module:function")]


def take(field: ValueField, row: FormRow) -> None:
    """Load the value of a row into the field."""
    value = row.value
    if row.kind in ("threshold", "number") and value is not None:
        value = exact(value) if isinstance(value, float) else str(value)
    elif row.kind == "lines" and isinstance(value, list) and all(isinstance(one, str) for one in value):
        # A text with a line break can only be edited as JSON.
        value = value if any("\n" in one for one in value) else "\n".join(value)
    missing = not row.given or value is None
    form = FORMS[row.kind]
    if form != "json" and not missing and not isinstance(value, str):
        form = "json"
    field.load(CaseRow(row.location, "odd", row.field.name, value, form, row.unit, missing=missing))


def typed_value(field: ValueField, row: FormRow) -> Any:
    """Return the typed value.

    Raises:
        UnreadableError: The value is edited as JSON, and the text is not valid JSON.
        ValueRefusedError: The value is not allowed for this row.
    """
    as_json = row.kind == "json" or (field.row is not None and field.row.form == "json")
    value = field.value() if as_json else read_typed(row, field.text)
    if row.field.name == JUDGE_MODEL and isinstance(value, str):
        try:
            kind_of(value)
        except NotAvailableError as error:
            raise ValueRefusedError(str(error)) from None
    return value
