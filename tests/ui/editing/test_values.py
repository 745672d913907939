"""Values as text in a field and back: nothing is lost, faults are at their places."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.authoring.test_case_edit import json_values
from tests.hostile import HOSTILE, leaks
from workbench.authoring.case_rows import CaseRow, Form
from workbench.ui.editing.row_list import in_short
from workbench.ui.editing.values import (
    UnreadableError,
    as_json,
    field_text,
    json_head,
    json_text,
    place_of,
    read_json_text,
    read_value,
    typed,
)


def row(value: Any, form: Form) -> CaseRow:
    return CaseRow(("x",), "user", "x", value, form, ("x",))


@given(json_values)
def test_json_comes_back_as_it_was(value: Any) -> None:
    assert read_json_text(json_text(value)) == value


@given(st.text())
def test_text_comes_back_as_it_was(text: str) -> None:
    one = row(text, "text")
    assert read_value(field_text(one), one) == text
    assert not leaks(field_text(one).replace("\t", ""))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_safe_in_the_field_and_comes_back(text: str) -> None:
    one = row(text, "text")
    shown = field_text(one)
    assert not leaks(shown.replace("\t", ""))
    assert read_value(shown, one) == text
    assert not leaks(typed(text).replace("\t", ""))


def test_plain_text_is_no_json() -> None:
    assert not as_json(row("Grüße\nund\tmehr 日本", "text"))
    assert as_json(row("\x1b[31m", "text"))
    assert as_json(row({}, "json"))


@pytest.mark.parametrize(
    ("text", "place"), [("", (1, 1)), ("{\n  ]", (2, 3)), ('{"a": 1,\n "b" 2}', (2, 5)), ('{"a": nul}', (1, 7))]
)
def test_a_fault_has_a_line_and_a_column(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(UnreadableError) as caught:
        read_json_text(text)
    assert (caught.value.line, caught.value.column) == place


def test_a_place_inside_json() -> None:
    text = '{\n  "a": [1,\n    {"b": 2}]\n}'
    assert place_of(text, ("a", 1, "b")) == (3, 11)
    assert place_of(text, ("nowhere",)) == (1, 1)


@given(json_values, st.integers(1, 50))
def test_the_head_of_json_is_how_it_begins(value: Any, most: int) -> None:
    head, whole = json_head(value, most), json.dumps(value, ensure_ascii=False)
    assert head[:most] == whole[:most]


def test_a_row_of_a_large_value_is_short() -> None:
    assert len(in_short({"a": ["x" * 1000] * 10_000})) <= 400
    assert in_short(" ") == "(empty)"


def test_a_persona_of_ones_own_is_an_object() -> None:
    persona = CaseRow(("conversation_scenario", "user_persona"), "scenario", "persona", None, "word", (), missing=True)
    assert read_value("NOVICE", persona) == "NOVICE"
    assert read_value(' {"id": "picky"}', persona) == {"id": "picky"}
    with pytest.raises(UnreadableError):
        read_value("{picky", persona)
