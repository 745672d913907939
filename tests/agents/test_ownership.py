"""The owner of an evalset: the rules in order, on the layouts of real projects."""

from pathlib import Path

import pytest

from tests.agents.conftest import AGENT, Tree, evalset
from tests.stored import sql
from workbench.agents.workspace import EvalsetEntry, open_workspace
from workbench.files.folders import state_dir
from workbench.store.owners import LastOwner, OwnersFileError, StoredOwners, read_owners, save_last_owners, save_owner


def _entry(project: Path, relative: str, stored: StoredOwners | None = None) -> EvalsetEntry:
    workspace = open_workspace(project, stored_owners=stored)
    return next(entry for entry in workspace.evalsets if entry.relative == relative)


@pytest.mark.parametrize(
    ("agents", "file", "app_name", "owner", "reason"),
    [
        # The folder around it wins over app_name.
        (["desk", "other"], "desk/x.evalset.json", "other", "desk", "its folder contains"),
        (["desk", "other"], "desk/eval/data/x.evalset.json", None, "desk", "its folder contains"),
        (
            ["desk", "desk/sub_agents/bill"],
            "desk/sub_agents/bill/eval/x.test.json",
            "desk",
            "bill",
            "its folder contains",
        ),
        (["."], "tests/eval/x.evalset.json", None, "project", "its folder contains"),
        # Beside the agent, next to its package: the only agent under the nearest common folder.
        (
            ["shop/shop_agent"],
            "shop/eval/data/x.test.json",
            None,
            "shop_agent",
            "matched by location: the only",
        ),
        (["one/app", "two/app"], "two/tests/eval/evalsets/x.evalset.json", None, "two/app", "only agent under two/"),
        (["shop/agent_a", "shop/agent_a/sub/b"], "shop/eval/x.test.json", None, "agent_a", "only agent under shop/"),
        # app_name, before the nearest folder.
        (["a", "b"], "evals/x.evalset.json", "b", "b", 'app_name names it: "b"'),
        (["a", "z/b"], "a_evals/x.evalset.json", "b", "b", "app_name names it"),
        (["one/app", "two/app"], "evals/x.evalset.json", "two/app", "two/app", "app_name names it"),
        (["one/app", "two/app"], "two/evals/x.evalset.json", "app", "two/app", "app_name names it"),
        (
            ["customer_service", "b"],
            "evals/x.evalset.json",
            "Customer-Service",
            "customer_service",
            "app_name names it",
        ),
        (["a", "a/sub/b", "z/b"], "evals/x.evalset.json", "b", "z/b", "app_name names it"),
        (["a", "a/sub/b"], "evals/x.evalset.json", "b", "b", "app_name names it"),
        # The name of the project, if the agent is the only one in it.
        (["app"], "tests/eval/evalsets/x.evalset.json", "Project", "app", "app_name names it"),
        (["one/app", "two/app"], "evals/x.evalset.json", "two", "two/app", "app_name names it"),
        # An app_name that is not an agent here decides nothing.
        (
            ["b"],
            "evals/x.evalset.json",
            "c",
            "b",
            'only agent under project/ (session_input.app_name "c" is not an agent',
        ),
        (["one/b", "two/d"], "one/evals/x.evalset.json", "c", "b", 'only agent under one/ (session_input.app_name "c"'),
        # None, and why.
        (["a", "b"], "evals/x.evalset.json", "c", None, 'is "c", which is not an agent here, and there are 2 agents'),
        (["a", "b"], "evals/x.evalset.json", None, None, "no session_input.app_name, and there are 2 agents"),
        (["one/app", "two/app"], "evals/x.evalset.json", "app", None, 'is "app", and there are 2 agents'),
        (list("abcdefg"), "evals/x.evalset.json", None, None, "7 agents near it: a, b, c, d, e, f, g"),
        ([], "evals/x.evalset.json", "a", None, "no agent was found under"),
    ],
)
def test_owner_follows_the_rules_in_order(
    tree: Tree, agents: list[str], file: str, app_name: str | None, owner: str | None, reason: str
) -> None:
    project = tree({".git/": "", file: evalset(app_name), **{f"{agent}/agent.py": AGENT for agent in agents}})
    entry = _entry(project, file)
    assert (entry.agent.name if entry.agent else None) == owner
    assert reason in entry.agent_reason


def test_answer_is_used_if_the_files_do_not_decide(tree: Tree) -> None:
    files = {f"{agent}/agent.py": AGENT for agent in ("a", "b")}
    project = tree({".git/": "", "evals/x.evalset.json": evalset(), "evals/y.evalset.json": evalset("a"), **files})
    stored = StoredOwners({"evals/x.evalset.json": "b", "evals/y.evalset.json": "b"})
    chosen = _entry(project, "evals/x.evalset.json", stored)
    assert chosen.agent is not None
    assert (chosen.agent.name, chosen.agent_reason) == ("b", "chosen by you")
    named = _entry(project, "evals/y.evalset.json", stored)
    assert named.agent is not None
    assert named.agent.name == "a"


