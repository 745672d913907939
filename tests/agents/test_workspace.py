"""Opening a folder, an evalset or an agent; finding and assigning agents; shared IDs."""

import json
import os
from pathlib import Path

import pytest

from tests.agents.conftest import AGENT, Tree, evalset
from workbench.agents.discovery import find_agent
from workbench.agents.workspace import (
    CriteriaChooser,
    Workspace,
    assign_agent,
    duplicate_set_ids,
    open_workspace,
)
from workbench.files.folders import make_state_dir
from workbench.files.project_root import find_root, project_around
from workbench.store.owners import StoredOwners, save_owner

_PROJECT = {
    ".git/": "",
    "shop/shop_agent/agent.py": AGENT,
    "shop/shop_agent/own.evalset.json": evalset(),
    "shop/eval/data/far.test.json": evalset(),
    "desk/agent.py": AGENT,
    "desk/desk.evalset.json": evalset(),
    "cases.json": evalset("desk"),
}


def _files(workspace: Workspace) -> list[str]:
    return [entry.relative for entry in workspace.evalsets]


@pytest.mark.parametrize(
    ("marks", "path", "root"),
    [
        ([".git/"], "a/b", "."),
        ([".git/", "a/.workbench/"], "a/b", "a"),
        ([".workbench/", "a/.git/"], "a/b", "a"),
        ([], "a/b", "a/b"),
        ([], "a/b/x.evalset.json", "a/b"),
        ([".git/"], "a/b/x.evalset.json", "."),
        ([".git/", "a/b/.git/"], "a/b", "a/b"),
    ],
)
def test_root_is_the_nearest_marked_folder(tree: Tree, marks: list[str], path: str, root: str) -> None:
    project = tree({"a/b/x.evalset.json": "{}", **dict.fromkeys(marks, "")})
    assert find_root(project / path) == project / root


@pytest.mark.parametrize(
    ("marks", "here", "path", "root"),
    [
        ([], ".", "a/b", "."),
        ([], "a", "a/b/x.evalset.json", "a"),
        ([], "c", "a/b", "a/b"),
        (["a/.workbench/"], ".", "a/b", "a"),
        ([".workbench/"], "a", "a/b", "."),
    ],
)
def test_current_folder_is_the_root_of_paths_inside_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, marks: list[str], here: str, path: str, root: str
) -> None:
    project = tree({"a/b/x.evalset.json": "{}", "c/": "", **dict.fromkeys(marks, "")})
    monkeypatch.chdir(project / here)
    assert find_root(project / path) == project / root
    assert open_workspace(project / path).root == project / root


