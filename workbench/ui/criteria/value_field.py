"""Values of a config, typed in the field or directly on a number's row."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from textual.events import Key

from workbench.editing.case_rows import CaseRow
from workbench.editing.case_rows import Form as TextForm
from workbench.editing.criteria_change import ValueRefusedError, read_typed
from workbench.editing.criteria_form import FormRow
from workbench.judges.base import DEFAULT_MODEL, NotAvailableError
from workbench.judges.kinds import kind_of
from workbench.text.counting import exact
from workbench.text.safe_text import one_line
from workbench.ui.criteria.form_list import FormList
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.field import ValueField

IN_NUMBERS = frozenset("0123456789.,")
"""Characters that start typing on a number's row. A comma is allowed while typing and then rejected with a reason."""
_LONGEST = 12


class NumberTyping:
    """A number typed directly on its row.

    `take` gets the row, the text, and whether typing has ended. It is called after each key and at the end, and
    returns False if the text is not a number.
    """

    def __init__(self, rows: FormList, take: Callable[[FormRow, str, bool], bool]) -> None:
        self._list, self._take = rows, take
        self._row: FormRow | None = None
        """The row of the number being typed."""

    @property
    def text(self) -> str:
        """The text typed so far."""
        return self._list.typed

    @property
    def takes_numbers(self) -> bool:
        """Whether the row under the cursor has a number."""
        row = self._list.row_or_none
        return row is not None and (row.kind == "threshold" or row.field.numeric)

    def key(self, event: Key) -> bool:
        """Handle a key that can belong to a number. Return False for other keys."""
        if event.key == "backspace" and self.text:
            self._show(self.text[:-1])
            return True
        character = event.character
        return bool(character and character in IN_NUMBERS and self.takes_numbers and self.add(character))

    def add(self, text: str) -> bool:
        """Append to the typed text. Return False if it would become too long."""
        if len(self.text + text) > _LONGEST:
            return False
        self._show(self.text + text)
        return True

    def end(self) -> bool:
        """Use the typed number, if there is one. If it is not a number, drop it and return False."""
        text, row = self.text, self._row
        self.drop()
        return not text or row is None or self._take(row, text, True)

    def drop(self) -> bool:
        """Drop the typed text. Return False if there was none."""
        typed = bool(self.text)
        self._list.typed, self._row = "", None
        self._list.refresh()
        return typed

    def _show(self, text: str) -> None:
        self._row = self._list.row_or_none
        self._list.typed = text
        self._list.refresh()
        if text and self._row is not None:
            self._take(self._row, text, False)


JUDGE_MODEL = "judge_model"

FORMS: Mapping[str, TextForm] = {
    "threshold": "word",
    "number": "word",
    "word": "word",
    "text": "text",
    "lines": "text",
    "json": "json",
}
"""Forms of the field, by kind of row. Rows of other kinds cannot be typed into."""


def judge_items(rows: Iterable[FormRow]) -> list[Item]:
    """Return the judges to pick from: those named in the editor, the default, and any other."""
    named = [row.value for row in rows if row.field.name == JUDGE_MODEL and isinstance(row.value, str)]
    models = dict.fromkeys([*named, DEFAULT_MODEL])
    items = [Item(one_line(model), model) for model in models]
    return [*items, Item("other judge", "", help="gemini-…, provider/model (LiteLLM), python:package.module:function")]


def take(field: ValueField, row: FormRow) -> None:
    """Load the value of a row into the field."""
    value = row.value
    if row.kind in ("threshold", "number") and value is not None:
        value = exact(value) if isinstance(value, float) else str(value)
    if (
        row.kind == "lines"
        and isinstance(value, list)
        and all(isinstance(one, str) and "\n" not in one for one in value)
    ):
        value = "\n".join(value)
    missing = not row.given or value is None
    form = FORMS[row.kind]
    if form != "json" and not missing and not isinstance(value, str):
        form = "json"
    field.take(CaseRow(row.location, "odd", row.field.name, value, form, row.unit, missing=missing))


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