@pytest.mark.parametrize("agents", [("a", "b"), ("a",)])
def test_answer_with_a_missing_agent_is_reported(tree: Tree, agents: tuple[str, ...]) -> None:
    project = tree({".git/": "", "evals/x.evalset.json": evalset(), **{f"{one}/agent.py": AGENT for one in agents}})
    entry = _entry(project, "evals/x.evalset.json", StoredOwners({"evals/x.evalset.json": "gone"}))
    assert entry.agent is None
    assert entry.agent_reason == f"the agent chosen for it, gone, no longer exists. Near it: {', '.join(agents)}"


def test_evalset_that_cannot_be_read_still_has_its_agent(tree: Tree) -> None:
    project = tree({".git/": "", "desk/agent.py": AGENT, "desk/x.evalset.json": "{", "evals/y.evalset.json": "{"})
    for name in ("desk/x.evalset.json", "evals/y.evalset.json"):
        entry = _entry(project, name)
        assert entry.agent is not None
        assert entry.agent.name == "desk"
        assert entry.document.broken


def test_definition_that_cannot_be_read_explains_the_missing_agent(tree: Tree) -> None:
    project = tree({".git/": "", "desk/agent.py": "import os\ndef (:", "desk/eval/x.evalset.json": evalset()})
    entry = _entry(project, "desk/eval/x.evalset.json")
    assert entry.agent is None
    assert entry.agent_reason == "desk/agent.py: not valid Python (line 2: invalid syntax)"


def test_saved_answers_are_read_back(tmp_path: Path) -> None:
    root = tmp_path / "project"
    assert read_owners(tmp_path) == StoredOwners()
    save_owner(tmp_path, "evals/b.evalset.json", root / "agents" / "desk", root)
    save_owner(tmp_path, "evals/a.evalset.json", tmp_path / "elsewhere", root)
    save_owner(tmp_path, "evals/b.evalset.json", root, root)
    assert read_owners(tmp_path).answers == {
        "evals/a.evalset.json": (tmp_path / "elsewhere").as_posix(),
        "evals/b.evalset.json": ".",
    }


def test_answer_for_an_untrusted_folder_stays_in_memory(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".workbench/runs").mkdir(parents=True)
    one, two = state_dir(tmp_path / "one"), state_dir(tmp_path / "two")
    save_owner(one, "a", tmp_path, tmp_path)
    assert read_owners(one).answers == {"a": "."}
    assert read_owners(two) == StoredOwners()
    assert [file.name for file in tmp_path.rglob("*")].count("runs.db") == 0


def test_write_that_fails_leaves_the_old_answers(tmp_path: Path) -> None:
    save_owner(tmp_path, "a", tmp_path, tmp_path)
    sql(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON owner BEGIN SELECT RAISE(FAIL, 'No space'); END")
    with pytest.raises(OwnersFileError, match="No space"):
        save_owner(tmp_path, "b", tmp_path, tmp_path)
    assert read_owners(tmp_path).answers == {"a": "."}


@pytest.mark.parametrize("name", ["a\ud800b", '"quoted"', "\udc80", "ä", ""])
def test_owner_of_a_file_with_any_name_is_read_back(tmp_path: Path, name: str) -> None:
    save_owner(tmp_path, name, tmp_path / "desk", tmp_path)
    save_last_owners(tmp_path, {name: LastOwner(name, name.encode("utf-8", "replace").decode())})
    stored = read_owners(tmp_path)
    assert stored.answers == {name: "desk"}
    assert stored.last[name].folder == name


def test_last_owners_are_read_back_beside_the_answers(tmp_path: Path) -> None:
    save_owner(tmp_path, "evals/a.evalset.json", tmp_path / "desk", tmp_path)
    save_last_owners(tmp_path, {"evals/a.evalset.json": LastOwner("desk", "")})
    save_last_owners(tmp_path, {"evals/b.evalset.json": LastOwner("bots/shop", "shop")})
    stored = read_owners(tmp_path)
    assert stored.answers == {"evals/a.evalset.json": "desk"}
    assert stored.last == {
        "evals/a.evalset.json": LastOwner("desk", ""),
        "evals/b.evalset.json": LastOwner("bots/shop", "shop"),
    }


def test_unchanged_last_owners_are_not_written(tmp_path: Path) -> None:
    save_last_owners(tmp_path, {"a": LastOwner("desk", None)})
    sql(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON owner BEGIN SELECT RAISE(FAIL, 'No space'); END")
    save_last_owners(tmp_path, {"a": LastOwner("desk", None)})
    with pytest.raises(OwnersFileError):
        save_last_owners(tmp_path, {"a": LastOwner("other", None)})


def test_damaged_owners_are_named_and_count_as_missing(tmp_path: Path) -> None:
    save_last_owners(tmp_path, {"a": LastOwner("desk", ""), "b": LastOwner("desk", "")})
    sql(tmp_path, "UPDATE owner SET agent = 'evil' WHERE evalset = 'a'")
    found = read_owners(tmp_path)
    assert list(found.last) == ["b"]
    assert "1 owner in" in found.faults[0]
    save_last_owners(tmp_path, {"a": LastOwner("desk", "")})
    assert read_owners(tmp_path).faults == ()
