"""Criteria of the next run that are saved into their config, or into a new one."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.agents.workspace import CriteriaChoice, Workspace
from workbench.files.criteria import default_config, read_config

TEXT = '{\n  "criteria": {\n    "response_match_score": 0.8,   "safety_v1": 0.5\n  }\n}\n'


def with_config(workspace: Workspace, text: str = TEXT) -> tuple[Workspace, Path]:
    """Return the workspace with one config for all its evalsets, and its file."""
    file = workspace.root / "test_config.json"
    file.write_text(text, encoding="utf-8")
    choice = CriteriaChoice(read_config(file), "test_config.json")
    entries = tuple(dataclasses.replace(entry, criteria=choice) for entry in workspace.evalsets)
    return dataclasses.replace(workspace, evalsets=entries), file


async def saved(screen: Screen, pilot: Any, *keys: str) -> None:
    """Open the options, press keys, and save."""
    await pilot.press("o", *keys, "ctrl+o")
    await screen.until(pilot, lambda: "test_config.json (in the tree, u undoes)" in screen.text)


async def test_saving_writes_only_the_changed_value(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        await saved(screen, pilot, "-", "-")
        assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.7,")
        assert screen.session.draft.empty


async def test_saved_defaults_create_a_config_beside_the_evalset(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace())
    async with screen.open() as pilot:
        await pilot.press("j", "j")
        await saved(screen, pilot, "j", "-")
    file = screen.workspace.evalsets[0].file.parent / "test_config.json"
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.75}
    }


async def test_defaults_are_saved_for_one_folder_at_a_time(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace())
    async with screen.open() as pilot:
        await pilot.press("g", "a", "o", "-", "ctrl+o")
        words = "the evalsets are in 2 folders: save for one folder at a time"
        await screen.until(pilot, lambda: words in screen.text)
        await pilot.press("o")
        assert not screen.session.draft.empty


async def test_file_without_criteria_gets_the_default_criteria(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace(), '{\n  "user_simulator_config": {"model": "gemini-2.5-pro"}\n}\n')
    config = dataclasses.replace(workspace.evalsets[0].criteria.config, criteria=default_config().criteria)
    choice = CriteriaChoice(config, "defaults")
    entries = tuple(dataclasses.replace(entry, criteria=choice) for entry in workspace.evalsets)
    screen = open_screen(dataclasses.replace(workspace, evalsets=entries))
    async with screen.open() as pilot:
        await saved(screen, pilot, "j", "-")
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "user_simulator_config": {"model": "gemini-2.5-pro"},
        "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.75},
    }


async def test_match_type_and_turned_off_criteria_keep_the_spelling_of_the_file(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "matchType": "EXACT"}, "safety_v1": 0.5}}'
    workspace, file = with_config(make_workspace(), text)
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        await saved(screen, pilot, "l", "j", "space", "h", "h", "j", "space")
        after = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "matchType": "IN_ORDER"}}}'
        assert file.read_text(encoding="utf-8") == after
        await pilot.press("escape", "u")
        await screen.until(pilot, lambda: file.read_text(encoding="utf-8") == text)


async def test_ctrl_o_saves_and_reads_the_folder_again(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        await pilot.press("o", "ctrl+o")
        await screen.until(pilot, lambda: "no changes" in screen.text)
        await pilot.press(*"0.55", "enter", "ctrl+o")
        await screen.until(pilot, lambda: screen.reads == 2)
        assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.55,")
        assert screen.session.draft.empty
        assert not screen.started


async def test_unreadable_config_is_reported_and_left_unchanged(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        file.write_text("[/oops] not json", encoding="utf-8")
        await pilot.press("o")
        words = "file left unchanged"
        await screen.until(pilot, lambda: words in " ".join(screen.text.replace("│", " ").split()))
        assert file.read_text(encoding="utf-8") == "[/oops] not json"
