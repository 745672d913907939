"""The places that are responsible for parts of a case."""

import json
from pathlib import Path

import pytest

from workbench.agents.workspace import open_workspace
from workbench.editing.responsible import Place, agent_place, call_place, case_place, changed_place, criterion_place
from workbench.freshness.changed_files import ChangedFile

AGENT = """
def refund(amount: float) -> dict:
    return {}

root_agent = Agent(
    name="desk",
    instruction="Be kind.",
    tools=[refund],
)
raise SystemExit("this must not run")
"""
TURN = {"invocation_id": "1", "user_content": {"role": "user", "parts": [{"text": "hello"}]}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of an agent with two cases and a config."""
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    cases = [{"eval_id": name, "conversation": [TURN]} for name in ("one", "two")]
    (folder / "cases.evalset.json").write_text(json.dumps({"eval_set_id": "cases", "eval_cases": cases}, indent=1))
    config = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
    (folder / "test_config.json").write_text(json.dumps(config, indent=1))
    return folder


def test_each_part_of_a_case_has_its_place(folder: Path) -> None:
    entry = open_workspace(folder).evalsets[0]
    assert entry.agent is not None
    lines = entry.file.read_text().splitlines()
    line = case_place(entry, 1).line
    assert (lines[line - 1].strip(), lines[line].strip()) == ("{", '"eval_id": "two",')
    assert case_place(entry, -1) == Place(entry.file, 1)
    assert agent_place(entry.agent) == Place(folder / "agent.py", 7)
    assert call_place(entry.agent, "refund") == Place(folder / "agent.py", 2)
    assert call_place(entry.agent, "elsewhere") is None
    assert criterion_place(entry, "response_match_score") == Place(folder / "test_config.json", 4)


def test_first_changed_line_is_that_of_the_newer_file(folder: Path) -> None:
    diff = ("@@ -3,4 +3,4 @@", " same", "-old", "+new", " same")
    gone = ChangedFile("desk", "desk/gone.py", "code", diff)
    changed = ChangedFile("desk", "desk/agent.py", "code", diff)
    assert changed_place(folder.parent, (gone, changed)) == Place(folder / "agent.py", 4)
    assert changed_place(folder.parent, (ChangedFile("desk", "desk/agent.py", "code"),)) == Place(folder / "agent.py")
    assert changed_place(folder.parent, (gone,)) is None
