"""The pytest plugin on folders of test files."""

import json
import tomllib
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.cli.projects import BAD, GOOD, RAISES, Project, case
from tests.test_imports import loaded
from tests.testing.pytest_runs import run_pytest

TALK = "echo/talk.evalset.json"
XDIST = ("workbench.testing.plugin", "xdist")

UNIMPORTABLE = """
import sys
for name in ("textual", "google.adk", "litellm", "nltk", "numpy"):
    sys.modules[name] = None
"""


def test_it_collects_nothing_unless_asked(project: Project) -> None:
    project.evalset(GOOD)
    project.write("test_own.py", "def test_own():\n    pass\n")
    done = run_pytest(project.root)
    assert done.outcomes == {("PASSED", "test_own.py::test_own")}


@pytest.mark.parametrize("asked", ["option", "configuration"])
def test_one_test_a_case(project: Project, asked: str) -> None:
    project.evalset(GOOD, BAD, RAISES)
    project.evalset(GOOD, path="echo/more.test.json")
    project.write("test_own.py", "def test_own():\n    pass\n")
    if asked == "configuration":
        project.write("pytest.ini", "[pytest]\nevalsets = true\n")
    done = run_pytest(project.root, *(["--evalsets"] if asked == "option" else []))
    assert done.outcomes == {
        ("PASSED", "test_own.py::test_own"),
        ("PASSED", "echo/more.test.json::good"),
        ("PASSED", f"{TALK}::good"),
        ("FAILED", f"{TALK}::bad"),
        ("ERROR", f"{TALK}::raises"),
    }
    assert done.code == 1
    assert not (project.root / ".workbench").exists()


def test_the_failure_text_explains_the_verdict(project: Project) -> None:
    project.evalset(BAD, RAISES, case("prints", "print", "other"))
    done = run_pytest(project.root, "--evalsets")
    assert "response_match_score 0.0 < 0.8: 0 of 3 expected words found" in done.output
    assert "−{Something else entirely}" in done.output
    assert "LookupError: no such order" in done.output
    assert "at echo/agent.py:7 in root_agent" in done.output
    assert "to the log" in done.output.partition("Captured stdout setup")[2]
    assert "\x1b" not in done.output
    assert "plugin.py" not in done.output


def test_cases_are_selected_by_name_and_by_id(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES)
    assert run_pytest(project.root, "--evalsets", "-k", "good").outcomes == {("PASSED", f"{TALK}::good")}
    assert run_pytest(project.root, "--evalsets", f"{TALK}::bad").outcomes == {("FAILED", f"{TALK}::bad")}


def test_what_cannot_be_judged_is_skipped_with_the_reason(project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"safety_v1": 0.8}})
    project.evalset(GOOD)
    done = run_pytest(project.root, "--evalsets")
    assert done.code == 0
    assert done.counts == {"SKIPPED": 1}
    assert "safety_v1 not evaluated" in done.output
    assert f"{TALK}:1" in done.output


def test_a_broken_file_is_an_error_of_collecting_that_names_the_line(project: Project) -> None:
    project.write("echo/broken.test.json", '{"eval_set_id": "x",\n "eval_cases": [}')
    project.evalset(GOOD)
    done = run_pytest(project.root, "--evalsets", "--continue-on-collection-errors")
    assert done.outcomes == {("ERROR", "echo/broken.test.json"), ("PASSED", f"{TALK}::good")}
    assert "broken.test.json:2:17" in done.output


def test_criteria_that_cannot_be_used_are_an_error_of_collecting(project: Project) -> None:
    project.write("echo/test_config.json", '{\n  "criteria": {"response_macth_score": 0.8}\n}')
    project.evalset(GOOD)
    done = run_pytest(project.root, "--evalsets")
    assert done.outcomes == {("ERROR", TALK)}
    assert "test_config.json:2:" in done.output
    assert "response_match_score" in done.output


