"""The pytest plugin on folders of test files."""

import tomllib
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.cli.projects import BAD, GOOD, RAISES, Project, case
from tests.function_judge import OPTIONS, write_judge
from tests.test_imports import loaded
from tests.testing.pytest_runs import run_pytest

TALK = "echo/talk.evalset.json"
XDIST = ("workbench.testing.plugin", "xdist")

UNIMPORTABLE = """
import sys
for name in ("textual", "google.adk", "litellm", "nltk", "numpy"):
    sys.modules[name] = None
"""


def test_without_the_option_nothing_is_collected_or_loaded(project: Project) -> None:
    project.evalset(GOOD)
    project.write("test_own.py", "def test_own():\n    pass\n")
    project.write(
        "conftest.py",
        "import sys\ndef pytest_unconfigure():\n"
        "    print('LOADED', sorted(name for name in sys.modules if name.startswith('workbench')))\n",
    )
    done = run_pytest(project.root, fresh=True)
    assert done.outcomes == {("PASSED", "test_own.py::test_own")}
    assert "LOADED ['workbench', 'workbench.testing', 'workbench.testing.plugin']" in done.output


@pytest.fixture
def several(project: Project) -> Project:
    """Return a project with a case of each outcome in several files."""
    project.write("conftest.py", UNIMPORTABLE)
    project.evalset(GOOD, BAD, RAISES, case("prints", "print", "other"))
    project.evalset(GOOD, path="echo/more.test.json")
    project.write("other/test_config.json", {"criteria": {"safety_v1": 0.8}})
    project.evalset(case("unsafe"), path="other/more.test.json")
    project.write("test_own.py", "def test_own():\n    pass\n")
    return project


OUTCOMES = {
    ("PASSED", "test_own.py::test_own"),
    ("PASSED", "echo/more.test.json::good"),
    ("PASSED", f"{TALK}::good"),
    ("FAILED", f"{TALK}::bad"),
    ("FAILED", f"{TALK}::prints"),
    ("ERROR", f"{TALK}::raises"),
}


def test_each_case_is_a_test_that_explains_its_verdict(several: Project) -> None:
    several.write("pytest.ini", "[pytest]\nevalsets = true\n")
    done = run_pytest(several.root, "--junit-xml=results.xml")
    assert done.outcomes == OUTCOMES
    assert done.counts["SKIPPED"] == 1
    assert done.code == 1
    assert not (several.root / ".workbench").exists()

    assert "response_match_score 0.0 < 0.8: 0 of 3 expected words found" in done.output
    assert "−{Something else entirely}" in done.output
    assert max(map(len, turn_headings(done.output))) <= 80
    assert "LookupError: no such order" in done.output
    assert "at echo/agent.py:7 in root_agent" in done.output
    assert "to the log" in done.output.partition("Captured stdout setup")[2]
    assert "\x1b" not in done.output
    assert "plugin.py" not in done.output

    cases = {item.get("name"): item for item in Tree.parse(several.root / "results.xml").iter("testcase")}
    tags = {name: {child.tag for child in item} - {"properties"} for name, item in cases.items()}
    assert {name: tags[name] for name in ("good", "bad", "raises", "unsafe")} == {
        "good": set(),
        "bad": {"failure"},
        "raises": {"error"},
        "unsafe": {"skipped"},
    }
    scores = {item.get("name"): item.get("value") for item in cases["bad"].iter("property")}
    assert scores["response_match_score"] == "0.0"


def test_cases_have_the_same_outcomes_with_xdist(several: Project) -> None:
    several.write(
        "test_asked.py",
        "import asyncio, workbench\ndef test_asked():\n"
        f"    asyncio.run(workbench.evaluate('echo', '{TALK}:bad')).assert_passed()\n",
    )
    done = run_pytest(several.root, "--evalsets", "-n", "2", plugins=XDIST)
    assert done.outcomes == {*OUTCOMES, ("FAILED", "test_asked.py::test_asked")}
    assert "−{Something else entirely}" in done.output
    assert done.code == 1
    headings = turn_headings(done.output)
    assert len(headings) > 3
    assert max(map(len, headings)) <= 80, "a worker has another terminal"


def test_failure_names_its_place_in_the_evalset(project: Project) -> None:
    file = project.evalset(GOOD, BAD)
    file.write_text(file.read_text(encoding="utf-8").replace('{"eval_id"', '\n\n{"eval_id"'), encoding="utf-8")
    line = run_pytest(project.root, "--evalsets", "--tb=line")
    assert f"{file}:5: Failed: response_match_score 0.0 < 0.8" in line.output
    # A worker sends its reports as data.
    line = run_pytest(project.root, "--evalsets", "--tb=line", "-n", "1", f"{TALK}::bad", plugins=XDIST)
    assert f"{file}:5: Failed: response_match_score 0.0 < 0.8" in line.output