@pytest.mark.parametrize("linked", [False, True])
def test_home_folder_is_never_the_root(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    project = tree({"a/b/x.evalset.json": "{}"})
    if linked:
        (tmp_path / "link").symlink_to(project)
    monkeypatch.setenv("HOME", str(tmp_path / "link" if linked else project))
    monkeypatch.chdir(project)
    assert find_root(Path("a/b")) == project / "a/b"


def test_project_around_a_folder_is_found_unless_the_folder_is_a_repository(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tree({".git/": "", "a/.workbench/": "", "b/.git/": "", "b/.workbench/": ""})
    assert project_around(project / "a") == project
    assert project_around(project / "b") is None
    loose = tree({"loose/a/.workbench/": ""}) / "loose"
    monkeypatch.chdir(loose)
    (project / ".git").rmdir()
    assert project_around(loose / "a") == loose


def test_root_is_found_for_a_work_tree_and_a_relative_path(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree({".git": "gitdir: /elsewhere", "a/b/": ""})
    monkeypatch.chdir(project / "a")
    assert find_root(Path("b/../b")) == project
    assert find_root(Path()) == project


def test_folder_has_its_own_evalsets_and_all_agents(tree: Tree) -> None:
    project = tree(_PROJECT)
    whole = open_workspace(project)
    assert _files(whole) == [
        "desk/desk.evalset.json",
        "shop/eval/data/far.test.json",
        "shop/shop_agent/own.evalset.json",
    ]
    assert [agent.name for agent in whole.agents] == ["desk", "shop_agent"]
    part = open_workspace(project / "shop" / "eval")
    assert (part.root, part.target) == (project, project / "shop" / "eval")
    assert _files(part) == ["shop/eval/data/far.test.json"]
    assert part.agents == whole.agents
    assert part.evalsets[0].agent == whole.agents[1]
    assert part.ignored == ()
    assert [item.path.name for item in whole.ignored] == ["cases.json"]


@pytest.mark.parametrize("path", ["shop/shop_agent", "shop/shop_agent/agent.py", "shop/shop_agent/../shop_agent"])
def test_agent_has_its_evalsets_in_any_folder(tree: Tree, path: str) -> None:
    workspace = open_workspace(tree(_PROJECT) / path)
    assert _files(workspace) == ["shop/eval/data/far.test.json", "shop/shop_agent/own.evalset.json"]
    assert workspace.target == workspace.root / "shop" / "shop_agent"


def test_evalset_of_any_name_can_be_opened(tree: Tree) -> None:
    project = tree(_PROJECT)
    workspace = open_workspace(project / "cases.json")
    assert _files(workspace) == ["cases.json"]
    entry = workspace.evalsets[0]
    assert entry.agent is not None
    assert (entry.agent.name, entry.file) == ("desk", project / "cases.json")


def test_other_python_file_opens_as_a_broken_evalset(tree: Tree) -> None:
    workspace = open_workspace(
        tree({**_PROJECT, "tools/__init__.py": "", "tools/x.test.json": "{}"}) / "tools/__init__.py"
    )
    assert _files(workspace) == ["tools/__init__.py"]
    assert workspace.evalsets[0].document.broken


def test_relative_path_is_opened(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree(_PROJECT)
    monkeypatch.chdir(project / "shop")
    workspace = open_workspace(Path("eval/data/far.test.json"))
    assert (workspace.root, _files(workspace)) == (project, ["shop/eval/data/far.test.json"])


def test_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing does not exist"):
        open_workspace(tmp_path / "nothing")


def test_requested_target_is_opened_even_if_git_ignores_it(tree: Tree) -> None:
    project = tree({**_PROJECT, ".gitignore": "build/", "build/x/a.evalset.json": evalset("desk")})
    assert _files(open_workspace(project / "build")) == ["build/x/a.evalset.json"]
    named = open_workspace(project / "build" / "x" / "a.evalset.json")
    assert named.evalsets[0].agent is not None
    assert named.evalsets[0].agent.name == "desk"


def test_path_through_a_link_equals_the_direct_path(tree: Tree) -> None:
    project = tree(_PROJECT)
    (project / "link").symlink_to(project / "shop")
    workspace = open_workspace(project / "link" / "eval")
    assert _files(workspace) == ["shop/eval/data/far.test.json"]
    assert [agent.name for agent in workspace.agents] == ["desk", "shop_agent"]


def test_link_out_of_the_project_can_be_opened(tree: Tree, tmp_path: Path) -> None:
    project = tree(_PROJECT)
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "x.evalset.json").write_text(evalset("desk"))
    (project / "link").symlink_to(shared)
    workspace = open_workspace(project / "link")
    assert _files(workspace) == ["link/x.evalset.json"]
    assert workspace.evalsets[0].agent is not None


def test_several_targets_make_one_workspace(tree: Tree) -> None:
    project = tree(_PROJECT)
    paths = [project / "desk", project / "cases.json", project / "desk" / "desk.evalset.json", project / "cases.json"]
    workspace = open_workspace(*paths)
    assert _files(workspace) == ["cases.json", "desk/desk.evalset.json"]
    assert (workspace.root, workspace.target) == (project, project)


def test_targets_may_be_in_two_projects(tree: Tree) -> None:
    tree({"a/.git/": "", "a/x/agent.py": AGENT, "a/evals/x.evalset.json": evalset()})
    project = tree({"b/.git/": "", "b/x/agent.py": AGENT, "b/evals/x.evalset.json": evalset(), "c/agent.py": AGENT})
    workspace = open_workspace(project / "a" / "evals", project / "b" / "evals")
    assert workspace.root == project
    assert _files(workspace) == ["a/evals/x.evalset.json", "b/evals/x.evalset.json"]
    assert [entry.agent.name for entry in workspace.evalsets if entry.agent] == ["a/x", "b/x"]


def test_agent_may_be_above_an_unmarked_root(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree({"desk/agent.py": AGENT, "desk/eval/x.test.json": evalset(), "evals/y.test.json": evalset()})
    held = open_workspace(project / "desk" / "eval" / "x.test.json")
    assert held.root == project / "desk" / "eval"
    assert [entry.agent.name for entry in held.evalsets if entry.agent] == ["desk"]
    beside = open_workspace(project / "evals")
    assert beside.evalsets[0].agent is None
    assert "no agent was found" in beside.evalsets[0].agent_reason
    # The current folder counts, and so does the folder of a pyproject.toml.
    monkeypatch.chdir(project)
    here = open_workspace(Path("evals"))
    assert here.root == project
    assert here.evalsets[0].agent is not None
    monkeypatch.undo()
    tree({"pyproject.toml": ""})
    assert open_workspace(project / "evals").evalsets[0].agent is not None


def test_stored_answers_of_the_project_are_read(tree: Tree) -> None:
    files = {"a/agent.py": AGENT, "b/agent.py": AGENT, "evals/x.evalset.json": evalset(), ".workbench/": ""}
    project = tree(files)
    assert open_workspace(project).evalsets[0].agent is None
    make_state_dir(project / ".workbench")
    save_owner(project / ".workbench", "evals/x.evalset.json", project / "b", project)
    chosen = open_workspace(project).evalsets[0].agent
    assert chosen is not None
    assert chosen.name == "b"
    assert open_workspace(project, stored_owners=StoredOwners()).evalsets[0].agent is None


def test_given_config_applies_to_all_evalsets(tree: Tree) -> None:
    project = tree({**_PROJECT, "desk/test_config.json": '{"criteria": {"response_match_score": 0.1}}'})
    config = tree({"strict.json": '{"criteria": {"response_match_score": 1}}'}) / "strict.json"
    workspace = open_workspace(project, config=config)
    assert {entry.criteria.config.path for entry in workspace.evalsets} == {config}


def test_find_agent_accepts_a_folder_or_its_file(tree: Tree) -> None:
    project = tree({**_PROJECT, "desk/__init__.py": "from . import agent", "yaml/root_agent.yaml": ""})
    agents = open_workspace(project / "desk").agents
    desk = agents[0]
    (project / "alias").symlink_to(project / "desk")
    for path in ("desk", "desk/__init__.py", "desk/agent.py", "alias"):
        assert find_agent(project / path, agents) is desk, path
    outside = find_agent(project / "shop" / "shop_agent")
    assert outside is not None
    assert outside.folder == project / "shop" / "shop_agent"
    assert find_agent(project / "yaml" / "root_agent.yaml") is not None
    for path in ("shop", "cases.json", "desk/desk.evalset.json", "missing"):
        assert find_agent(project / path, agents) is None, path


def test_assign_agent_gives_all_evalsets_to_it(tree: Tree, tmp_path: Path) -> None:
    project = tree(_PROJECT)
    workspace = open_workspace(project / "shop")
    desk = find_agent(project / "desk", workspace.agents)
    assert desk is not None
    given = assign_agent(workspace, desk)
    assert {entry.agent for entry in given.evalsets} == {desk}
    assert {entry.agent_reason for entry in given.evalsets} == {"named on the command line"}
    assert given.agents == workspace.agents
    other = tmp_path / "elsewhere" / "desk"
    other.mkdir(parents=True)
    (other / "agent.py").write_text(AGENT)
    stranger = find_agent(other, workspace.agents)
    assert stranger is not None
    added = assign_agent(workspace, stranger)
    assert [agent.name for agent in added.agents] == ["desk", "shop_agent", other.as_posix()]
    assert {entry.agent.name for entry in added.evalsets if entry.agent} == {other.as_posix()}


def test_shared_eval_set_ids_are_found(tree: Tree) -> None:
    project = tree(
        {**_PROJECT, "desk/second.evalset.json": evalset(), "desk/third.evalset.json": evalset(None, "third")}
    )
    shared = duplicate_set_ids(open_workspace(project))
    assert {key: [entry.relative for entry in entries] for key, entries in shared.items()} == {
        ("desk", "set"): ["desk/desk.evalset.json", "desk/second.evalset.json"],
        ("shop_agent", "set"): ["shop/eval/data/far.test.json", "shop/shop_agent/own.evalset.json"],
    }


def test_broken_definition_is_always_reported(tree: Tree) -> None:
    project = tree({**_PROJECT, "shop/shop_agent/agent.py": "def (:", "other/.hidden/": ""})
    workspace = open_workspace(project / "desk")
    assert [item.path for item in workspace.ignored] == [project / "shop" / "shop_agent" / "agent.py"]


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


def test_empty_criteria_are_not_replaced_by_defaults(tree: Tree) -> None:
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
