"""Frozen runs from the shell: the tool is never called, and every surface says so."""

import csv
import html
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import Project, PutBack
from tests.testing.pytest_runs import run_pytest

DESK = """
from pathlib import Path

def find_order(number):
    with open(Path(__file__).parent / "calls.log", "a") as log:
        log.write(f"{number} ")
    return {"status": "shipped"}

def root_agent(message, session):
    found = session.tool("find_order", {"number": message}, find_order)
    return f"Order {message}: {found['status']}"
"""
EVALSET = "desk/orders.evalset.json"
MARK = "FROZEN (1 tool call replayed, recorded today)"


def order(eval_id: str, number: str) -> dict[str, Any]:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": number}]},
        "final_response": {"role": "model", "parts": [{"text": f"Order {number}: shipped"}]},
    }
    return {"eval_id": eval_id, "conversation": [turn]}


def calls(project: Project) -> str:
    return (project.root / "desk/calls.log").read_text()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    def prepare(project: Project) -> None:
        project.write("desk/agent.py", DESK)
        project.write("desk/test_config.json", {"criteria": {"response_match_score": 0.8}})
        project.evalset(order("one", "A-1"), order("two", "A-2"), path=EVALSET)
        assert project.run("run", "desk", "--plain").returncode == 0
        assert project.run("freeze", "last").returncode == 0
        done = project.run("run", "--frozen", "desk", "--plain", "--junit", "junit.xml", "--json", "run.json")
        assert done.returncode == 0, done.stdout
        project.write("frozen.txt", done.stdout)

    return PutBack(tmp_path_factory.mktemp("frozen"), prepare)


@pytest.fixture
def project(kept: PutBack) -> Project:
    """A project with a live run, recordings of its cases, and a frozen run."""
    return kept.project()


def test_every_report_says_that_a_case_was_frozen(project: Project, here: Here) -> None:
    assert sorted(calls(project).split()) == ["A-1", "A-2"], "only the live run called the tool"
    lines = (project.root / "frozen.txt").read_text().splitlines()
    assert sorted(line for line in lines if line.startswith("PASS")) == [
        f"PASS desk/orders/{name} response_match_score=1.0>=0.8 {MARK}" for name in ("one", "two")
    ]
    assert "FROZEN: 2 cases, 2 tool calls replayed, recorded today" in lines
    report = json.loads((project.root / "run.json").read_text())
    frozen = report["cases"][0]["frozen"]
    assert frozen.pop("recorded").endswith("Z")
    file = "desk/orders.evalset.frozen/one.frozen.json"
    counts = {"tools": 1, "models": 0, "live": 0, "misses": 0}
    assert frozen == {"mode": "tools", "file": file, **counts, "reordered": [], "drifted": [], "redeclared": []}
    junit = Tree.parse(project.root / "junit.xml").getroot()
    assert {case.get("name") for case in junit.iter("testcase")} == {"one (FROZEN)", "two (FROZEN)"}
    (value, _) = [found.get("value") for found in junit.iter("property") if found.get("name") == "frozen"]
    assert value == "1 tool call replayed, recorded today"
    assert MARK in here("export", "last", "--format", "html").stdout
    assert f"**FROZEN** {MARK.removeprefix('FROZEN ')}" in here("export", "last", "--format", "md").stdout
    rows = list(csv.DictReader(io.StringIO(here("export", "last", "--format", "csv").stdout)))
    assert {(row["frozen"], row["frozen_tools"], row["frozen_misses"]) for row in rows} == {("tools", "1", "0")}
    done = here("export", "last", "--format", "adk", "-o", "adk")
    assert done.returncode == 0, done.stderr
    (file_of_adk,) = Path(project.root, "adk").iterdir()
    assert file_of_adk.read_text().count("-frozen-tools") == 2
    for other in ("run.json", str(file_of_adk)):
        done = here("compare", "last", other)
        assert "frozen in the same way" not in done.stdout
        assert done.stdout.splitlines()[1].endswith("(2 passed, frozen)")


def test_status_history_and_compare_tell_frozen_from_live(project: Project, here: Here) -> None:
    assert here("status").stdout == f"PASS desk/orders/one {MARK}\nPASS desk/orders/two {MARK}\n"
    assert [case["frozen"] for case in json.loads(here("status", "--json").stdout)["cases"]] == [True, True]
    frozen, live = here("history").stdout.splitlines()
    assert frozen.endswith("(frozen)")
    assert "frozen" not in live
    done = here("compare", live.split()[0], "last")
    assert done.returncode == 2
    assert "not frozen in the same way, so not compared: desk/orders/one, desk/orders/two" in done.stdout
    assert "not recorded" not in done.stdout
    assert done.stdout.endswith("0 unchanged, 2 not comparable\n")
    found = json.loads(here("compare", live.split()[0], "last", "--json").stdout)
    assert [case["eval_id"] for case in found["not_compared"]] == ["one", "two"]
    assert here("compare", "last", "last").returncode == 0


def test_verdict_that_is_scored_again_stays_frozen(project: Project) -> None:
    done = project.run("score", "last", "--print-detailed-results")
    assert done.stdout.count(MARK) == 2, "on the lines"
    assert done.stdout.count("FROZEN 1 tool call replayed, recorded today") == 2, "with the conversations"
    assert project.run("status").stdout.count(MARK) == 2


