"""The owner of an evalset: the rules in order, on the layouts of real projects."""

from pathlib import Path

import pytest

from tests.agents.conftest import AGENT, Tree, evalset
from workbench.agents.workspace.workspace import EvalsetEntry, open_workspace
from workbench.store.owners import StoredOwners


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
