"""Edits of files without a screen: save, conflict, undo."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace, case_json
from tests.ui.fake_view import Bench
from workbench.ui.editing.drafts import Draft, open_case
from workbench.ui.editing.edit import Edit


def ids(file: Path) -> list[str]:
    return [case["eval_id"] for case in json.loads(file.read_text())["eval_cases"]]


def draft_of(bench: Bench) -> Draft:
    return open_case(bench.files.chosen(0, [1]), bench.session.entry(0).document)


def with_text(draft: Draft, text: str) -> Any:
    value = json.loads(json.dumps(draft.value))
    value["conversation"][0]["user_content"]["parts"][0]["text"] = text
    return value


async def test_undo_and_redo_pressed_quickly_handle_one_edit_each(bench: Bench) -> None:
    file = bench.session.entry(0).file
    for number in (1, 2):
        await bench.files.put(f"edit {number}", {file: (file.read_bytes(), file.read_bytes() + b" ")})
    length = len(file.read_bytes())
    bench.files.undo()
    bench.files.undo()
    await bench.view.settled()
    assert len(file.read_bytes()) == length - 2
    bench.files.redo()
    await bench.view.settled()
    assert len(file.read_bytes()) == length - 1
    assert bench.view.said[-1].startswith("redone: edit 1")


async def test_text_from_the_external_editor_is_saved_or_offered_again(bench: Bench) -> None:
    edit = Edit(bench.view, bench.files)
    bench.put_cursor(0, 1)
    good = json.dumps(with_text(draft_of(bench), "from outside"))
    bench.view.answers = ["{", True, good]
    row = bench.view.rows.cursor
    assert row is not None
    draft = await edit.draft(row)
    assert draft is not None
    _, message = await edit.draft_outside(draft)
    assert b"from outside" in bench.session.entry(0).file.read_bytes()
    assert bench.view.asked[1].startswith("line 1, column 1:")
    assert message == "saved: late_parcel: edit in $EDITOR"


async def test_dataset_case_from_the_external_editor_is_shown_like_a_case(
    bench: Bench, make_workspace: MakeWorkspace
) -> None:
    data = json.dumps({"eval_cases": [{"eval_case_id": "one", "prompt": {"role": "user", "parts": [{"text": "Hi"}]}}]})
    bench.view.show_workspace(make_workspace({"desk": {"data": data}}))
    bench.put_cursor(0, 0)
    bench.view.answers = [data[16:-2].replace("Hi", "Hello")]
    row = bench.view.rows.cursor
    assert row is not None
    edit = Edit(bench.view, bench.files)
    draft = await edit.draft(row)
    assert draft is not None
    after, _ = await edit.draft_outside(draft)
    assert after is not None
    assert [one.value for one in after.rows() if one.kind == "user"] == ["Hello"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("[]", "the evalset must be an object"), ('{"eval_set_id": "refunds", "extra": 1}', "only the ID, name and")],
)
async def test_external_editor_changes_only_id_name_and_description_of_an_evalset(
    bench: Bench, text: str, reason: str
) -> None:
    edit = Edit(bench.view, bench.files)
    bench.put_cursor(0)
    before = bench.session.entry(0).file.read_bytes()
    bench.view.answers = [text, False]
    row = bench.view.rows.cursor
    assert row is not None
    draft = await edit.draft(row)
    assert draft is not None
    assert await edit.draft_outside(draft) == (draft, "no changes")
    assert reason in bench.view.asked[1]
    assert bench.session.entry(0).file.read_bytes() == before


async def test_case_is_opened_at_its_line(bench: Bench, make_workspace: MakeWorkspace) -> None:
    cases = {"eval_set_id": "refunds", "eval_cases": [case_json("one"), case_json("two")]}
    text = json.dumps(cases, indent=1)
    bench.view.show_workspace(make_workspace({"order_desk": {"refunds": text}}))
    bench.put_cursor(0, 1)
    bench.view.answers = [None]
    Edit(bench.view, bench.files).edit_outside()
    await bench.view.settled()
    assert bench.view.asked == [text.partition('"eval_id": "two"')[0].count("\n")]


async def test_editing_needs_a_case_or_an_evalset(bench: Bench) -> None:
    edit = Edit(bench.view, bench.files)
    edit.edit()
    edit.edit_outside()
    assert bench.view.said == [
        "put the cursor on a case or an evalset first",
        "no file here: put the cursor on a case or an agent",
    ]
