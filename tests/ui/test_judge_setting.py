"""The judge of the run to come: chosen for once, or written into the file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.model.criteria import read_config
from workbench.ui.draft import Draft, Setting
from workbench.ui.judge_setting import JudgeSetting, asked, fault_of, judge_setting
from workbench.ui.saving import drafted

NAME = "final_response_match_v2"


def choice_of(folder: Path, value: Any, name: str = NAME) -> CriteriaChoice:
    file = folder / "test_config.json"
    file.write_text(json.dumps({"criteria": {name: value}}), encoding="utf-8")
    return CriteriaChoice(read_config(file), "test_config.json beside the evalset")


def changed(choice: CriteriaChoice, judge: JudgeSetting, name: str = NAME) -> tuple[Draft, Setting]:
    """A draft with another judge for the criterion."""
    draft = Draft()
    setting = next(one for one in draft.settings(choice.config) if one.name == name)
    draft.change(choice.config, replace(setting, judge=judge))
    return draft, setting


def test_the_defaults_are_those_of_adk() -> None:
    assert judge_setting(NAME, {}) == JudgeSetting("gemini-2.5-flash", 5)
    assert judge_setting("hallucinations_v1", {}) == JudgeSetting("gemini-2.5-flash", None)
    assert judge_setting("response_match_score", {}) is None
    assert judge_setting(NAME, {"judge_model_options": {"num_samples": "many", "judge_model": 3}}) == JudgeSetting(
        "gemini-2.5-flash", 5
    )


def test_it_is_asked_at_least_once() -> None:
    assert asked(JudgeSetting("a/b", 2), -5) == JudgeSetting("a/b", 1)
    assert asked(JudgeSetting("a/b", None), 1) == JudgeSetting("a/b", None)


@pytest.mark.parametrize(
    ("value", "after"),
    [
        (0.5, {"threshold": 0.5, "judge_model_options": {"judge_model": "heuristic"}}),
        (
            {"threshold": 0.5, "judgeModelOptions": {"judgeModel": "gemini-x", "numSamples": 5, "x": 2}},
            {
                "threshold": 0.5,
                "judgeModelOptions": {"judgeModel": "heuristic", "numSamples": 5, "x": 2},
            },
        ),
        (
            {"threshold": 0.5, "judge_model_options": {"num_samples": 5}, "mine": 1},
            {"threshold": 0.5, "judge_model_options": {"num_samples": 5, "judge_model": "heuristic"}, "mine": 1},
        ),
    ],
)
def test_another_model_reaches_the_run_and_the_file_in_its_spelling(tmp_path: Path, value: Any, after: Any) -> None:
    choice = choice_of(tmp_path, value)
    draft, _ = changed(choice, JudgeSetting("heuristic", 5))
    applied = draft.apply(choice)
    (criterion,) = applied.config.criteria
    assert criterion.options["judge_model_options"]["judge_model"] == "heuristic"
    assert criterion.value == after
    assert f"{NAME} ≥ 0.5, judge heuristic ×5 instead of" in applied.reason
    written = drafted({"criteria": {NAME: value}}, draft.changed(choice.config))
    assert written == {"criteria": {NAME: after}}


def test_a_judge_that_is_there_already_is_no_change(tmp_path: Path) -> None:
    choice = choice_of(tmp_path, {"threshold": 0.5, "judge_model_options": {"num_samples": 3}})
    draft, setting = changed(choice, JudgeSetting("gemini-2.5-flash", 3))
    assert draft.empty
    assert setting.judge == JudgeSetting("gemini-2.5-flash", 3)


def test_a_criterion_that_is_added_says_its_judge_only_where_it_is_another(tmp_path: Path) -> None:
    choice = choice_of(tmp_path, 0.8, "response_match_score")
    draft, setting = changed(choice, JudgeSetting("gemini-2.5-flash", 2))
    draft.change(choice.config, replace(setting, on=True, judge=JudgeSetting("gemini-2.5-flash", 2)))
    written = drafted({"criteria": {"response_match_score": 0.8}}, draft.changed(choice.config))
    assert written["criteria"][NAME] == {"threshold": 0.8, "judge_model_options": {"num_samples": 2}}


@pytest.mark.parametrize("name", ["heuristic", "gemini-2.5-pro", "openai/gpt-5", "python:a.b:c"])
def test_names_of_judges(name: str) -> None:
    assert fault_of(name) == ""


@pytest.mark.parametrize("name", ["", "gpt 5", "python:x"])
def test_what_is_no_judge_is_said(name: str) -> None:
    assert fault_of(name)
