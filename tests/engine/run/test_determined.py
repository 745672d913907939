"""What determines a run: whatever changes of it is named, whatever does not matter is not."""

import json
from pathlib import Path

import pytest

from tests.engine.project import Project, evalset, turn
from workbench.engine.plan.options import RunOptions
from workbench.engine.run.determined import changed_files, determined, differences
from workbench.engine.run.provenance import Kept, read_sources

SECRET = "the-secret-of-the-desk-4711"
AGENT = "import os\n\ndef root_agent(message, session):\n    return os.environ['TONE'] + message\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("TONE", "kind")
    monkeypatch.setenv("GOOGLE_API_KEY", SECRET)
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    found = Project(tmp_path)
    found.agent(AGENT)
    found.cases("one", "two")
    return found


def told(project: Project, options: RunOptions | None = None) -> "tuple[dict[str, object], Kept]":
    plan = project.plan(options)
    kept = read_sources(plan.agents, {}, str)
    return determined(plan, options or RunOptions(), kept, "salt"), kept


def test_the_same_is_the_same_and_holds_no_value(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = told(project)
    monkeypatch.setenv("SOMETHING_ELSE", "2")
    monkeypatch.setenv("TERM", "other")
    now, _ = told(project, RunOptions(concurrency=2))
    assert list(differences(before, now)) == []
    assert SECRET not in json.dumps(before)
    assert "kind" not in json.dumps(before)


def test_each_change_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before, kept = told(project)
    monkeypatch.setenv("TONE", "curt")
    monkeypatch.delenv("GOOGLE_API_KEY")
    project.write("desk/all.evalset.json", evalset("all", {"one": [turn("one", "ok")], "two": [turn("two", "no")]}))
    project.write("desk/test_config.json", {"criteria": {"response_match_score": 0.5}})
    project.write("desk/prompt.md", "Be brief.")
    (project.root / "desk/__init__.py").unlink()
    project.write("desk/agent.py", AGENT + "\n")
    now, files = told(project, RunOptions(timeout=3.0))
    assert list(differences(before, now)) == [
        "--timeout is another one",
        "two in desk/all.evalset.json changed",
        "the criteria of desk/all.evalset.json changed",
        "the environment variable GOOGLE_API_KEY came or went",
        "the environment variable TONE changed",
    ]
    assert list(changed_files(kept.sources, files.sources)) == [
        "desk/__init__.py is gone",
        "desk/agent.py changed",
        "desk/prompt.md is new",
    ]


@pytest.mark.parametrize("name", ["python:desk.judges:kind", "python:judges:kind"])
def test_a_function_that_judges_is_part_of_the_criteria(project: Project, name: str) -> None:
    options = {"threshold": 0.5, "judge_model_options": {"judge_model": name}}
    project.write("desk/test_config.json", {"criteria": {"final_response_match_v2": options}})
    project.write("desk/judges.py", "def kind(question): return 'valid'\n")
    before, _ = told(project)
    project.write("desk/judges.py", "def kind(question): return 'invalid'\n")
    now, _ = told(project)
    assert list(differences(before, now)) == ["the criteria of desk/all.evalset.json changed"]


@pytest.mark.parametrize("then", [{}, {"options": 3, "cases": [], "environment": {"desk": "x"}}])
def test_what_cannot_be_read_is_not_the_same(project: Project, then: dict[str, object]) -> None:
    now, _ = told(project)
    assert len(list(differences(then, now))) > 5
