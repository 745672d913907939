"""An owner never changes silently: evalsets whose last owner is gone."""

from pathlib import Path

import pytest

from tests.agents.conftest import AGENT, Tree, evalset
from workbench.agents.workspace import EvalsetEntry, Workspace, open_workspace, owners_of
from workbench.store.owners import LastOwner, StoredOwners

IMPORTS = "from . import agent\n"


def _project(tree: Tree, *agents: str, **files: str) -> Path:
    return tree({".git/": "", **{f"{agent}/agent.py": AGENT for agent in agents}, **files})


def _entry(project: Path, relative: str, last: dict[str, LastOwner] | None = None) -> EvalsetEntry:
    workspace = open_workspace(project, stored_owners=StoredOwners({}, last or {}))
    return next(entry for entry in workspace.evalsets if entry.relative == relative)


def _reopened(project: Path, *, before: Workspace, **answers: str) -> dict[str, EvalsetEntry]:
    workspace = open_workspace(project, stored_owners=StoredOwners(answers), previous=before)
    return {entry.relative: entry for entry in workspace.evalsets}


@pytest.mark.parametrize(
    ("file", "app_name", "last"),
    [
        ("a/x.evalset.json", None, LastOwner("a", "")),
        ("a/x.evalset.json", "b", LastOwner("a", "b")),
        ("evals/x.evalset.json", "a", LastOwner("a", "a")),
        ("evals/x.evalset.json", None, LastOwner("a", "")),
        ("evals/x.evalset.json", "b", LastOwner("a", None)),
        ("b/x.evalset.json", None, LastOwner("b/inner", "")),
    ],
)
def test_evalset_has_no_agent_if_its_last_owner_is_missing(
    tree: Tree, file: str, app_name: str | None, last: LastOwner
) -> None:
    project = _project(tree, "b", **{file: evalset(app_name)})
    entry = _entry(project, file, {file: last})
    assert entry.agent is None
    assert entry.owned.lost == last.folder
    assert entry.agent_name == Path(last.folder).name
    assert "is gone" in entry.agent_reason
    assert "Near it: b" in entry.agent_reason


def test_nearby_agents_are_named(tree: Tree) -> None:
    agents = [f"agent_{number:02}" for number in range(11)]
    project = _project(tree, *agents, **{"evals/x.evalset.json": evalset()})
    assert ", ".join(agents) in _entry(project, "evals/x.evalset.json").agent_reason
    lost = _entry(project, "evals/x.evalset.json", {"evals/x.evalset.json": LastOwner("gone")})
    assert ", ".join(agents) in lost.agent_reason


def test_existing_last_owner_does_not_decide_but_is_reported(tree: Tree) -> None:
    project = _project(tree, "a", "b", **{"evals/x.evalset.json": evalset("b")})
    entry = _entry(project, "evals/x.evalset.json", {"evals/x.evalset.json": LastOwner("a", "a")})
    assert entry.agent is not None
    assert (entry.agent.name, entry.owned.before) == ("b", "a")


def test_file_that_now_names_another_agent_gets_that_agent(tree: Tree) -> None:
    project = _project(tree, "b", **{"evals/x.evalset.json": evalset("b")})
    entry = _entry(project, "evals/x.evalset.json", {"evals/x.evalset.json": LastOwner("a", "a")})
    assert entry.agent is not None
    assert (entry.agent.name, entry.owned.rule, entry.owned.before) == ("b", "app_name", "a")


def test_chosen_agent_of_an_evalset_that_lost_its_owner_is_remembered(tree: Tree) -> None:
    project = _project(tree, "b", "c", **{"b/x.evalset.json": evalset()})
    for last in (LastOwner("b/inner", ""), LastOwner("c", "")):
        stored = StoredOwners({"b/x.evalset.json": "c"}, {"b/x.evalset.json": last})
        (entry,) = open_workspace(project, stored_owners=stored).evalsets
        assert entry.agent is not None
        assert (entry.agent.name, entry.owned.rule) == ("c", "choice")


@pytest.mark.parametrize("package", ["from . import agent", "from a import agent", "import shop.a.agent"])
def test_package_that_imports_a_missing_agent_module_is_a_missing_agent(tree: Tree, package: str) -> None:
    project = _project(tree, "b", **{"a/x.evalset.json": evalset(), "a/__init__.py": f"{package}\n"})
    entry = _entry(project, "a/x.evalset.json")
    assert entry.agent is None
    assert entry.agent_reason.startswith("its agent a is gone: its __init__.py imports `agent`")


def test_missing_inner_agent_is_not_replaced_by_the_outer_agent(tree: Tree) -> None:
    project = _project(tree, "a", **{"a/inner/x.evalset.json": evalset(), "a/inner/__init__.py": IMPORTS})
    assert _entry(project, "a/inner/x.evalset.json").agent is None


def test_missing_agent_is_not_replaced_by_its_sub_agent(tree: Tree) -> None:
    files = {"a/x.evalset.json": evalset(), "a/__init__.py": IMPORTS}
    project = _project(tree, "a/sub_agents/s", **files)
    assert _entry(project, "a/x.evalset.json").agent is None