def test_an_evalset_without_an_agent_is_an_error_of_its_tests(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    content = {"eval_set_id": "lost", "eval_cases": [case("a")]}
    (tmp_path / "lost.test.json").write_text(json.dumps(content), encoding="utf-8")
    done = run_pytest(tmp_path, "--evalsets")
    assert done.outcomes == {("ERROR", "lost.test.json::a")}
    assert "belongs to no agent" in done.output


def test_junit_says_failure_error_and_skipped(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES)
    project.write("other/test_config.json", {"criteria": {"safety_v1": 0.8}})
    project.evalset(case("unsafe"), path="other/more.test.json")
    run_pytest(project.root, "--evalsets", "--junit-xml=results.xml")
    cases = {item.get("name"): item for item in Tree.parse(project.root / "results.xml").iter("testcase")}
    tags = {name: {child.tag for child in item} - {"properties"} for name, item in cases.items()}
    assert tags == {"good": set(), "bad": {"failure"}, "raises": {"error"}, "unsafe": {"skipped"}}
    scores = {item.get("name"): item.get("value") for item in cases["bad"].iter("property")}
    assert scores["response_match_score"] == "0.0"


def test_lines_are_those_where_the_cases_begin(project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"safety_v1": 0.8}})
    file = project.evalset(GOOD, BAD)
    file.write_text(file.read_text(encoding="utf-8").replace('{"eval_id"', '\n\n{"eval_id"'), encoding="utf-8")
    done = run_pytest(project.root, "--evalsets")
    assert f"{TALK}:3" in done.output
    assert f"{TALK}:5" in done.output


def test_ids_that_are_hostile_are_tests_like_others(project: Project) -> None:
    project.evalset(*(case(eval_id) for eval_id in ("a\x1b[31m", "a\x1b[32m", "b::c", "d[0]", "é/ü")))
    done = run_pytest(project.root, "--evalsets")
    assert "\x1b" not in done.output
    assert done.counts == {"PASSED": 5}
    assert ("PASSED", f"{TALK}::b::c") in done.outcomes


@pytest.mark.parametrize("parallel", [False, True], ids=["alone", "xdist"])
def test_without_textual_with_and_without_xdist(project: Project, parallel: bool) -> None:
    project.write("conftest.py", UNIMPORTABLE)
    project.evalset(GOOD, BAD, *(case(f"more_{number}") for number in range(4)))
    project.evalset(GOOD, path="echo/short.test.json")
    words = ("-n", "2") if parallel else ()
    done = run_pytest(project.root, "--evalsets", *words, plugins=XDIST if parallel else XDIST[:1])
    expected = {("PASSED", f"{TALK}::{name}") for name in ("good", "more_0", "more_1", "more_2", "more_3")}
    assert done.outcomes == expected | {("FAILED", f"{TALK}::bad"), ("PASSED", "echo/short.test.json::good")}
    assert "−{Something else entirely}" in done.output
    assert done.code == 1
    project.evalset(GOOD)
    assert run_pytest(project.root, "--evalsets", *words, plugins=XDIST if parallel else XDIST[:1]).code == 0


def test_cases_of_a_process_share_what_is_warm_and_nothing_else(project: Project) -> None:
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


def test_loaded_but_unused_it_imports_nothing(repository: Path) -> None:
    names = loaded("import pytest\nbefore = set(sys.modules)\nimport workbench.testing.plugin", repository)
    assert names == {"workbench"}


def test_a_run_that_asks_for_no_evalsets_loads_no_more_of_it(project: Project) -> None:
    project.evalset(GOOD)
    project.write("test_own.py", "def test_own():\n    pass\n")
    project.write(
        "conftest.py",
        "import sys\ndef pytest_unconfigure():\n"
        "    print('LOADED', sorted(name for name in sys.modules if name.startswith('workbench')))\n",
    )
    done = run_pytest(project.root)
    assert "LOADED ['workbench', 'workbench.testing', 'workbench.testing.plugin']" in done.output


def test_pytest_is_told_of_it(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"agent-workbench": "workbench.testing.plugin"}
