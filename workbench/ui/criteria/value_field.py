"""A value of a config in the field in which it is typed, and back."""

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.authoring.case_rows import CaseRow
from workbench.authoring.case_rows import Form as TextForm
from workbench.authoring.criteria_change import ValueRefusedError, read_typed
from workbench.authoring.criteria_form import FormRow
from workbench.counting import exact
from workbench.judge.base import DEFAULT_MODEL, NotAvailableError
from workbench.judge.kinds import kind_of
from workbench.text import one_line
from workbench.ui.editing.field import ValueField
from workbench.ui.items import Item

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