def turn_headings(output: str) -> list[str]:
    """Return the lines that reach as far to the right as a drawn case does."""
    return [text for text in output.splitlines() if text.endswith("─") and "─ echo › " in text]


def test_cases_are_selected_by_name_and_by_id(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES)
    assert run_pytest(project.root, "--evalsets", "-k", "good").outcomes == {("PASSED", f"{TALK}::good")}
    assert run_pytest(project.root, "--evalsets", f"{TALK}::bad").outcomes == {("FAILED", f"{TALK}::bad")}


def test_case_that_cannot_be_judged_is_skipped_with_its_reason(project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"safety_v1": 0.8}})
    file = project.evalset(GOOD, BAD)
    file.write_text(file.read_text(encoding="utf-8").replace('{"eval_id"', '\n\n{"eval_id"'), encoding="utf-8")
    done = run_pytest(project.root, "--evalsets")
    assert done.code == 0
    assert done.counts == {"SKIPPED": 2}
    assert "safety_v1 not evaluated" in done.output
    assert f"{TALK}:3" in done.output
    assert f"{TALK}:5" in done.output


def test_broken_file_fails_one_test_and_other_files_run(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/broken.test.json", '{"eval_set_id": "x",\n "eval_cases": [}')
    project.write("other/agent.py", "def root_agent(message, session):\n    return message\n")
    project.write("other/test_config.json", '{\n  "criteria": {"response_macth_score": 0.8}\n}')
    project.evalset(GOOD, path="other/talk.evalset.json")
    project.evalset(case("a"), path="lost.test.json")
    done = run_pytest(project.root, "--evalsets")
    assert done.outcomes == {
        ("PASSED", f"{TALK}::good"),
        ("ERROR", "echo/broken.test.json::(broken file)"),
        ("ERROR", "other/talk.evalset.json::good"),
        ("ERROR", "lost.test.json::a"),
    }
    assert "broken.test.json:2:17" in done.output
    assert "test_config.json:2:" in done.output
    assert "response_match_score" in done.output
    assert "belongs to no agent" in done.output


def test_hostile_ids_are_tests_like_others(project: Project) -> None:
    project.evalset(*(case(eval_id) for eval_id in ("a\x1b[31m", "a\x1b[32m", "b::c", "d[0]", "é/ü")))
    done = run_pytest(project.root, "--evalsets")
    assert "\x1b" not in done.output
    assert done.counts == {"PASSED": 5}
    assert ("PASSED", f"{TALK}::b::c") in done.outcomes


def test_cases_share_warm_processes_but_no_state(project: Project) -> None:
    code = (
        "import os\nseen = []\ndef root_agent(message, session):\n    seen.append(message)\n"
        "    with open(os.environ['SEEN'], 'a') as file:\n"
        "        file.write(f'{len(seen)} {os.getppid()}\\n')\n    return f'You said {message}'\n"
    )
    project.write("echo/agent.py", code)
    seen = project.root / "seen.txt"
    project.write("conftest.py", f"import os\nos.environ['SEEN'] = {str(seen)!r}\n")
    project.evalset(case("one"), case("two"))
    assert run_pytest(project.root, "--evalsets").counts == {"PASSED": 2}
    assert [line.split()[0] for line in seen.read_text().splitlines()] == ["1", "1"]


def test_unused_plugin_imports_nothing(repository: Path) -> None:
    names = loaded("import pytest\nbefore = set(sys.modules)\nimport workbench.testing.plugin", repository)
    assert names == {"workbench"}


def test_pytest_finds_the_plugin(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"agent-workbench": "workbench.testing.plugin"}


def test_tests_judged_by_a_function_are_counted_and_marked_in_junit(project: Project) -> None:
    project.evalset(GOOD)
    write_judge(project.root)
    criterion = {"threshold": 0.5, "judge_model_options": OPTIONS}
    project.write("echo/test_config.json", {"criteria": {"final_response_match_v2": criterion}})
    done = run_pytest(project.root, "--evalsets", "--junit-xml=results.xml")
    assert done.outcomes == {("PASSED", f"{TALK}::good")}
    assert "judged by a function, not by a language model: 1 test" in done.output
    assert 'name="judged_by" value="function: final_response_match_v2"' in (project.root / "results.xml").read_text()
