"""Values of a config: typed in a field, or as numbers without one, and read back."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from textual.events import Key

from workbench.authoring.case_rows import CaseRow
from workbench.authoring.case_rows import Form as TextForm
from workbench.authoring.criteria_change import ValueRefusedError, read_typed
from workbench.authoring.criteria_form import FormRow
from workbench.counting import exact
from workbench.judge.base import DEFAULT_MODEL, NotAvailableError
from workbench.judge.kinds import kind_of
from workbench.text import one_line
from workbench.ui.criteria.form_list import FormList
from workbench.ui.editing.field import ValueField
from workbench.ui.items import Item

IN_NUMBERS = frozenset("0123456789.,")
"""The characters that are typed at the row of a number. A comma is refused in the end, with the reason."""
_LONGEST = 12


class NumberTyping:
    """`take` gets the row and what was typed: after each key, and once it has `ended`. It returns False if that is no
    number.
    """

    def __init__(self, rows: FormList, take: Callable[[FormRow, str, bool], bool]) -> None:
        self._list, self._take = rows, take
        self._row: FormRow | None = None
        """The row that a number is being typed for."""

    @property
    def text(self) -> str:
        """What was typed so far."""
        return self._list.typed

    @property
    def takes_numbers(self) -> bool:
        """Whether the row with the cursor has a number."""
        row = self._list.row_or_none
        return row is not None and row.kind in ("threshold", "number")

    def key(self, event: Key) -> bool:
        """Take a key that belongs to a number."""
        if event.key == "backspace" and self.text:
            self._show(self.text[:-1])
            return True
        character = event.character
        return bool(character and character in IN_NUMBERS and self.takes_numbers and self.add(character))

    def add(self, text: str) -> bool:
        """Add to what was typed; False if it becomes too long."""
        if len(self.text + text) > _LONGEST:
            return False
        self._show(self.text + text)
        return True

    def end(self) -> bool:
        """Take what was typed, if anything. Return False if it is no number: it is dropped then."""
        text, row = self.text, self._row
        self.drop()
        return not text or row is None or self._take(row, text, True)

    def drop(self) -> bool:
        """Forget what was typed; False if nothing was."""
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
_RULES = "heuristic"

FORMS: Mapping[str, TextForm] = {"threshold": "word", "number": "word", "word": "word", "text": "text", "json": "json"}
"""How the kinds of rows are typed; the others are not."""


def judge_items(rows: Iterable[FormRow]) -> list[Item]:
    """Return the judges to pick from: those that are named in the editor, rules, and any other."""
    named = [row.value for row in rows if row.field.name == JUDGE_MODEL and isinstance(row.value, str)]
    models = dict.fromkeys([*named, DEFAULT_MODEL, _RULES])
    words = {_RULES: "a demonstration: rules, no model, no key, no cost"}
    items = [Item(one_line(model), model, help=words.get(model, "")) for model in models]
    return [*items, Item("another …", "", help="gemini-…, provider/model (LiteLLM), python:package.module:function")]


def take(field: ValueField, row: FormRow) -> None:
    """Puts the value of a row into the field."""
    value = row.value
    if row.kind in ("threshold", "number") and value is not None:
        value = exact(value) if isinstance(value, float) else str(value)
    missing = not row.given or value is None
    form = FORMS[row.kind]
    if form != "json" and not missing and not isinstance(value, str):
        form = "json"
    field.take(CaseRow(row.location, "odd", row.field.name, value, form, row.unit, missing=missing))


def typed_value(field: ValueField, row: FormRow) -> Any:
    """The value that was typed.

    Raises:
        UnreadableError: it is no JSON, where it should be.
        ValueRefusedError: it is no value for this field.
    """
    as_json = row.kind == "json" or (field.row is not None and field.row.form == "json")
    value = field.value() if as_json else read_typed(row, field.text)
    if row.field.name == JUDGE_MODEL and isinstance(value, str):
        try:
            kind_of(value)
        except NotAvailableError as error:
            raise ValueRefusedError(str(error)) from None
    return value