@pytest.mark.parametrize(
    "sign", [{"a/agent.py": "bot = None\n"}, {"a/__pycache__/agent.cpython-311.pyc": ""}, {"a/.adk/": ""}]
)
def test_location_does_not_override_a_possible_former_agent(tree: Tree, sign: dict[str, str]) -> None:
    project = _project(tree, "b", **{"a/x.evalset.json": evalset(), **sign})
    entry = _entry(project, "a/x.evalset.json")
    assert entry.agent is None
    assert entry.owned.lost == "a"


@pytest.mark.parametrize(
    "sign",
    [
        {"a/agent.py": "bot = None\n"},
        {"a/agent.py": "import os\ndef (:"},
        {"a/__pycache__/agent.cpython-311.pyc": ""},
        {"a/__init__.py": IMPORTS},
        {"a/.adk/": ""},
    ],
)
def test_evalset_that_names_a_possible_former_agent_gets_no_other_agent(tree: Tree, sign: dict[str, str]) -> None:
    project = _project(tree, "b", **{"evals/x.evalset.json": evalset("a"), **sign})
    entry = _entry(project, "evals/x.evalset.json")
    assert entry.agent is None
    assert entry.owned.lost == "a"


def test_evalset_in_the_named_folder_does_not_go_to_a_neighbour(tree: Tree) -> None:
    project = _project(tree, "b", **{"a/x.evalset.json": evalset("a"), "a/eval/y.evalset.json": evalset("A")})
    for file in ("a/x.evalset.json", "a/eval/y.evalset.json"):
        entry = _entry(project, file)
        assert entry.agent is None
        assert entry.owned.lost == "a"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "x" * 5000, "nul\0", "\ud800", "/etc", "evals", "tools"])
def test_unknown_app_name_decides_nothing(tree: Tree, name: str) -> None:
    project = _project(tree, "b", **{"data/x.evalset.json": evalset(name), "evals/": "", "tools/x.py": ""})
    entry = _entry(project, "data/x.evalset.json")
    assert entry.agent is not None
    assert (entry.agent.name, entry.owned.rule) == ("b", "location")


def test_module_of_a_sub_agent_is_not_a_sign_of_a_former_agent(tree: Tree) -> None:
    files = {"a/booking/agent.py": "booking = make()\n", "a/booking/__init__.py": IMPORTS}
    project = _project(tree, "a", **{"a/booking/x.evalset.json": evalset(), **files})
    entry = _entry(project, "a/booking/x.evalset.json")
    assert entry.agent is not None
    assert entry.agent.name == "a"


def test_agent_that_cannot_be_read_is_not_replaced_by_its_neighbour(tree: Tree) -> None:
    project = _project(tree, "b", **{"a/agent.py": "import os\ndef (:", "a/x.evalset.json": evalset()})
    entry = _entry(project, "a/x.evalset.json")
    assert entry.agent is None
    assert entry.agent_reason.startswith("a/agent.py: not valid Python (line 2")


def test_agent_with_a_syntax_error_is_still_the_owner(tree: Tree) -> None:
    project = _project(tree, "b", **{"a/agent.py": "root_agent = make(\n", "a/x.evalset.json": evalset()})
    entry = _entry(project, "a/x.evalset.json", {"a/x.evalset.json": LastOwner("a", "")})
    assert entry.agent is not None
    assert entry.agent.name == "a"


def test_app_name_may_be_the_declared_name_of_an_agent(tree: Tree) -> None:
    files = {"desk/agent.py": 'root_agent = Agent(name="order_desk")\n', "yaml/root_agent.yaml": "name: billing\n"}
    named = {"evals/x.evalset.json": evalset("order_desk"), "evals/y.evalset.json": evalset("billing")}
    project = tree({".git/": "", **files, **named})
    for file, agent in (("x", "desk"), ("y", "yaml")):
        entry = _entry(project, f"evals/{file}.evalset.json")
        assert entry.agent is not None
        assert entry.agent.name == agent


def test_rereading_keeps_the_previous_owners(tree: Tree) -> None:
    project = _project(tree, "a", "b", **{"a/x.evalset.json": evalset(), "b/y.evalset.json": evalset()})
    before = open_workspace(project)
    (project / "a/agent.py").unlink()
    now = _reopened(project, before=before)
    assert now["a/x.evalset.json"].agent is None
    assert now["b/y.evalset.json"].agent is not None
    again = open_workspace(project, previous=open_workspace(project, previous=before))
    assert owners_of(again)["a/x.evalset.json"] == LastOwner("a", None)
    (project / "a/agent.py").write_text(AGENT)
    back = open_workspace(project, previous=again).evalsets[0]
    assert back.agent is not None
    assert back.agent.name == "a"


def test_project_that_moved_as_a_whole_keeps_its_owners(tree: Tree, tmp_path: Path) -> None:
    project = _project(tree, "a", **{"evals/x.evalset.json": evalset("a")})
    moved = project.rename(tmp_path / "elsewhere")
    entry = _entry(moved, "evals/x.evalset.json", {"evals/x.evalset.json": LastOwner("a", "a")})
    assert entry.agent is not None


def test_folder_renamed_with_its_evalset_is_the_new_owner(tree: Tree) -> None:
    project = _project(tree, "renamed", **{"renamed/x.evalset.json": evalset()})
    entry = _entry(project, "renamed/x.evalset.json", {"old/x.evalset.json": LastOwner("old", "")})
    assert entry.agent is not None
    assert entry.agent.name == "renamed"