def test_miss_names_the_nearest_recording_and_a_live_call_is_counted(project: Project) -> None:
    project.write("desk/agent.py", DESK.replace('{"number": message}', '{"number": message.lower()}'))
    before = calls(project)
    done = project.run("run", "--frozen", f"{EVALSET}:one")
    assert done.returncode == 3
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("ERROR"))
    assert (
        'FROZEN (0 tool calls replayed, 1 missed, recorded today) frozen_miss: desk called find_order(number="a-1")'
        in line
    )
    assert 'nearest recording: find_order(number="A-1") in turn 1' in line
    assert calls(project) == before
    done = project.run("run", "--frozen", "--on-miss", "live", f"{EVALSET}:one")
    assert done.stdout.startswith(
        "PASS desk/orders/one response_match_score=1.0>=0.8 FROZEN (0 tool calls replayed, 1 live, recorded today)\n"
    )
    assert calls(project) == f"{before}a-1 "


def test_changed_code_of_a_tool_is_reported_by_every_frozen_run(project: Project, here: Here) -> None:
    project.write("desk/agent.py", DESK.replace('"shipped"', '"lost"'))
    done = project.run("run", "--frozen", "desk", "--json", "run.json", "--junit", "junit.xml")
    assert done.returncode == 0
    words = "code of `find_order` changed since it was recorded"
    assert f"FROZEN (1 tool call replayed, recorded today, {words})\n" in done.stdout
    assert "`find_order` changed since recorded (2 cases)\n" in done.stdout
    assert words in (project.root / "junit.xml").read_text()
    report = json.loads((project.root / "run.json").read_text())
    assert report["cases"][0]["frozen"]["drifted"] == ["find_order"]
    for source in ("last", "run.json"):
        assert words in html.unescape(here("export", source, "--format", "junit").stdout)
    assert "stale: frozen: code of find_order\n" in here("status").stdout
    here("freeze", "last")  # Keeps the old answers, so it must not take over the new code.
    assert words in project.run("run", "--frozen", "desk").stdout


def test_recorded_call_that_no_longer_fits_its_tool_is_a_miss(project: Project) -> None:
    project.write("desk/agent.py", DESK.replace("def find_order(number):", "def find_order(number, region):"))
    done = project.run("run", "--frozen", "desk")
    assert done.returncode == 3
    assert 'find_order(number="A-1"); its recording does not fit the tool any more: `region` is required' in done.stdout


def test_setting_of_the_project_freezes_its_runs(project: Project) -> None:
    project.write("pyproject.toml", '[tool.agent-workbench]\nfrozen = "tools"\n')
    assert project.run("run", "desk").stdout.count(MARK) == 2
    assert "FROZEN" not in project.run("run", "--frozen=off", "desk").stdout
    project.write("pyproject.toml", "[tool.agent-workbench]\nfrozen = 5\n")
    done = project.run("run", "desk")
    assert done.returncode == 2
    assert "`frozen` in [tool.agent-workbench] is 5" in done.stderr
    (project.root / "pyproject.toml").unlink()
    (project.root / "pyproject.toml").mkdir()
    done = project.run("run", "desk")
    assert done.returncode == 2
    assert "pyproject.toml: the project's settings cannot be read: Is a directory" in done.stderr


@pytest.mark.parametrize("words", [("--frozen=yes",), ("--frozen", "--on-miss", "maybe")])
def test_wrong_mode_is_refused(project: Project, here: Here, words: tuple[str, ...]) -> None:
    assert here("run", *words, "desk").returncode == 2


def test_frozen_tests_are_marked_in_pytest(project: Project) -> None:
    before = calls(project)
    done = run_pytest(project.root, "--evalsets", "--frozen", "desk", "--junit-xml=tests.xml")
    assert done.outcomes == {("PASSED", f"{EVALSET}::{name}[frozen]") for name in ("one", "two")}
    assert "FROZEN, with calls answered from recordings: 2 tests" in done.output
    assert "1 tool call replayed, recorded today" in (project.root / "tests.xml").read_text()
    assert calls(project) == before


def test_thaw_runs_live_and_shows_how_each_answer_drifted(project: Project, here: Here) -> None:
    project.write("desk/agent.py", DESK.replace('"shipped"', '"lost"'))
    project.root.joinpath("desk/orders.evalset.frozen/two.frozen.json").unlink()
    before = calls(project)
    done = project.run("run", "--thaw", "desk", "--json", "thaw.json")
    assert done.returncode == 1, "the live verdicts decide"
    assert calls(project) == f"{before}A-1 A-2 " or calls(project) == f"{before}A-2 A-1 "
    assert "THAWED (calls: 0 same, 1 changed)\n" in done.stdout
    assert "THAWED (the case has no recording)\n" in done.stdout
    assert '    changed: find_order(number="A-1"); answer.status was "shipped", now "lost"\n' in done.stdout
    assert "THAWED: 1 case, calls: 0 same, 1 changed, 1 case not compared\n" in done.stdout
    one, two = (case["drift"] for case in json.loads((project.root / "thaw.json").read_text())["cases"])
    assert (one["same"], one["changed"], one["changes"][0]["where"]) == (
        0,
        1,
        [{"path": "answer.status", "then": '"shipped"', "now": '"lost"'}],
    )
    assert (two["recorded"], two["why"]) == (None, "the case has no recording")
    assert "FROZEN" not in done.stdout
    change = 'changed: find_order(number="A-1"); answer.status was "shipped", now "lost"'
    for source in ("last", "thaw.json"):
        for word in ("html", "md", "junit"):
            text = html.unescape(here("export", source, "--format", word).stdout)
            assert change in text
            assert "calls: 0 same, 1 changed" in text
            assert "the case has no recording" in text
        rows = list(csv.DictReader(io.StringIO(here("export", source, "--format", "csv").stdout)))
        assert {(row["eval_id"], row["drift_same"], row["drift_changed"]) for row in rows} == {
            ("one", "0", "1"),
            ("two", "", ""),
        }
    assert here("run", "--thaw", "--frozen", "desk").returncode == 2
    assert here("run", "--thaw", "--watch", "desk").returncode == 2
