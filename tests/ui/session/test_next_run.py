"""Criteria of the next run: edits change what they name and nothing else."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.workspace import CriteriaChoice
from workbench.editing.criteria_change import with_value, without
from workbench.files.criteria import default_config, read_config
from workbench.ui.session.next_run import Draft

CONFIG: dict[str, Any] = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "IN_ORDER", "mine": 3},
        "response_match_score": 0.8,
        "safety_v1": 0.5,
    }
}
JUDGED = "final_response_match_v2"


def choice_of(folder: Path, content: Any) -> CriteriaChoice:
    file = folder / "test_config.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return CriteriaChoice(read_config(file), "test_config.json beside the evalset")


@pytest.fixture
def choice(tmp_path: Path) -> CriteriaChoice:
    return choice_of(tmp_path, CONFIG)


def draft_with(choice: CriteriaChoice, before: Any, after: Any) -> Draft:
    draft = Draft()
    draft.change(choice.config.path, before, after)
    return draft


def test_draft_without_edits_returns_the_same_criteria(choice: CriteriaChoice) -> None:
    assert Draft().apply(choice) is choice


def test_edits_of_the_draft_change_the_criteria_and_their_reason(choice: CriteriaChoice) -> None:
    content = without(CONFIG, ("criteria", "safety_v1"))
    content = with_value(content, ("criteria", "response_match_score"), 0.3)
    content = with_value(content, ("criteria", "tool_trajectory_avg_score", "matchType"), "ANY_ORDER")
    applied = draft_with(choice, CONFIG, content).apply(choice)
    assert [(item.name, item.threshold, item.value, item.options) for item in applied.config.criteria] == [
        (
            "tool_trajectory_avg_score",
            1.0,
            {"threshold": 1.0, "matchType": "ANY_ORDER", "mine": 3},
            {"match_type": "ANY_ORDER", "mine": 3},
        ),
        ("response_match_score", 0.3, 0.3, {}),
    ]
    assert set(applied.changed) == {
        "tool_trajectory_avg_score ≥ 1, match_type ANY_ORDER instead of IN_ORDER",
        "response_match_score ≥ 0.3 instead of 0.8",
        "safety_v1 off",
    }
    assert applied.reason == f"test_config.json beside the evalset; changed for this run: {', '.join(applied.changed)}"
    assert choice.changed == ()


def test_value_equal_to_the_file_removes_the_edit(choice: CriteriaChoice) -> None:
    draft = draft_with(choice, CONFIG, with_value(CONFIG, ("criteria", "response_match_score"), 0.85))
    assert not draft.empty
    draft.change(choice.config.path, CONFIG, copy.deepcopy(CONFIG))
    assert draft.empty


def test_edits_belong_to_one_config(choice: CriteriaChoice, tmp_path: Path) -> None:
    other_file = tmp_path / "eval_config.json"
    other_file.write_text(json.dumps({"criteria": {"response_match_score": 0.8}}), encoding="utf-8")
    other = CriteriaChoice(read_config(other_file), "another")
    draft = draft_with(choice, CONFIG, without(CONFIG, ("criteria", "response_match_score")))
    assert draft.apply(other) is other


def test_edits_stay_when_another_part_of_the_file_changes(choice: CriteriaChoice, tmp_path: Path) -> None:
    draft = draft_with(choice, CONFIG, with_value(CONFIG, ("criteria", "response_match_score"), 0.3))
    now = choice_of(tmp_path, with_value(CONFIG, ("criteria", "safety_v1"), 0.9))
    applied = {item.name: item.threshold for item in draft.apply(now).config.criteria}
    assert applied == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.3, "safety_v1": 0.9}


@pytest.mark.parametrize("content", [{"criteria": {}}, {"criteria": {"safety_v1": 0.5}, "custom_metrics": {}}])
def test_a_criterion_can_be_added(tmp_path: Path, content: Any) -> None:
    choice = choice_of(tmp_path, content)
    after = {**content, "criteria": {**content["criteria"], "response_match_score": 0.8}}
    applied = draft_with(choice, content, after).apply(choice)
    assert applied.config.criteria[-1].threshold == 0.8
    assert applied.changed == ("added response_match_score ≥ 0.8",)


def test_default_criteria_can_be_changed_for_the_next_run() -> None:
    defaults = CriteriaChoice(default_config(), "defaults")
    content = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
    draft = draft_with(defaults, content, without(content, ("criteria", "tool_trajectory_avg_score")))
    applied = draft.apply(defaults)
    assert [item.name for item in applied.config.criteria] == ["response_match_score"]
    assert applied.config.path is None


@pytest.mark.parametrize(
    ("value", "after"),
    [
        (0.5, {"threshold": 0.5, "judge_model_options": {"judge_model": "gemini-2.5-pro"}}),
        (
            {"threshold": 0.5, "judgeModelOptions": {"numSamples": 5}},
            {"threshold": 0.5, "judgeModelOptions": {"judgeModel": "gemini-2.5-pro", "numSamples": 5}},
        ),
    ],
)
def test_changed_judge_is_used_and_listed_as_a_change(tmp_path: Path, value: Any, after: Any) -> None:
    choice = choice_of(tmp_path, {"criteria": {JUDGED: value}})
    applied = draft_with(choice, {"criteria": {JUDGED: value}}, {"criteria": {JUDGED: after}}).apply(choice)
    (criterion,) = applied.config.criteria
    assert criterion.options["judge_model_options"]["judge_model"] == "gemini-2.5-pro"
    assert applied.changed == (f"{JUDGED} ≥ 0.5, judge_model gemini-2.5-pro instead of gemini-2.5-flash",)


def test_edits_used_by_a_run_leave_the_draft_and_later_ones_stay(choice: CriteriaChoice) -> None:
    draft = draft_with(choice, CONFIG, without(CONFIG, ("criteria", "safety_v1")))
    in_use = draft.copy()
    draft.drop_used(in_use)
    assert draft.empty
    draft.change(choice.config.path, CONFIG, with_value(CONFIG, ("criteria", "response_match_score"), 0.4))
    draft.drop_used(in_use)
    assert not draft.empty, "what was changed since is for the next run"


def test_moved_criteria_are_an_edit_of_the_next_run(choice: CriteriaChoice) -> None:
    names = list(reversed(CONFIG["criteria"]))
    moved = {**CONFIG, "criteria": {name: CONFIG["criteria"][name] for name in names}}
    applied = draft_with(choice, CONFIG, moved).apply(choice)
    assert [item.name for item in applied.config.criteria] == names
    assert applied.changed == ("the order of the criteria",)
    draft = draft_with(choice, CONFIG, moved)
    in_use = draft.copy()
    draft.change(choice.config.path, CONFIG, with_value(moved, ("criteria", names[0]), 0.4))
    after = with_value(CONFIG, ("criteria", names[0]), 0.4)
    in_use.change(choice.config.path, CONFIG, after)
    draft.drop_used(in_use)
    assert not draft.empty, "the order was changed since"
