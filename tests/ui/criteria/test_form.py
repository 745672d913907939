"""The criteria editor on the screen: changes, previews, saving and errors."""

import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from tests.ui.feed import Feed
from workbench.agents.workspace import CriteriaChoice, Workspace
from workbench.editing.criteria_form import rows_of
from workbench.files.criteria import default_config, read_config
from workbench.files.file_access import replace_content
from workbench.ui.criteria.form import CriteriaScreen

TEXT = """{
  "criteria": {
    "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "EXACT"},
    "response_match_score": 0.8,
    "rubric_based_final_response_quality_v1": {
      "threshold": 0.5,
      "rubrics": [
        {"rubric_id": "first", "rubric_content": {"text_property": "見積もりを先に出すこと"}},
        {"rubric_id": "second", "rubric_content": {"text_property": "Polite."}}
      ]
    }
  },
  "note": "mine"
}
"""


def with_config(workspace: Workspace, text: str = TEXT) -> tuple[Workspace, Path]:
    file = workspace.root / "test_config.json"
    file.write_text(text, encoding="utf-8")
    choice = CriteriaChoice(read_config(file), "test_config.json in the root, above the evalset")
    entries = tuple(dataclasses.replace(entry, criteria=choice) for entry in workspace.evalsets)
    return dataclasses.replace(workspace, evalsets=entries), file


async def form(screen: Screen, pilot: Any) -> CriteriaScreen:
    await pilot.press("c")
    await screen.until(pilot, lambda: isinstance(screen.app.screen, CriteriaScreen))
    found = screen.app.screen
    assert isinstance(found, CriteriaScreen)
    return found


async def options(screen: Screen, pilot: Any) -> CriteriaScreen:
    await pilot.press("g", "o")
    await screen.until(pilot, lambda: isinstance(screen.app.screen, CriteriaScreen))
    found = screen.app.screen
    assert isinstance(found, CriteriaScreen)
    return found


def go(form: CriteriaScreen, name: str, criterion: str) -> None:
    """Put the cursor on a field."""
    number = next(n for n, row in enumerate(form.list.rows) if (row.field.name, row.criterion) == (name, criterion))
    form.list.move_to(number)


async def test_a_threshold_is_saved_as_one_line(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        shown = await form(screen, pilot)
        assert "test_config.json, in the root, above the evalset, for 3 evalsets" in screen.text
        go(shown, "threshold", "response_match_score")
        await pilot.press("=", "-", "-")
        reads = screen.reads
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "saved: test_config.json" in screen.text)
        assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.75,")
        await screen.until(pilot, lambda: screen.reads > reads)
        await pilot.press("escape", "u")
        await screen.until(pilot, lambda: file.read_text(encoding="utf-8") == TEXT)


