"""Criteria that are to stay: written into the config they came from, or into a new one."""

import dataclasses
import json
from pathlib import Path

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen
from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.workspace import Workspace
from workbench.authoring.saving import Saver
from workbench.model.criteria import default_config, read_config
from workbench.ui.draft import Draft, Setting
from workbench.ui.saving import save


@pytest.fixture
def saver(tmp_path_factory: pytest.TempPathFactory) -> Saver:
    return Saver(tmp_path_factory.mktemp("state"))


TEXT = '{\n  "criteria": {\n    "response_match_score": 0.8,   "safety_v1": 0.5\n  }\n}\n'


def with_config(workspace: Workspace, text: str = TEXT) -> tuple[Workspace, Path]:
    """The workspace with a config for all its evalsets."""
    file = workspace.root / "test_config.json"
    file.write_text(text, encoding="utf-8")
    choice = CriteriaChoice(read_config(file), "test_config.json")
    entries = tuple(dataclasses.replace(entry, criteria=choice) for entry in workspace.evalsets)
    return dataclasses.replace(workspace, evalsets=entries), file


def lowered(draft: Draft, workspace: Workspace) -> None:
    config = workspace.evalsets[0].criteria.config
    setting = next(one for one in draft.settings(config) if one.name == "response_match_score")
    draft.change(config, dataclasses.replace(setting, threshold=0.6))


def test_only_the_change_is_written(shop: Workspace, saver: Saver) -> None:
    workspace, file = with_config(shop)
    draft = Draft()
    lowered(draft, workspace)
    assert save(workspace.evalsets, draft, saver) == [file]
    assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.6,")
    assert draft.empty


def test_the_defaults_become_a_file_beside_the_evalset(shop: Workspace, saver: Saver) -> None:
    draft = Draft()
    lowered(draft, shop)
    (file,) = save(shop.evalsets[:2], draft, saver)
    assert file == shop.evalsets[0].file.parent / "test_config.json"
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.6}
    }


def test_defaults_of_several_folders_are_not_guessed(shop: Workspace, saver: Saver) -> None:
    draft = Draft()
    lowered(draft, shop)
    with pytest.raises(ValueError, match="2 folders"):
        save(shop.evalsets, draft, saver)
    assert not draft.empty


def test_nothing_changed_writes_nothing(shop: Workspace, saver: Saver) -> None:
    workspace, file = with_config(shop)
    assert save(workspace.evalsets, Draft(), saver) == []
    assert file.read_text(encoding="utf-8") == TEXT


def test_a_file_without_criteria_gets_the_ones_that_hold(shop: Workspace, saver: Saver) -> None:
    workspace, file = with_config(shop, '{\n  "user_simulator_config": {"model": "heuristic"}\n}\n')
    config = dataclasses.replace(workspace.evalsets[0].criteria.config, criteria=default_config().criteria)
    choice = CriteriaChoice(config, "defaults")
    workspace = dataclasses.replace(workspace, evalsets=(dataclasses.replace(workspace.evalsets[0], criteria=choice),))
    draft = Draft()
    lowered(draft, workspace)
    save(workspace.evalsets, draft, saver)
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "user_simulator_config": {"model": "heuristic"},
        "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.6},
    }


def test_way_of_comparing_on_and_off(shop: Workspace, saver: Saver) -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "matchType": "EXACT"}, "safety_v1": 0.5}}'
    workspace, file = with_config(shop, text)
    draft, config = Draft(), workspace.evalsets[0].criteria.config
    draft.change(config, Setting("tool_trajectory_avg_score", True, 1.0, "IN_ORDER", True))
    draft.change(config, Setting("safety_v1", False, 0.5, None, True))
    save(workspace.evalsets, draft, saver)
    after = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "matchType": "IN_ORDER"}}}'
    assert file.read_text(encoding="utf-8") == after
    saver.undo()
    assert file.read_text(encoding="utf-8") == text


def test_a_change_taken_back_is_none(shop: Workspace) -> None:
    workspace, _ = with_config(shop)
    draft = Draft()
    lowered(draft, workspace)
    config = workspace.evalsets[0].criteria.config
    draft.change(config, Setting("response_match_score", True, 0.8, None, True))
    assert draft.changed(config) == []


async def test_s_saves_and_the_folder_is_read_again(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        await pilot.press("o", "s")
        await screen.until(pilot, lambda: "nothing is changed" in screen.text)
        await pilot.press(*"0.55", "enter", "s")
        await screen.until(pilot, lambda: screen.reads == 2)
        assert file.read_text(encoding="utf-8") == TEXT.replace("0.8,", "0.55,")
        assert screen.session.draft.empty
        assert not screen.started


async def test_what_cannot_be_saved_says_why(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace())
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        file.write_text("[/oops] not json", encoding="utf-8")
        await pilot.press("o", "-", "s")
        words = "it is not in order, so nothing is changed in it"
        await screen.until(pilot, lambda: words in " ".join(screen.text.replace("│", " ").split()))
        assert file.read_text(encoding="utf-8") == "[/oops] not json"
