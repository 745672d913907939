"""`compare` from the shell: regressions first, and the line that made them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import Project, case

PROMPTED = '''
PROMPT = """Be kind.
Say: welcome.
"""

def root_agent(message, session):
    greeting = PROMPT.split("Say: ")[1].splitlines()[0].rstrip(".")
    return greeting if message.startswith("greet") else f"You said {message}"
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("echo/agent.py", PROMPTED)
    greetings = [case(name, name, "welcome") for name in ("greet_one", "greet_two")]
    project.evalset(*greetings, case("other"), case("wrong", answer="Something else entirely"))
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    project.run("run", ".", "--plain")
    project.run("history", "pin", "last")
    return project


def _compared(project: Project, *words: str) -> tuple[int, dict[str, Any]]:
    done = project.run("compare", *words, "--json")
    return done.returncode, json.loads(done.stdout)


def _kinds(found: dict[str, Any]) -> dict[str, list[str]]:
    return {item["eval_id"]: [cause["kind"] for cause in item["causes"]] for item in found["cases"]}


def test_a_prompt_that_breaks_two_cases_is_shown_with_its_line(project: Project) -> None:
    project.write("echo/agent.py", PROMPTED.replace("Say: welcome.", "Say: go away."))
    project.run("run", ".", "--plain")
    done = project.run("compare", "baseline", "last")
    assert done.returncode == 1
    regressions = [line for line in done.stdout.splitlines() if line.startswith("REGRESSION")]
    assert [line.split(" | ") for line in regressions] == [
        [f"REGRESSION echo/talk/{name} passed -> failed", "prompt: echo/agent.py"]
        for name in ("greet_one", "greet_two")
    ]
    assert "    -Say: welcome.\n    +Say: go away.\n" in done.stdout
    assert done.stdout.endswith("2 regressions, 0 fixes, 0 changed scores, 2 unchanged\n")
    code, found = _compared(project, "last", "baseline")
    assert code == 0
    assert [item["change"] for item in found["cases"]] == ["fix", "fix"]


def test_nothing_changed(project: Project) -> None:
    project.run("run", ".", "--plain")
    code, found = _compared(project, "last")
    assert code == 0
    assert found["summary"] == {"regression": 0, "fix": 0, "other": 0, "score": 0, "unchanged": 4}
    assert not found["files"]


def test_code_is_told_from_a_prompt(project: Project) -> None:
    project.write("echo/agent.py", PROMPTED.replace("return greeting if", "return greeting * 0 if"))
    project.run("run", ".", "--plain")
    assert _kinds(_compared(project, "last")[1]) == {"greet_one": ["code"], "greet_two": ["code"]}


def test_criteria_and_expected_values(project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.0}})
    project.run("run", ".", "--plain")
    code, found = _compared(project, "last")
    assert code == 0
    assert _kinds(found) == {"wrong": ["criteria"]}
    assert found["cases"][0]["causes"][0]["what"] == "response_match_score threshold 0.8 -> 0.0"
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    project.evalset(*[case(name, name, "welcome") for name in ("greet_one", "greet_two")], case("other", answer="no"))
    project.run("run", ".", "--plain")
    code, found = _compared(project, "last")
    assert code == 1
    assert _kinds(found) == {"other": ["expected"]}
    assert [item["eval_id"] for item in found["only_in_a"]] == ["wrong"]


def test_an_agent_that_does_something_else_by_itself(project: Project) -> None:
    counting = (
        "from pathlib import Path\nFILE = Path(__file__).parents[1] / '.git/count'\n\n"
        "def root_agent(message, session):\n    said = FILE.exists()\n    FILE.touch()\n"
        "    return 'no' if said else f'You said {message}'\n"
    )
    project.write("echo/agent.py", counting)
    project.run("run", ".", "--case", "other", "--plain")
    project.run("history", "pin", "last")
    project.run("run", ".", "--case", "other", "--plain")
    assert _kinds(_compared(project, "last")[1]) == {"other": ["agent"]}


def test_reports_compare_with_runs(project: Project) -> None:
    project.write("echo/agent.py", PROMPTED.replace("welcome", "go away"))
    project.run("run", ".", "--plain", "--json", "report.json")
    code, found = _compared(project, "baseline", "report.json")
    assert code == 1
    assert _kinds(found) == {"greet_one": ["agent"], "greet_two": ["agent"]}
    assert _compared(project, "report.json", "last")[1]["summary"]["unchanged"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "not 0"),
        (["a", "b", "c"], "not 3"),
        (["last", "9999"], "no run 9999"),
        (["x.json"], "x.json does not exist"),
    ],
)
def test_what_is_refused(project: Project, words: list[str], said: str) -> None:
    done = project.run("compare", *words)
    assert done.returncode == 2
    assert said in done.stderr
