"""The editor on the screen: values, parts, faults at their places, undo."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen, case_json
from workbench.agents.workspace import Workspace
from workbench.editing.saving import Edit, UndoJournal, change_of
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.conflicts import ConflictScreen
from workbench.ui.editing.editor import EditorScreen


def file_of(screen: Screen, evalset: int = 0) -> Path:
    return screen.workspace.evalsets[evalset].file


async def test_a_message_is_edited_in_place(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        before = file.read_text()
        await pilot.press("j", "j", "j", "e")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen))
        await screen.until(pilot, lambda: "Where is my parcel?" in screen.text)
        await pilot.press("j", "j", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        await pilot.press("backspace", "!", "ctrl+o")
        await screen.until(pilot, lambda: "saved: on_time: user of turn 1" in screen.text)
        assert file.read_text() == before.replace("parcel?", "parcel!", 1)
        await pilot.press("escape")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, EditorScreen))
        assert screen.row == "on_time"
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: on_time: user of turn 1" in screen.text)
        assert file.read_text() == before
        await pilot.press("U")
        await screen.until(pilot, lambda: "redone: on_time" in screen.text)
        assert json.loads(file.read_text())["eval_cases"][0]["conversation"][0]["user_content"]["parts"] == [
            {"text": "Where is my parcel!"}
        ]


async def opened(screen: Screen, pilot: Any, *keys: str) -> None:
    """Open the editor on the first case of the first evalset, then press some keys."""
    await pilot.press("j", "j", "j", "e")
    await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen) and "edit ›" in screen.text)
    await pilot.press(*keys)


@pytest.fixture
def with_call(make_workspace: MakeWorkspace) -> Workspace:
    """One evalset whose first case has a call."""
    case = case_json("on_time")
    case["conversation"][0]["intermediate_data"] = {"tool_uses": [{"name": "find", "args": {"id": 1}}]}
    content = {"eval_set_id": "refunds", "eval_cases": [case, case_json("late")]}
    return make_workspace({"desk": {"refunds": json.dumps(content, indent=2)}})


async def test_json_fault_is_shown_at_its_place_and_the_text_stays(
    open_screen: OpenScreen, with_call: Workspace
) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        before = file.read_bytes()
        await opened(screen, pilot, "j", "j", "j", "j", "enter")
        await screen.until(pilot, lambda: '"id": 1' in screen.text)
        await pilot.press("up", "end", ",", "ctrl+o")
        await screen.until(pilot, lambda: "line 2, column 10" in screen.text)
        assert '"id": 1,' in screen.text
        assert file.read_bytes() == before
        await pilot.press("delete", "5", "ctrl+o")
        await screen.until(pilot, lambda: "saved:" in screen.text)
        assert file.read_bytes() == before.replace(b'"id": 1', b'"id": 15')


async def test_value_that_adk_rejects_stays_in_the_field(open_screen: OpenScreen, with_call: Workspace) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        before = file.read_bytes()
        await opened(screen, pilot, "j", "j", "j", "j", "enter")
        await screen.until(pilot, lambda: '"id": 1' in screen.text)
        editor = screen.app.screen
        assert isinstance(editor, EditorScreen)
        editor.field.text = "[1, 2]"
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "line 1, column 1" in screen.text)
        assert "[1, 2]" in screen.text
        assert file.read_bytes() == before
        await pilot.press("escape")
        await screen.until(pilot, lambda: "esc again discards it" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: "e edit" in screen.text)
        assert file.read_bytes() == before


async def test_parts_are_added_duplicated_moved_and_deleted(open_screen: OpenScreen, with_call: Workspace) -> None:
    screen = open_screen(with_call)

    def calls() -> list[Any]:
        turn = json.loads(file_of(screen).read_bytes())["eval_cases"][0]["conversation"][0]
        return [call["name"] for call in turn.get("intermediate_data", {}).get("tool_uses", [])]

    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot)
        await screen.until(pilot, lambda: "e edit   + add   E open $EDITOR   ? help" in screen.text)
        await pilot.press("j")
        await screen.until(pilot, lambda: "+ add   d duplicate   D delete   ? help" in screen.text)
        await pilot.press("j", "j", "+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press("enter")
        await screen.until(pilot, lambda: calls() == ["find", ""] and "ctrl+o saves" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: "undone: on_time: new call" in screen.text)
        assert file_of(screen).read_bytes() == before, "nothing was typed into it"
        await pilot.press("+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press("enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        await pilot.press(*"refund", "enter")
        await screen.until(pilot, lambda: calls() == ["find", "refund"] and "saved" in screen.text)
        await pilot.press("<")
        await screen.until(pilot, lambda: calls() == ["refund", "find"] and "saved: on_time: move call" in screen.text)
        await pilot.press("d")
        await screen.until(pilot, lambda: len(calls()) == 3 and "saved: on_time: duplicate call" in screen.text)
        assert calls() == ["refund", "refund", "find"]
        await pilot.press("D")
        await screen.until(
            pilot, lambda: calls() == ["refund", "find"] and "saved: on_time: delete call" in screen.text
        )
        for label in ("delete call", "duplicate call", "move call"):
            await pilot.press("u")
            await screen.until(pilot, lambda label=label: f"undone: on_time: {label}" in screen.text)  # type: ignore[misc]
        await pilot.press("u", "u")
        await screen.until(pilot, lambda: "undone: on_time: new call" in screen.text)
        assert file_of(screen).read_bytes() == before
        assert isinstance(screen.app.screen, EditorScreen)


async def test_part_that_a_malformed_case_cannot_get_is_refused_with_a_reason(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    content = {"eval_set_id": "refunds", "eval_cases": [{**case_json("on_time"), "rubrics": {"polite": 1}}]}
    screen = open_screen(make_workspace({"desk": {"refunds": json.dumps(content)}}))
    async with screen.open((120, 40)) as pilot:
        await opened(screen, pilot, "+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press(*"rubric", "enter")
        await screen.until(pilot, lambda: "`rubrics` is not a list: fix it first (E)" in screen.text)


async def test_id_name_and_description_of_an_evalset_are_edited(open_screen: OpenScreen, with_call: Workspace) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j", "e")
        await screen.until(pilot, lambda: "edit › refunds.evalset.json" in screen.text)
        assert "duplicate" not in screen.text, "there are no parts here"
        await pilot.press("j", "enter", *"Refunds", "enter")
        await screen.until(pilot, lambda: "saved:" in screen.text)
        assert json.loads(file_of(screen).read_bytes())["name"] == "Refunds"


async def test_undo_of_a_new_id_keeps_the_editor_open(open_screen: OpenScreen, with_call: Workspace) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot, "enter", "2", "enter")
        await screen.until(pilot, lambda: "edit › on_time2" in screen.text)
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: " in screen.text and "edit › on_time " in screen.text)
        assert file_of(screen).read_bytes() == before


async def test_file_changed_on_disk_is_merged_case_by_case(open_screen: OpenScreen, with_call: Workspace) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        await opened(screen, pilot, "j", "j", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        theirs = file.read_bytes().replace(b'"late"', b'"very_late"')
        file.write_bytes(theirs)
        await pilot.press("!", "ctrl+o")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ConflictScreen))
        assert "changed by you" in screen.text
        await pilot.press("escape")
        await screen.until(pilot, lambda: "it is still here" in screen.text)
        assert "Where is my parcel?!" in screen.text
        assert file.read_bytes() == theirs
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ConflictScreen))
        await pilot.press("enter")
        await screen.until(pilot, lambda: "saved:" in screen.text and "not saved" not in screen.text)
        assert file.read_bytes() == theirs.replace(b"parcel?", b"parcel?!", 1)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        theirs = file.read_bytes().replace(b"parcel?!", b"box?")
        file.write_bytes(theirs)
        await pilot.press("!", "ctrl+o")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ConflictScreen))
        await pilot.press("h", "enter")
        await screen.until(pilot, lambda: "kept the version on disk" in screen.text)
        assert file.read_bytes() == theirs


@pytest.mark.parametrize("what", ["deleted", "broken"])
async def test_file_deleted_or_broken_during_the_edit_is_reported(
    open_screen: OpenScreen, with_call: Workspace, what: str
) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        before = file.read_bytes()
        await opened(screen, pilot, "j", "j", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        file.unlink() if what == "deleted" else file.write_bytes(b"{")
        await pilot.press("!", "ctrl+o")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await screen.until(pilot, lambda: "on disk" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "your edit is still here" in screen.text)
        assert not file.exists() or file.read_bytes() == b"{"
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press("up", "down", "down", "enter")
        await screen.until(pilot, lambda: "saved:" in screen.text and "not saved" not in screen.text)
        assert file.read_bytes() == before.replace(b"parcel?", b"parcel?!", 1)


@pytest.mark.parametrize("theirs", [None, b""], ids=["deleted", "emptied"])
async def test_keeping_the_version_on_disk_writes_nothing(
    open_screen: OpenScreen, with_call: Workspace, theirs: bytes | None
) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        await opened(screen, pilot, "j", "j", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        file.unlink() if theirs is None else file.write_bytes(theirs)
        await pilot.press("!", "ctrl+o")
        await screen.until(pilot, lambda: "theirs: " in screen.text)
        await pilot.press("down", "enter")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, PickScreen))
        await screen.until(pilot, lambda: "ctrl+o saves" not in screen.text)
        assert (file.read_bytes() if file.exists() else None) == theirs


async def test_a_full_disk_keeps_the_edit(
    open_screen: OpenScreen, with_call: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        before = file.read_bytes()
        await opened(screen, pilot, "j", "j", "enter", "!")
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", _full)
            await pilot.press("ctrl+o")
            await screen.until(pilot, lambda: "the disk is full" in screen.text)
        assert "Where is my parcel?!" in screen.text
        assert file.read_bytes() == before
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "saved:" in screen.text and "not saved" not in screen.text)


def _full(number: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_read_only_file_is_not_changed(
    open_screen: OpenScreen, with_call: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen(with_call)
    monkeypatch.setattr("workbench.editing.saving.os.access", lambda file, mode: False)
    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot, "j", "j", "enter", "!", "ctrl+o")
        await screen.until(pilot, lambda: "permission denied" in screen.text)
        assert file_of(screen).read_bytes() == before


async def test_saving_through_a_link_keeps_the_link(
    open_screen: OpenScreen, with_call: Workspace, tmp_path: Path
) -> None:
    screen = open_screen(with_call)
    file = file_of(screen)
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    async with screen.open((120, 40)) as pilot:
        await opened(screen, pilot, "j", "j", "enter", "!", "ctrl+o")
        await screen.until(pilot, lambda: "saved:" in screen.text)
        assert file.is_symlink()
        assert b"parcel?!" in elsewhere.read_bytes()


async def test_edits_are_undone_after_a_restart(open_screen: OpenScreen, with_call: Workspace, tmp_path: Path) -> None:
    screen = open_screen(with_call)
    before = file_of(screen).read_bytes()
    async with screen.open((120, 40)) as pilot:
        await opened(screen, pilot, "j", "j", "enter", "!", "ctrl+o")
        await screen.until(pilot, lambda: "saved:" in screen.text)
    again = open_screen(with_call)
    async with again.open((120, 40)) as pilot:
        await pilot.press("u")
        await again.until(pilot, lambda: "undo an edit from an earlier session?" in again.text)
        assert file_of(screen).relative_to(with_call.root).as_posix() in again.text
        await pilot.press("down", "enter", "u")
        await again.until(pilot, lambda: "undo an edit from an earlier session?" in again.text)
        assert file_of(screen).read_bytes() != before, "the files were left"
        await pilot.press("enter")
        await again.until(pilot, lambda: "undone: on_time: user of turn 1" in again.text)
        assert file_of(screen).read_bytes() == before
        await pilot.press("U")
        await again.until(pilot, lambda: "redone: on_time: user of turn 1" in again.text)


@pytest.mark.parametrize("answer", ["trust", "ignore", "leave"])
async def test_foreign_state_folder_is_used_only_if_the_user_trusts_it(
    open_screen: OpenScreen, with_call: Workspace, answer: str
) -> None:
    file = with_call.evalsets[0].file
    journal = UndoJournal(with_call.root / ".workbench", with_call.root)
    journal.edit(Edit("forged", (change_of(file, b"", file.read_bytes()),)))
    journal.note("made")
    (with_call.root / ".workbench/id").unlink()
    before = {path: path.stat().st_mtime_ns for path in (with_call.root / ".workbench").rglob("*")}
    screen = open_screen(with_call)
    async with screen.open((80, 24)) as pilot:
        await screen.until(pilot, lambda: "you did not create this .workbench" in screen.text)
        await pilot.press(*{"trust": ["j", "enter"], "ignore": ["enter"], "leave": ["q"]}[answer])
        await screen.until(pilot, lambda: "you did not create" not in screen.text)
        await pilot.press("u")
        wanted = "earlier session?" if answer == "trust" else "there is nothing to undo"
        await screen.until(pilot, lambda: wanted in screen.text)
    after = {path: path.stat().st_mtime_ns for path in (with_call.root / ".workbench").rglob("*")}
    assert (after == before) == (answer != "trust")


async def test_interrupted_edit_is_offered_at_start(open_screen: OpenScreen, with_call: Workspace) -> None:
    file = with_call.evalsets[0].file
    before = file.read_bytes()
    after = before.replace(b"parcel?", b"parcel!")
    # The edit is in the journal, as if the program was killed before it wrote the file.
    UndoJournal(with_call.root / ".workbench", with_call.root).edit(
        Edit("on_time: user", (change_of(file, before, after),))
    )
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        await screen.until(pilot, lambda: "an edit was interrupted" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: file.read_bytes() == after)


async def test_hostile_text_is_escaped_on_the_terminal(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    case = case_json("on_time")
    case["conversation"][0]["user_content"]["parts"] = [{"text": text[:2000]} for text in HOSTILE]
    content = json.dumps({"eval_set_id": "refunds", "eval_cases": [case]})
    screen = open_screen(make_workspace({"desk": {"refunds": content}}))
    async with screen.open((80, 24)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot)
        editor = screen.app.screen
        assert isinstance(editor, EditorScreen)
        await pilot.press("j")
        for _ in HOSTILE:
            await pilot.press("j", "enter")
            await pilot.pause()
            assert not leaks(screen.text)
            if editor.field.display:
                # All other content of the file is unchanged.
                assert editor.field.row is not None
                assert editor.field.value() == editor.field.row.value
                await pilot.press("escape")
        assert file_of(screen).read_bytes() == before


async def test_pasted_text_cannot_control_the_terminal(open_screen: OpenScreen, with_call: Workspace) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        await opened(screen, pilot, "j", "j", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        editor = screen.app.screen
        assert isinstance(editor, EditorScreen)
        for text in HOSTILE:
            if len(text) < 1000:
                editor.field.insert(text)
        await pilot.pause()
        assert not leaks(editor.field.text.replace("\t", ""))
        assert not leaks(screen.text)


@pytest.mark.parametrize("part", ["tool response", "turn rubric", "intermediate text"])
async def test_esc_right_after_adding_removes_the_new_part(
    open_screen: OpenScreen, with_call: Workspace, part: str
) -> None:
    screen = open_screen(with_call)
    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot, "j", "j", "j", "j", "+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press(*("space" if letter == " " else letter for letter in part), "enter")
        await screen.until(pilot, lambda: file_of(screen).read_bytes() != before and "ctrl+o saves" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: file_of(screen).read_bytes() == before)
