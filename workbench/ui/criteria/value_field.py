"""A value of a config in the field in which it is typed, and back."""

from collections.abc import Mapping
from typing import Any

from workbench.authoring.case_rows import CaseRow
from workbench.authoring.case_rows import Form as TextForm
from workbench.authoring.criteria_change import read_typed
from workbench.authoring.criteria_form import FormRow
from workbench.counting import exact
from workbench.ui.editing.field import ValueField

IN_NUMBERS = frozenset("0123456789.")
"""The characters that open the field of a number when they are typed on its row."""

FORMS: Mapping[str, TextForm] = {"threshold": "word", "number": "word", "word": "word", "text": "text", "json": "json"}
"""How the kinds of rows are typed; the others are not."""


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
    return field.value() if as_json else read_typed(row, field.text)
