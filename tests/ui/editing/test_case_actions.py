"""Actions on whole cases on the screen: new, duplicate, delete, move, rename, undo."""

import errno
import json
import os
from pathlib import Path

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.files.evalset import open_evalset
from workbench.ui.dialogs.pick import NameScreen, PickScreen
from workbench.ui.editing.editor import EditorScreen


def files_of(screen: Screen) -> list[Path]:
    return [entry.file for entry in screen.workspace.evalsets]


def ids_in(file: Path) -> list[str]:
    return [case.eval_id for case in open_evalset(file).cases]


async def test_a_case_is_duplicated_and_deleted_and_both_are_undone(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        file = files_of(screen)[0]
        before = file.read_bytes()
        await pilot.press("j", "j", "j", "d")
        await screen.until(pilot, lambda: screen.row == "on_time_2")
        assert ids_in(file)[:2] == ["on_time", "on_time_2"]
        turns = [case["conversation"][0] for case in json.loads(file.read_bytes())["eval_cases"]]
        assert turns[0]["invocation_id"] != turns[1]["invocation_id"]
        assert open_evalset(file).check() == ()
        await pilot.press("D")
        await screen.until(pilot, lambda: "done: delete on_time_2" in screen.text)
        assert screen.row == "late_parcel"
        assert file.read_bytes() == before
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: delete on_time_2" in screen.text)
        assert "on_time_2" in ids_in(file)
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: duplicate as on_time_2" in screen.text)
        assert file.read_bytes() == before


async def test_deleting_several_cases_asks_and_one_undo_restores_them(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        first, second = files_of(screen)[:2]
        before = first.read_bytes(), second.read_bytes()
        await pilot.press("j", "j", "j", "space", "j", "j", "j", "j", "space", "D")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        assert "delete 2 cases?" in screen.text
        await pilot.press("down", "enter")
        await pilot.pause()
        assert (first.read_bytes(), second.read_bytes()) == before
        await pilot.press("D")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: delete" in screen.text)
        assert "on_time" not in ids_in(first)
        assert len(ids_in(second)) == 1
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: delete" in screen.text)
        assert (first.read_bytes(), second.read_bytes()) == before


async def test_new_case_asks_for_an_id_and_opens_its_first_message(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        file = files_of(screen)[0]
        await pilot.press("j", "j", "j", "+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        await pilot.press(*"late_parcel", "enter")
        await screen.until(pilot, lambda: "late_parcel is already in this file" in screen.text)
        await pilot.press("_", "2", "enter")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen) and "ctrl+o" in screen.text)
        await pilot.press(*"Hello", "ctrl+o")
        await screen.until(pilot, lambda: "saved:" in screen.text)
        assert ids_in(file)[:3] == ["on_time", "late_parcel_2", "late_parcel"]
        case = open_evalset(file).case(1)
        assert case.turns is not None
        assert case.turns[0]["user_content"]["parts"] == [{"text": "Hello"}]
        assert case.session_input == {"app_name": "x", "user_id": "u", "state": {}}


async def test_new_case_opens_even_if_the_filter_hides_it(
    open_screen: OpenScreen,
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        file = files_of(screen)[0]
        await pilot.press("/", *"late_parcel", "enter", "G")
        await screen.until(pilot, lambda: screen.row == "late_parcel")
        await pilot.press("+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        await pilot.press(*"fresh", "enter")
        await screen.until(pilot, lambda: "edit › fresh" in screen.text and "ctrl+o" in screen.text)
        await pilot.press(*"Hi", "ctrl+o")
        await screen.until(pilot, lambda: "saved: fresh" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.row == "fresh")
        cases = {case["eval_id"]: case for case in json.loads(file.read_bytes())["eval_cases"]}
        assert cases["fresh"]["conversation"][0]["user_content"]["parts"] == [{"text": "Hi"}]


async def test_a_case_moves_to_another_evalset(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        first, second = files_of(screen)[:2]
        before = first.read_bytes(), second.read_bytes()
        await pilot.press("j", "j", "j", "m")
        await screen.until(pilot, lambda: "move 1 case to" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: move on_time" in screen.text)
        assert "on_time" not in ids_in(first)
        assert ids_in(second)[-1] == "on_time"
        assert screen.row == "on_time"
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: move on_time" in screen.text)
        assert (first.read_bytes(), second.read_bytes()) == before


async def test_case_does_not_move_to_a_file_with_its_id(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen(make_workspace({"desk": {"one": ["same"], "two": ["same"]}}))
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j", "j", "m")
        await screen.until(pilot, lambda: "move 1 case to" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "the target file already has" in " ".join(screen.notices))
        assert [ids_in(file) for file in files_of(screen)] == [["same"], ["same"]]


async def test_renamed_case_keeps_the_cursor(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j", "j")
        await screen.main.run_action("rename")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        await pilot.press(*"punctual", "enter")
        await screen.until(pilot, lambda: screen.row == "punctual")
        assert ids_in(files_of(screen)[0])[0] == "punctual"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "permission denied"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
    ],
)
async def test_failed_write_is_reported_and_changes_nothing(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    screen = open_screen()

    def fail(file: Path, content: bytes, *, known_hash: str) -> None:
        raise OSError(number, os.strerror(number), str(file))

    monkeypatch.setattr("workbench.editing.saving.replace_content", fail)
    async with screen.open((120, 40)) as pilot:
        file = files_of(screen)[0]
        before = file.read_bytes()
        await pilot.press("j", "j", "j", "D")
        await screen.until(pilot, lambda: words in " ".join(screen.notices))
        assert file.read_bytes() == before
        assert screen.row == "on_time"
        await pilot.press("u")
        await screen.until(pilot, lambda: "there is nothing to undo" in screen.text)


async def test_other_changes_on_disk_stay_and_a_missing_case_is_reported(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        file = files_of(screen)[0]
        theirs = json.loads(file.read_bytes().replace(b"late_parcel", b"very_late"))
        theirs["eval_cases"].insert(0, theirs["eval_cases"].pop())
        await pilot.press("j", "j", "j")
        file.write_text(json.dumps(theirs))
        await pilot.press("D")
        await screen.until(pilot, lambda: "done: delete on_time" in screen.text)
        assert json.loads(file.read_bytes())["eval_cases"] == [
            case for case in theirs["eval_cases"] if case["eval_id"] != "on_time"
        ]
        await pilot.press("u")
        await screen.until(pilot, lambda: screen.row == "on_time" or "undone" in screen.text)
        file.write_bytes(file.read_bytes().replace(b"very_late", b"later_still"))
        screen.main.controllers.files.go_to_case(file, "very_late")
        await pilot.press("D")
        await screen.until(pilot, lambda: "very_late no longer exists" in " ".join(screen.notices))
        assert "later_still" in ids_in(file)


async def test_cases_of_a_dataset_are_edited_as_in_an_evalset(
    make_workspace: MakeWorkspace, open_screen: OpenScreen
) -> None:
    cases = [
        {"eval_case_id": name, "prompt": {"role": "user", "parts": [{"text": name}]}, "theirs": 1.50}
        for name in ("one", "two")
    ]
    screen = open_screen(make_workspace({"desk": {"data": json.dumps({"eval_cases": cases}, indent=1)}}))
    async with screen.open((120, 40)) as pilot:
        (file,) = files_of(screen)
        before = file.read_bytes()
        await pilot.press("j", "j", "j", "d")
        await screen.until(pilot, lambda: screen.row == "one_2")
        assert [case["eval_case_id"] for case in json.loads(file.read_bytes())["eval_cases"]] == ["one", "one_2", "two"]
        await pilot.press("D")
        await screen.until(pilot, lambda: "done: delete one_2" in screen.text)
        assert file.read_bytes() == before
        await pilot.press("k", "e")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen))
        await pilot.press("j", "j", "enter", "end", "!", "ctrl+o")
        await screen.until(pilot, lambda: file.read_bytes() != before)
        assert file.read_bytes() == before.replace(b'"text": "one"', b'"text": "one!"')
