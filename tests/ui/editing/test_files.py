"""Edits of files without a screen: save, conflict, undo."""

import json
from pathlib import Path
from typing import Any

from tests.ui.conftest import MakeWorkspace, case_json
from tests.ui.fake_view import Bench
from workbench.ui.editing.drafts import CaseDraft, open_case
from workbench.ui.editing.edit import Edit


def ids(file: Path) -> list[str]:
    return [case["eval_id"] for case in json.loads(file.read_text())["eval_cases"]]


def draft_of(bench: Bench) -> CaseDraft:
    return open_case(bench.files.chosen(0, [1]), bench.session.entry(0).document)


def with_text(draft: CaseDraft, text: str) -> Any:
    value = json.loads(json.dumps(draft.value))
    value["conversation"][0]["user_content"]["parts"][0]["text"] = text
    return value


async def test_fast_undo_and_redo_handle_one_edit_each(bench: Bench) -> None:
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
    await edit.draft_outside(draft)
    assert b"from outside" in bench.session.entry(0).file.read_bytes()
    assert bench.view.asked[1].startswith("line 1, column 1:")
    assert bench.view.said == ["saved: late_parcel"]


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
