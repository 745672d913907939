"""Conversion of values to text in a field and back."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.editing.test_case_edit import json_values
from tests.hostile import HOSTILE, leaks
from workbench.editing.case_rows import CaseRow, Form
from workbench.editing.saving import Saver
from workbench.files.file_access import replace_content
from workbench.ui.editing.conflicts import save_error_message
from workbench.ui.editing.drafts import (
    UnreadableError,
    as_json,
    field_text,
    in_short,
    json_head,
    json_text,
    place_of,
    read_json_text,
    read_value,
)
from workbench.ui.editing.field import typed


def row(value: Any, form: Form) -> CaseRow:
    return CaseRow(("x",), "user", "x", value, form, ("x",))


@given(json_values)
def test_json_survives_the_field_unchanged(value: Any) -> None:
    assert read_json_text(json_text(value)) == value


@given(st.text())
def test_text_survives_the_field_unchanged(text: str) -> None:
    one = row(text, "text")
    assert read_value(field_text(one), one) == text
    assert not leaks(field_text(one).replace("\t", ""))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_safe_in_the_field_and_unchanged(text: str) -> None:
    one = row(text, "text")
    shown = field_text(one)
    assert not leaks(shown.replace("\t", ""))
    assert read_value(shown, one) == text
    assert not leaks(typed(text).replace("\t", ""))


def test_text_is_edited_as_json_only_if_it_has_control_codes() -> None:
    assert not as_json(row("Grüße\nund\tmehr 日本", "text"))
    assert as_json(row("\x1b[31m", "text"))
    assert as_json(row({}, "json"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", (1, 1)),
        ("{\n  ]", (2, 3)),
        ('{"a": 1,\n "b" 2}', (2, 5)),
        ('{"a": nul}', (1, 7)),
        ('{"a": -1e999}', (1, 7)),
    ],
)
def test_json_fault_has_line_and_column(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(UnreadableError) as caught:
        read_json_text(text)
    assert (caught.value.line, caught.value.column) == place


def test_location_in_json_has_line_and_column() -> None:
    text = '{\n  "a": [1,\n    {"b": 2}]\n}'
    assert place_of(text, ("a", 1, "b")) == (3, 11)
    assert place_of(text, ("nowhere",)) == (1, 1)


@given(json_values, st.integers(1, 50))
def test_json_head_is_the_start_of_the_json(value: Any, most: int) -> None:
    head, whole = json_head(value, most), json.dumps(value, ensure_ascii=False)
    assert head[:most] == whole[:most]


def test_row_of_a_large_value_is_short() -> None:
    assert len(in_short({"a": ["x" * 1000] * 10_000})) <= 400
    assert in_short(" ") == "(empty)"


def test_persona_is_read_as_a_name_or_an_object() -> None:
    persona = CaseRow(("conversation_scenario", "user_persona"), "scenario", "persona", None, "word", (), missing=True)
    assert read_value("NOVICE", persona) == "NOVICE"
    assert read_value(' {"id": "picky"}', persona) == {"id": "picky"}
    with pytest.raises(UnreadableError):
        read_value("{picky", persona)


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EROFS, "the file system is read-only"), (errno.EACCES, "permission denied")]
)
def test_message_says_why_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")

    def refused(path: Path, flags: int, *rest: int) -> int:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("workbench.editing.saving.os.access", lambda file, mode: False)
    monkeypatch.setattr("workbench.editing.saving.os.open", refused)
    with pytest.raises(OSError, match=r"a\.json") as told:
        Saver(tmp_path / "state", tmp_path).save("edit", {file: (b"old", b"new")})
    assert words in save_error_message(told.value)
    assert save_error_message(told.value).endswith("(a.json)")


def test_message_names_the_file_that_cannot_be_replaced(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone") as told:
        replace_content(tmp_path / "gone" / "b.json", b"new")
    assert save_error_message(told.value) == "not saved: the file or its folder no longer exists (b.json)"
    assert save_error_message(told.value, "not undone").startswith("not undone: the file or its folder")
