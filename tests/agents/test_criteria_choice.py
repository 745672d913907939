"""The choice of a criteria config, and its reason."""

import json
import os
from pathlib import Path

import pytest

from tests.agents.conftest import Tree
from workbench.agents.workspace.workspace import CriteriaChooser

_CONFIG = json.dumps({"criteria": {"response_match_score": 0.5}})
_DEFAULTS = [("tool_trajectory_avg_score", 1.0), ("response_match_score", 0.8)]


@pytest.mark.parametrize(
    ("files", "config", "reason"),
    [
        (["d/e/test_config.json", "d/test_config.json"], "d/e/test_config.json", "test_config.json beside the evalset"),
        (["d/e/eval_config.json", "d/test_config.json"], "d/e/eval_config.json", "eval_config.json beside the evalset"),
        (
            ["d/e/eval_config.json", "d/e/test_config.json"],
            "d/e/test_config.json",
            "test_config.json beside the evalset",
        ),
        (["d/test_config.json", "test_config.json"], "d/test_config.json", "test_config.json in d/, above the evalset"),
        (["eval_config.json"], "eval_config.json", "eval_config.json in the root, above"),
        (
            ["../test_config.json", "d/e/test_config.json/"],
            None,
            "defaults: no test_config.json or eval_config.json beside",
        ),
        ([], None, "defaults: no test_config.json or eval_config.json beside the evalset or above it"),
    ],
)
def test_nearest_config_is_chosen(tree: Tree, files: list[str], config: str | None, reason: str) -> None:
    project = tree({"d/e/": "", **dict.fromkeys(files, _CONFIG)})
    choice = CriteriaChooser(project, None).choose(project / "d" / "e" / "x.evalset.json")
    assert choice.config.path == (project / config if config else None)
    assert choice.reason.startswith(reason)
    if config is None:
        assert [(item.name, item.threshold) for item in choice.config.criteria] == _DEFAULTS


@pytest.mark.parametrize("kind", ["link", "loop", "pipe", "device"])
def test_config_that_cannot_be_read_is_not_replaced_by_another(tree: Tree, kind: str) -> None:
    project = tree({"d/": "", "test_config.json": _CONFIG})
    file = project / "d/test_config.json"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to({"link": "nowhere", "loop": file.name, "device": "/dev/zero"}[kind])
    choice = CriteriaChooser(project, None).choose(project / "d/x.evalset.json")
    assert choice.config.path == file
    assert choice.config.broken


def test_given_config_wins(tree: Tree) -> None:
    project = tree({"test_config.json": _CONFIG, "other.json": '{"criteria": {"response_match_score": 0.1}}'})
    choice = CriteriaChooser(project, project / "other.json").choose(project / "x.evalset.json")
    assert [item.threshold for item in choice.config.criteria] == [0.1]
    assert choice.reason == f"given: {project / 'other.json'}"


def test_config_without_criteria_uses_default_criteria_and_keeps_other_settings(tree: Tree) -> None:
    simulator = {"user_simulator_config": {"type": "llm_backed", "model": "m"}}
    project = tree({"test_config.json": json.dumps(simulator)})
    choice = CriteriaChooser(project, None).choose(project / "x.evalset.json")
    assert [(item.name, item.threshold) for item in choice.config.criteria] == _DEFAULTS
    assert choice.config.path == project / "test_config.json"
    assert choice.reason == 'defaults: no "criteria" in the config (test_config.json beside the evalset)'


def test_empty_criteria_mean_none(tree: Tree) -> None:
    project = tree({"test_config.json": '{"criteria": {}}'})
    choice = CriteriaChooser(project, None).choose(project / "x.evalset.json")
    assert choice.config.criteria == ()
    assert choice.reason == "test_config.json beside the evalset"


@pytest.mark.parametrize("text", ["{", "[]", '{"criteria": {"response_match_score": null}}'])
def test_broken_config_is_chosen_and_reported(tree: Tree, text: str) -> None:
    project = tree({"test_config.json": _CONFIG, "d/test_config.json": text})
    choice = CriteriaChooser(project, None).choose(project / "d" / "x.evalset.json")
    assert choice.config.broken
    assert choice.config.path == project / "d" / "test_config.json"


def test_missing_given_config_is_an_error(tree: Tree) -> None:
    project = tree({})
    assert CriteriaChooser(project, project / "gone.json").choose(project / "x.evalset.json").config.broken


def test_evalset_outside_the_root_uses_only_its_own_folder(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "test_config.json").write_text(_CONFIG)
    far = tmp_path / "far"
    far.mkdir()
    chooser = CriteriaChooser(tree({}), None)
    assert chooser.choose(far / "x.evalset.json").config.path is None
    assert chooser.choose(tmp_path / "x.evalset.json").config.path == tmp_path / "test_config.json"


def test_each_config_is_read_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree({"test_config.json": _CONFIG})
    chooser = CriteriaChooser(project, None)
    assert chooser.choose(project / "a.evalset.json") is chooser.choose(project / "b.test.json")


@pytest.mark.parametrize(
    ("files", "given", "criteria", "reason"),
    [
        ({}, None, [], "none: no eval_config.yaml beside the dataset or above it, and no test_config.json beside it"),
        ({"eval_config.json": _CONFIG, "d/test_config.json": "{}"}, None, [], "test_config.json beside"),
        ({"test_config.json": _CONFIG}, None, [], "none: "),
        (
            {"eval_config.yaml": "metrics_to_run: [safety]", "d/test_config.json": _CONFIG},
            None,
            [("safety", 0.0), ("response_match_score", 0.5)],
            "eval_config.yaml in the root, above the dataset and test_config.json beside the dataset",
        ),
        ({"other.yaml": "metrics_to_run: [bleu]"}, "other.yaml", [("bleu", 0.0)], "given: "),
        ({"other.json": "{}"}, "other.json", [], "given: "),
    ],
)
def test_dataset_has_its_metrics_and_the_criteria_beside_it(
    tree: Tree, files: dict[str, str], given: str | None, criteria: list[tuple[str, float]], reason: str
) -> None:
    project = tree({"d/": "", **files})
    choice = CriteriaChooser(project, project / given if given else None).choose(project / "d/x.json", is_dataset=True)
    assert [(item.name, item.threshold) for item in choice.config.criteria] == criteria
    assert choice.reason.startswith(reason)
