"""The criteria of the run to come: what is changed, and that nothing else is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.model.criteria import read_config
from workbench.ui.draft import Draft, Setting, configs, next_match_type, raised

CONFIG = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "IN_ORDER", "mine": 3},
        "response_match_score": 0.8,
        "safety_v1": 0.5,
    }
}


@pytest.fixture
def choice(tmp_path: Path) -> CriteriaChoice:
    file = tmp_path / "test_config.json"
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    return CriteriaChoice(read_config(file), "test_config.json beside the evalset")


def named(draft: Draft, choice: CriteriaChoice, name: str) -> Setting:
    return next(setting for setting in draft.settings(choice.config) if setting.name == name)


def test_the_settings_are_those_of_the_file_in_its_order(choice: CriteriaChoice) -> None:
    settings = Draft().settings(choice.config)
    assert [(setting.name, setting.on, setting.threshold, setting.match_type) for setting in settings[:3]] == [
        ("tool_trajectory_avg_score", True, 1.0, "IN_ORDER"),
        ("response_match_score", True, 0.8, None),
        ("safety_v1", True, 0.5, None),
    ]
    assert not any(setting.on for setting in settings[3:])


def test_an_untouched_draft_gives_the_same_choice(choice: CriteriaChoice) -> None:
    assert Draft().apply(choice) is choice


def test_changes_reach_the_criteria_and_the_reason(choice: CriteriaChoice) -> None:
    draft = Draft()
    draft.change(choice.config, replace(named(draft, choice, "safety_v1"), on=False))
    draft.change(choice.config, replace(named(draft, choice, "response_match_score"), threshold=0.3))
    draft.change(choice.config, next_match_type(named(draft, choice, "tool_trajectory_avg_score")))
    applied = draft.apply(choice)
    assert [(item.name, item.threshold, item.value, item.options) for item in applied.config.criteria] == [
        (
            "tool_trajectory_avg_score",
            1.0,
            {"threshold": 1.0, "match_type": "ANY_ORDER", "mine": 3},
            {"match_type": "ANY_ORDER", "mine": 3},
        ),
        ("response_match_score", 0.3, 0.3, {}),
    ]
    assert applied.changed == (
        "tool_trajectory_avg_score ≥ 1, ANY_ORDER instead of IN_ORDER",
        "response_match_score ≥ 0.3 instead of 0.8",
        "safety_v1 off",
    )
    assert applied.reason == f"test_config.json beside the evalset; changed for this run: {', '.join(applied.changed)}"
    assert choice.changed == ()


def test_what_is_as_in_the_file_is_no_change(choice: CriteriaChoice) -> None:
    draft = Draft()
    setting = named(draft, choice, "response_match_score")
    draft.change(choice.config, raised(setting, 1))
    assert not draft.empty
    draft.change(choice.config, raised(named(draft, choice, "response_match_score"), -1))
    assert draft.empty


def test_changes_belong_to_one_config(choice: CriteriaChoice, tmp_path: Path) -> None:
    other_file = tmp_path / "eval_config.json"
    other_file.write_text(json.dumps({"criteria": {"response_match_score": 0.8}}), encoding="utf-8")
    other = CriteriaChoice(read_config(other_file), "another")
    draft = Draft()
    draft.change(choice.config, replace(named(draft, choice, "response_match_score"), on=False))
    assert draft.apply(other) is other
    assert configs([choice, other, choice]) == [choice, other]


def test_a_criterion_can_be_added(choice: CriteriaChoice, tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    file.write_text('{"criteria": {}}', encoding="utf-8")
    empty = CriteriaChoice(read_config(file), "none")
    draft = Draft()
    draft.change(empty.config, replace(named(draft, empty, "response_match_score"), on=True))
    (criterion,) = draft.apply(empty).config.criteria
    assert (criterion.name, criterion.threshold) == ("response_match_score", 0.8)
    assert draft.apply(empty).changed == ("added response_match_score ≥ 0.8",)


def test_a_run_uses_up_the_changes_that_it_was_made_with(choice: CriteriaChoice) -> None:
    draft = Draft()
    draft.change(choice.config, replace(named(draft, choice, "response_match_score"), threshold=0.3))
    draft.change(choice.config, replace(named(draft, choice, "safety_v1"), on=False))
    in_use = draft.copy()
    draft.change(choice.config, replace(named(draft, choice, "response_match_score"), threshold=0.4))
    draft.used(in_use)
    assert [setting.name for setting in draft.changed(choice.config)] == ["response_match_score"]
    assert named(draft, choice, "response_match_score").threshold == 0.4


def test_steps_stay_on_the_grid_and_above_nothing() -> None:
    setting = Setting("x", True, 0.82, None, True)
    assert raised(setting, 1).threshold == 0.85
    assert raised(setting, -1).threshold == 0.75
    assert raised(replace(setting, threshold=0.05), -5).threshold == 0.0
    assert raised(replace(setting, threshold=1.0), 1).threshold == 1.05