async def test_typing_a_threshold_previews_the_changed_verdicts(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    feed = Feed(screen.session.store, workspace)
    async with screen.open() as pilot:
        for ref, score in zip(feed.start(("refunds", "on_time"), ("refunds", "late_parcel")), (0.9, 0.5), strict=True):
            feed.begin(ref)
            feed.end(ref, "passed" if score > 0.8 else "failed", score)
        feed.finish()
        shown = await form(screen, pilot)
        go(shown, "threshold", "response_match_score")
        await pilot.press("0", ".", "4")
        await screen.until(pilot, lambda: "1 would now pass this criterion: late_parcel (0.50)" in screen.text)
        assert "last run: 2 of 2 cases would pass this criterion (before: 1)" in screen.text
        await pilot.press("escape")
        await screen.until(pilot, lambda: "1 of 2 cases would pass this criterion (before: 1)" in screen.text)
        await pilot.press("0", ".", "4")
        await screen.until(pilot, lambda: "1 would now pass this criterion: late_parcel (0.50)" in screen.text)
        await pilot.press("enter", "u")
        await screen.until(pilot, lambda: "1 of 2 cases would pass this criterion (before: 1)" in screen.text)
        assert shown.changes.content == shown.changes.draft.content
        await pilot.press("9", ",", "enter")
        await screen.until(pilot, lambda: "is not a number" in screen.text)
        await pilot.press("escape", "escape", "escape")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
    assert file.read_text(encoding="utf-8") == TEXT


async def test_preview_counts_only_the_repeats_of_the_last_run(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(with_config(make_workspace())[0])
    feed = Feed(screen.session.store, screen.workspace)
    async with screen.open((100, 30)) as pilot:
        for number, runs in enumerate((3, 1)):
            for ref in feed.start(("refunds", "on_time"), runs=runs, run_id=f"run-{number}"):
                feed.begin(ref)
                feed.end(ref, "passed", 1.0)
            feed.finish()
        await form(screen, pilot)
        await screen.until(pilot, lambda: "last run, 1 case:" in screen.text)


async def test_choices_judges_and_json_values_can_be_edited(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    rubric = "rubric_based_final_response_quality_v1"
    async with screen.open((120, 40)) as pilot:
        shown = await form(screen, pilot)
        go(shown, "match_type", "tool_trajectory_avg_score")
        await pilot.press("space")
        go(shown, "judge_model", rubric)
        await pilot.press("enter", *"gemini-2.5-pro", "enter")
        go(shown, "judge_model_config", rubric)
        await pilot.press("enter", *'{"seed" 3}', "ctrl+o")
        await screen.until(pilot, lambda: "line 1, column" in screen.text)
        assert shown.field.text == '{"seed" 3}'
        shown.field.load_text('{"seed": 3}')
        await pilot.press("ctrl+o")
        go(shown, "num_samples", rubric)
        await pilot.press("3", "enter", "ctrl+o")
        await screen.until(pilot, lambda: "saved" in screen.text)
    criteria = json.loads(file.read_text(encoding="utf-8"))["criteria"]
    assert criteria["tool_trajectory_avg_score"] == {"threshold": 1.0, "matchType": "IN_ORDER"}
    assert criteria[rubric]["judge_model_options"] == {
        "judge_model": "gemini-2.5-pro",
        "judge_model_config": {"seed": 3},
        "num_samples": 3,
    }


async def test_criterion_that_needs_an_option_asks_for_it(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open((120, 40)) as pilot:
        shown = await form(screen, pilot)
        for end in ("escape", "enter"):
            await pilot.press("+", *"limits", "enter")
            await screen.until(pilot, lambda: "limits: which option first?" in screen.text)
            await pilot.press("down", "enter")
            await screen.until(pilot, lambda: shown.field.display)
            assert shown.changes.content["criteria"]["limits"] == 1.0
            if end == "escape":
                await pilot.press("escape")
                await screen.until(pilot, lambda: "not added: it needs a value" in screen.text)
                assert not shown.changes.pending
            else:
                await pilot.press(*"2.5", "enter", "ctrl+o")
        await screen.until(pilot, lambda: "saved: test_config.json" in screen.text)
        assert json.loads(file.read_text(encoding="utf-8"))["criteria"]["limits"] == {"threshold": 1.0, "seconds": 2.5}


async def test_rubrics_are_added_moved_and_deleted(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open((80, 24)) as pilot:
        shown = await form(screen, pilot)
        go(shown, "rubrics", "rubric_based_final_response_quality_v1")
        await pilot.press("j", "l", ">", "D")
        assert "1 " in screen.text
        go(shown, "rubrics", "rubric_based_final_response_quality_v1")
        await pilot.press("enter", *"New.", "ctrl+o", "ctrl+o")
        await screen.until(pilot, lambda: "saved" in screen.text)
    rubrics = json.loads(file.read_text(encoding="utf-8"))["criteria"]["rubric_based_final_response_quality_v1"][
        "rubrics"
    ]
    assert [rubric["rubric_content"]["text_property"] for rubric in rubrics] == ["Polite.", "New."]


async def test_invalid_config_is_not_saved_and_stays_in_the_form(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    rubric = "rubric_based_final_response_quality_v1"
    async with screen.open((100, 40)) as pilot:
        shown = await form(screen, pilot)
        go(shown, "rubrics", rubric)
        await pilot.press("j", "l", "j")
        assert shown.list.row.value == "first"
        await pilot.press("j", "enter", *"ODD", "enter", "D", "k")
        assert "type" not in shown.changes.content["criteria"][rubric]["rubrics"][0]
        await pilot.press("enter")
        shown.field.load_text("second")
        await pilot.press("enter", "ctrl+o")
        await screen.until(pilot, lambda: "is used twice" in screen.text)
        assert file.read_text(encoding="utf-8") == TEXT
        assert shown.changes.content["criteria"][rubric]["rubrics"][0]["rubric_id"] == "second"
        await pilot.press("escape")
        assert "not saved: ctrl+o saves, esc again discards the changes" in screen.text
        await pilot.press("escape")
        assert screen.app.screen is screen.main


@pytest.mark.parametrize(("pick", "expected"), [("both", (0.9, 0.75)), ("mine", (1.0, 0.75)), ("theirs", (0.9, 0.8))])
async def test_config_changed_on_disk_offers_three_versions(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, pick: str, expected: tuple[float, float]
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        shown = await form(screen, pilot)
        go(shown, "threshold", "response_match_score")
        await pilot.press("-")
        file.write_text(TEXT.replace('"threshold": 1.0', '"threshold": 0.9'), encoding="utf-8")
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "was changed on disk" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: "not saved: your changes are still here" in screen.text)
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "was changed on disk" in screen.text)
        await pilot.press(*f"{pick}:", "enter")
        words = "kept test_config.json as it is on disk" if pick == "theirs" else "saved: test_config.json"
        await screen.until(pilot, lambda: words in screen.text)
    criteria = json.loads(file.read_text(encoding="utf-8"))["criteria"]
    assert (criteria["tool_trajectory_avg_score"]["threshold"], criteria["response_match_score"]) == expected


@pytest.mark.parametrize("is_changed_on_disk", [False, True])
async def test_moved_criterion_is_saved(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, is_changed_on_disk: bool
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        shown = await form(screen, pilot)
        go(shown, "threshold", "response_match_score")
        await pilot.press("<")
        if is_changed_on_disk:
            file.write_text(TEXT.replace('"threshold": 1.0', '"threshold": 0.9'), encoding="utf-8")
        await pilot.press("ctrl+o")
        if is_changed_on_disk:
            await screen.until(pilot, lambda: "was changed on disk" in screen.text)
            await pilot.press(*"both:", "enter")
        await screen.until(pilot, lambda: "saved: test_config.json" in screen.text)
    criteria = json.loads(file.read_text(encoding="utf-8"))["criteria"]
    assert list(criteria)[:2] == ["response_match_score", "tool_trajectory_avg_score"]
    assert criteria["tool_trajectory_avg_score"]["threshold"] == (0.9 if is_changed_on_disk else 1.0)


async def test_deleted_config_can_be_written_again(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        shown = await form(screen, pilot)
        go(shown, "threshold", "response_match_score")
        await pilot.press("-")
        file.unlink()
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "was deleted on disk" in screen.text)
        await pilot.press(*"mine", "enter")
        await screen.until(pilot, lambda: "saved" in screen.text)
    assert json.loads(file.read_text(encoding="utf-8"))["criteria"]["response_match_score"] == 0.75


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "permission denied"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
    ],
)
async def test_changes_stay_in_the_form_if_saving_fails(
    open_screen: OpenScreen,
    make_workspace: MakeWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    words: str,
) -> None:
    def fails(file: Path, content: bytes, *, known_hash: str) -> None:
        raise OSError(number, os.strerror(number), str(file))

    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        shown = await form(screen, pilot)
        go(shown, "threshold", "response_match_score")
        with monkeypatch.context() as patch:
            patch.setattr("workbench.editing.saving.replace_content", fails)
            await pilot.press("-", "ctrl+o")
            await screen.until(pilot, lambda: words in screen.text)
        assert shown.changes.content["criteria"]["response_match_score"] == 0.75
        assert file.read_text(encoding="utf-8") == TEXT
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "saved: test_config.json" in screen.text)
    assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.75,")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("back", "your changes are still here"),
        ("refused", "the rubric id `first` is used twice"),
        ("full", "the disk is full"),
    ],
)
async def test_what_was_saved_counts_if_a_later_config_is_not_saved(
    open_screen: OpenScreen,
    make_workspace: MakeWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    problem: str,
    reason: str,
) -> None:
    workspace, file = with_config(make_workspace())
    other = workspace.root / "more" / "test_config.json"
    other.parent.mkdir()
    other.write_text(TEXT, encoding="utf-8")
    theirs = CriteriaChoice(read_config(other), "test_config.json beside the evalset")
    entries = (*workspace.evalsets[:2], dataclasses.replace(workspace.evalsets[2], criteria=theirs))
    screen = open_screen(dataclasses.replace(workspace, evalsets=entries))

    def fails(path: Path, content: bytes, *, known_hash: str) -> None:
        if path == other:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        replace_content(path, content, known_hash=known_hash)

    async with screen.open((100, 40)) as pilot:
        shown = await options(screen, pilot)
        for edit in shown.edits:
            row = next(row for row in rows_of(edit.content) if row.value == 0.8)
            edit.put(row, 0.75)
        await pilot.press("o")
        shown = await options(screen, pilot)
        if problem == "back":
            other.write_text(TEXT + "\n", encoding="utf-8")
        elif problem == "full":
            monkeypatch.setattr("workbench.editing.saving.replace_content", fails)
        else:
            row = next(row for row in rows_of(shown.edits[1].content) if row.value == "second")
            shown.edits[1].put(row, "first")
        reads = screen.reads
        await pilot.press("ctrl+o")
        if problem == "back":
            await screen.until(pilot, lambda: "was changed on disk" in screen.text)
            await pilot.press("escape")
        words = f"saved: test_config.json (in the tree, u undoes); not saved: more/test_config.json: {reason}"
        await screen.until(pilot, lambda: words in " ".join(screen.text.replace("│", "").split()))
        assert screen.reads > reads
        assert [edit.pending for edit in shown.edits] == [False, True]
        assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.75,")
        assert other.read_text(encoding="utf-8").rstrip() == TEXT.rstrip()
        await pilot.press("escape")
        held = [screen.session.draft.content(path, json.loads(TEXT)) != json.loads(TEXT) for path in (file, other)]
        assert held == [False, True], "only the draft of the saved file is forgotten"


async def test_evalset_without_config_gets_a_new_config(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace()
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        screen.main.tree_view.move("down")
        screen.main.tree_view.move("down")
        shown = await form(screen, pilot)
        assert shown.changes.draft.before is None
        assert "has no config and uses the defaults" in screen.text
        await pilot.press("+", *"functional", "enter")
        await screen.until(pilot, lambda: "added: tool_trajectory_avg_score, final_response_match_v2" in screen.text)
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "saved" in screen.text)
    written = json.loads(shown.changes.draft.file.read_text(encoding="utf-8"))
    assert shown.changes.draft.file.name == "test_config.json"
    assert list(written["criteria"]) == ["tool_trajectory_avg_score", "final_response_match_v2"]


async def test_on_miss_key_in_the_config_form_says_where_recordings_are_set(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(with_config(make_workspace())[0])
    async with screen.open() as pilot:
        await form(screen, pilot)
        await pilot.press("!")
        await screen.until(pilot, lambda: "recordings belong to the options of the next run" in screen.text)


async def test_user_chooses_a_config_on_a_row_above_several_configs(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, _ = with_config(make_workspace())
    bare = CriteriaChoice(default_config(), "defaults: no test_config.json or eval_config.json")
    entries = (*workspace.evalsets[:2], dataclasses.replace(workspace.evalsets[2], criteria=bare))
    screen = open_screen(dataclasses.replace(workspace, evalsets=entries))
    async with screen.open() as pilot:
        await pilot.press("g", "c")
        await screen.until(pilot, lambda: "which criteria?" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, CriteriaScreen))


async def test_a_broken_config_says_why_it_cannot_be_edited(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, _ = with_config(make_workspace(), '{"criteria": {"safety_v1": 0.5,}}')
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        await pilot.press("c")
        await screen.until(pilot, lambda: "invalid config" in screen.text)
        assert screen.app.screen is screen.main


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
async def test_hostile_texts_are_safe_in_the_form(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, size: tuple[int, int]
) -> None:
    evil = "".join(text for text in HOSTILE if len(text) < 1000)
    rubrics = [{"rubric_id": evil, "rubric_content": {"text_property": evil}, evil: evil}] * 2
    name = "rubric_based_final_response_quality_v1"
    content = {"criteria": {evil: 0.5, name: {"threshold": 1, "rubrics": rubrics, evil: [evil]}}, evil: evil}
    workspace, _ = with_config(make_workspace(), json.dumps(content))
    screen = open_screen(workspace)
    async with screen.open(size) as pilot:
        shown = await form(screen, pilot)
        go(shown, "text", name)
        await pilot.press("l")
        for _ in range(len(shown.list.rows)):
            await pilot.press("k")
            assert not leaks(screen.text)
        go(shown, "text", name)
        await pilot.press("enter")
        assert not leaks(screen.text)


async def test_esc_warns_again_after_the_warning_disappeared(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, _ = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        shown = await form(screen, pilot)
        await pilot.press("-", "escape")
        assert "esc again discards" in screen.text
        await pilot.press("j", "escape")
        assert "esc again discards" in screen.text
        assert screen.app.screen is shown
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
