"""The judge of a criterion in the criteria editor."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen
from tests.ui.criteria.test_form import form, go, with_config
from workbench.agents.workspace import CriteriaChoice
from workbench.criteria.registry import descriptions
from workbench.editing.criteria_change import edit_of, open_config, read_typed, stepped
from workbench.editing.criteria_form import FormRow, rows_of
from workbench.files.criteria import read_config
from workbench.judges.base import DEFAULT_SAMPLES
from workbench.ui.criteria.changes import Addition, FormChanges
from workbench.ui.session.next_run import Draft

NAME = "final_response_match_v2"


def changes_of(folder: Path, value: Any, name: str = NAME) -> FormChanges:
    file = folder / "test_config.json"
    file.write_text(json.dumps({"criteria": {name: value}}), encoding="utf-8")
    return FormChanges(open_config(file))


def row(changes: FormChanges, field: str, name: str = NAME) -> FormRow:
    return next(one for one in rows_of(changes.content) if (one.criterion, one.field.name) == (name, field))


@pytest.mark.parametrize("name", [name for name, info in descriptions().items() if info.needs_judge])
def test_default_judge_is_that_of_adk(tmp_path: Path, name: str) -> None:
    changes = changes_of(tmp_path, 0.5, name)
    assert row(changes, "judge_model", name).field.default == "gemini-2.5-flash"
    assert not row(changes, "judge_model", name).given


def test_sample_count_is_shown_only_for_criteria_that_repeat_questions(tmp_path: Path) -> None:
    assert row(changes_of(tmp_path, 0.5), "num_samples").field.default == str(DEFAULT_SAMPLES)
    with pytest.raises(StopIteration):
        row(changes_of(tmp_path, 0.5, "hallucinations_v1"), "num_samples", "hallucinations_v1")


def test_judge_sample_count_is_at_least_one(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, {"threshold": 0.5, "judge_model_options": {"num_samples": 2}})
    for _ in range(5):
        changes.put(row(changes, "num_samples"), stepped(row(changes, "num_samples"), -0.05))
    assert row(changes, "num_samples").value == 1
    with pytest.raises(ValueError, match="num_samples must be at least 1"):
        read_typed(row(changes, "num_samples"), "0")


@pytest.mark.parametrize(
    ("value", "after"),
    [
        (0.5, {"threshold": 0.5, "judge_model_options": {"judge_model": "gemini-2.5-pro"}}),
        (
            {"threshold": 0.5, "judgeModelOptions": {"judgeModel": "gemini-x", "numSamples": 5}},
            {"threshold": 0.5, "judgeModelOptions": {"judgeModel": "gemini-2.5-pro", "numSamples": 5}},
        ),
        (
            {"threshold": 0.5, "judge_model_options": {"num_samples": 5}, "mine": 1},
            {"threshold": 0.5, "judge_model_options": {"num_samples": 5, "judge_model": "gemini-2.5-pro"}, "mine": 1},
        ),
    ],
)
def test_changed_judge_is_used_and_saved_in_the_spelling_of_the_file(tmp_path: Path, value: Any, after: Any) -> None:
    changes = changes_of(tmp_path, value)
    file = changes.draft.file
    choice = CriteriaChoice(read_config(file), "test_config.json beside the evalset")
    changes.put(row(changes, "judge_model"), "gemini-2.5-pro")
    draft = Draft()
    draft.change(file, changes.draft.content, changes.result)
    applied = draft.apply(choice)
    (criterion,) = applied.config.criteria
    assert criterion.options["judge_model_options"]["judge_model"] == "gemini-2.5-pro"
    assert criterion.value == after
    assert "judge_model gemini-2.5-pro instead of" in applied.reason
    file.write_bytes(edit_of(changes.draft, changes.result)[1])
    assert json.loads(file.read_text(encoding="utf-8")) == {"criteria": {NAME: after}}


@pytest.mark.parametrize("value", [0.5, {"threshold": 0.5, "judge_model_options": {"num_samples": 3}}])
def test_choosing_the_current_judge_changes_nothing(tmp_path: Path, value: Any) -> None:
    changes = changes_of(tmp_path, value)
    changes.put(row(changes, "judge_model"), "gemini-2.5-flash")
    changes.put(row(changes, "num_samples"), row(changes, "num_samples").value or DEFAULT_SAMPLES)
    assert not changes.pending
    assert changes.result == changes.draft.content


def test_added_criterion_writes_only_judge_options_that_differ_from_the_default(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, 0.8, "response_match_score")
    changes.add(Addition(criterion=NAME), None)
    changes.put(row(changes, "judge_model"), "gemini-2.5-flash")
    changes.put(row(changes, "num_samples"), 2)
    assert changes.result["criteria"][NAME] == {
        "threshold": descriptions()[NAME].first_threshold,
        "judge_model_options": {"num_samples": 2},
    }


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("gpt 5", "gpt 5 is not a known judge"),
        ("python:x", "python:x"),
        (" ", "the value is empty: press D to remove the field and use its default"),
    ],
)
async def test_invalid_judge_name_is_refused_and_stays_in_the_field(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, typed: str, message: str
) -> None:
    workspace, _ = with_config(make_workspace(), json.dumps({"criteria": {NAME: 0.5}}))
    screen = open_screen(workspace)
    async with screen.open((120, 40)) as pilot:
        shown = await form(screen, pilot)
        go(shown, "judge_model", NAME)
        await pilot.press("enter")
        shown.field.load_text(typed)
        await pilot.press("enter")
        await screen.until(pilot, lambda: message in str(shown.message.render()))
        assert shown.field.display
        assert shown.changes.content == shown.changes.draft.content


@pytest.mark.parametrize("typed", ["gemini-2.5-pro", "openai/gpt-5", "python:a.b:c"])
async def test_valid_judge_names_are_accepted(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, typed: str
) -> None:
    workspace, _ = with_config(make_workspace(), json.dumps({"criteria": {NAME: 0.5}}))
    screen = open_screen(workspace)
    async with screen.open((120, 40)) as pilot:
        shown = await form(screen, pilot)
        go(shown, "judge_model", NAME)
        await pilot.press("enter")
        shown.field.load_text(typed)
        await pilot.press("enter")
        assert shown.changes.content["criteria"][NAME]["judge_model_options"] == {"judge_model": typed}
