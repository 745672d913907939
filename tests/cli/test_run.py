"""The program on small projects, from the shell's side: exit codes, streams and files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, ECHO, GOOD, RAISES, REPOSITORY, Project, case, lines_with, statuses
from tests.hostile import leaks
from tests.schemas import validate_report
from tests.stored import only_run

CRITERIA = {"criteria": {"response_match_score": 0.8}}
NEEDS_A_SERVICE = {"criteria": {"response_match_score": 0.8, "safety_v1": 0.8}}
TORN = '{"eval_set_id": "torn",\n "eval_cases": [}'

pytestmark = pytest.mark.usefixtures("warm_programs")


def test_passed_run_exits_with_0(project: Project) -> None:
    project.evalset(GOOD, case("also", "good day"))
    done = project.run("run", ".")
    assert done.returncode == 0
    assert sorted(lines_with(done.stdout, ["PASS"])) == [
        "PASS echo/talk/also tool_trajectory_avg_score=1.0>=1.0 response_match_score=1.0>=0.8",
        "PASS echo/talk/good tool_trajectory_avg_score=1.0>=1.0 response_match_score=1.0>=0.8",
    ]
    assert done.stdout.splitlines()[-1].endswith(" s: 2 passed")
    assert "defaults" not in done.stdout
    detailed = project.run("run", ".", "--print-detailed-results")
    assert "response_match_score 0.8 (defaults" in detailed.stdout, "which criteria applied, and why"


def test_failure_exits_with_1_and_has_a_reason(project: Project) -> None:
    project.evalset(GOOD, BAD)
    done = project.run("run", "echo/talk.evalset.json")
    assert done.returncode == 1
    assert lines_with(done.stdout, ["FAIL"]) == [
        "FAIL echo/talk/bad tool_trajectory_avg_score=1.0>=1.0 response_match_score=0.0<0.8"
    ]
    assert "expected words found" in done.stdout.partition("Failures:")[2]


def test_error_exits_with_3_and_writes_both_reports(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES, case("dies", "die"), case("logs", "log"))
    done = project.run("run", "echo/talk.evalset.json", "--json", "report.json", "--junit", "junit.xml")
    assert done.returncode == 3
    report = json.loads((project.root / "report.json").read_text("utf-8"))
    validate_report(report)
    wanted = {"good": "passed", "bad": "failed", "raises": "error", "dies": "error", "logs": "passed"}
    assert statuses(report) == wanted
    errors = {item["eval_id"]: item["error"] for item in report["cases"] if item["error"]}
    assert errors["raises"]["kind"] == "agent_raised"
    assert errors["dies"]["kind"] == "crashed"
    assert report["root"] == str(project.root)
    assert {item["evalset_file"] for item in report["cases"]} == {"echo/talk.evalset.json"}
    junit = Tree.parse(project.root / "junit.xml").getroot()
    assert (junit.get("tests"), junit.get("failures"), junit.get("errors")) == ("5", "1", "2")
    assert junit.findtext(".//testcase[@name='logs']/system-err") is None, "debug is not logged unless told so"
    assert only_run(project.root / ".workbench").name == report["run_id"]


def test_unjudged_criterion_exits_with_3_without_allow_not_evaluated(project: Project) -> None:
    project.evalset(GOOD)
    config = str(project.write("strict.json", NEEDS_A_SERVICE))
    code, report = project.report(".", "--config", config)
    assert (code, statuses(report)) == (3, {"good": "not_evaluated"})
    code, report = project.report(".", "--config", config, "--allow-not-evaluated")
    assert (code, statuses(report)) == (0, {"good": "passed"})
    assert report["cases"][0]["metrics"][1]["status"] == "not_evaluated", "left out of the verdict, not of the report"


@pytest.mark.parametrize("words", [["empty"], ["echo/talk.evalset.json"]], ids=["folder", "evalset"])
def test_nothing_to_run_exits_with_3(words: list[str], project: Project, here: Here) -> None:
    (project.root / "empty").mkdir()
    project.evalset()
    done = here("run", *words, "--json", "-")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["cases"] == []
    validate_report(report)
    assert done.stderr.startswith("Nothing ran: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere"),
        (["echo/tlak.evalset.json"], "talk.evalset.json"),
        (["echo/talk.evalset.json:godo"], "Did you mean good?"),
        ([".", "--case", "godo"], "good"),
        ([".", "--agent", "empty"], "empty"),
        ([".", "--config", "missing.json"], "missing.json"),
        ([".", "--config_file_path", "typo.json"], "Did you mean `response_match_score`"),
        ([".", "--config", "torn.evalset.json"], "torn.evalset.json"),
        (["torn.evalset.json"], "torn.evalset.json:2:"),
        (["echo", "torn.evalset.json:one"], "torn.evalset.json:2:"),
        ([".", "--initial-session-file", "missing.json"], "missing.json"),
        (["alone/talk.evalset.json"], "--agent"),
    ],
)
def test_wrong_command_line_exits_with_2_and_runs_nothing(
    words: list[str], said: str, project: Project, here: Here
) -> None:
    (project.root / "empty").mkdir()
    project.evalset(GOOD)
    project.write("torn.evalset.json", TORN)
    project.write("typo.json", {"criteria": {"response_mtch_score": 0.8}})
    project.write("other/agent.py", "root_agent = print")
    project.evalset(GOOD, path="alone/talk.evalset.json")
    done = here("run", *words, "--json", "-")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert said in done.stderr
    refusal = json.loads(done.stdout)
    assert list(refusal) == ["schema", "error"]
    validate_report(refusal)
    assert not (project.root / ".workbench").exists()


def test_broken_evalset_or_missing_agent_does_not_stop_other_cases(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/torn.evalset.json", TORN)
    project.write("other/agent.py", "def root_agent(message, session):\n    return message\n")
    project.evalset(GOOD, path="alone/talk.evalset.json")
    code, report = project.report(".")
    assert (code, report["summary"]["passed"]) == (3, 1)
    errors = {item["evalset_file"]: item for item in report["cases"] if item["error"]}
    assert set(errors) == {"echo/torn.evalset.json", "alone/talk.evalset.json"}
    torn = errors["echo/torn.evalset.json"]
    assert (torn["eval_id"], torn["status"], torn["error"]["kind"]) == ("", "error", "broken_file")
    assert "torn.evalset.json:2:" in torn["error"]["message"]
    lost = errors["alone/talk.evalset.json"]
    assert (lost["agent"], lost["status"]) == ("", "error")
    (project.root / "echo" / "torn.evalset.json").unlink()
    code, report = project.report(".", "--agent", "echo")
    assert (code, report["summary"]["passed"]) == (0, 2)


def test_wrong_config_is_an_error_of_its_own_cases_only(project: Project) -> None:
    project.evalset(GOOD)
    project.write("other/agent.py", ECHO)
    project.evalset(GOOD, path="other/talk.evalset.json")
    project.write("other/test_config.json", '{"criteria": {"response_match_score": NaN}}')
    for target in (".", "other/talk.evalset.json"):
        code, report = project.report(target)
        assert code == 3
        found = {item["agent"]: item for item in report["cases"]}
        assert found["other"]["error"]["kind"] == "config"
        assert found["other"]["error"]["message"].startswith("other/test_config.json:1:")
        assert target != "." or found["echo"]["status"] == "passed"
    assert project.run("score", "last").returncode == 3


def test_evalset_without_its_agent_never_runs_with_another(project: Project) -> None:
    project.write("other/agent.py", ECHO)
    project.evalset(GOOD)
    project.evalset(GOOD, path="other/talk.evalset.json")
    assert project.run("run", ".").returncode == 0
    (project.root / "other/agent.py").unlink()
    code, report = project.report(".")
    assert code == 3
    found = {item["evalset_file"]: item for item in report["cases"]}
    assert found["echo/talk.evalset.json"]["status"] == "passed"
    lost = found["other/talk.evalset.json"]
    assert (lost["agent"], lost["status"], lost["error"]["kind"]) == ("other", "error", "no_agent")
    assert "its agent other is gone" in lost["error"]["message"]
    named = project.run("run", "other/talk.evalset.json")
    assert named.returncode == 2
    assert "its agent other is gone" in named.stderr
    checked = project.run("check", ".")
    assert checked.returncode == 2
    assert "its agent other is gone" in checked.stdout
    scored = project.run("score", "last", "--plain")
    assert "ERROR other/talk/good no_agent: its agent other is gone" in scored.stdout


def test_agent_named_for_an_evalset_is_remembered(project: Project) -> None:
    project.write("other/agent.py", ECHO)
    project.evalset(GOOD, path="other/talk.evalset.json")
    assert project.run("run", ".").returncode == 0
    (project.root / "other/agent.py").unlink()
    assert project.run("run", "echo", "other/talk.evalset.json").returncode == 0
    code, report = project.report(".")
    assert code == 0
    assert [(item["agent"], item["matched_by"]) for item in report["cases"]] == [("echo", "choice")]


def test_agent_matched_by_location_is_marked_everywhere(project: Project) -> None:
    project.evalset(GOOD, path="evals/talk.evalset.json")
    done = project.run("run", ".", "--plain", "--junit", "junit.xml")
    assert "matched by location" in done.stderr
    assert "echo was matched by location: evals/talk.evalset.json" in done.stdout
    assert "matched by location" in (project.root / "junit.xml").read_text()
    _, report = project.report(".")
    assert report["cases"][0]["matched_by"] == "location"
    checked = project.run("check", ".")
    assert checked.returncode == 0
    assert "note: evals/talk.evalset.json: the evalset runs with echo, matched by location" in checked.stdout


def test_eval_accepts_the_command_line_of_adk_eval(project: Project) -> None:
    project.evalset(GOOD, BAD)
    project.write("config.json", CRITERIA)
    words = ["echo", "echo/talk.evalset.json:good", "--config_file_path", "config.json", "--print_detailed_results"]
    done = project.run("eval", *words, "--log_level", "INFO")
    assert done.returncode == 0
    assert lines_with(done.stdout, ["PASS", "FAIL"]) == ["PASS echo/talk/good response_match_score=1.0>=0.8"]
    assert "You said hello" in done.stdout, "the conversation"
    assert "config.json" in done.stdout, "where the criteria come from"
    by_id = project.run("eval", "echo", "talk:bad", "--config_file_path=config.json")
    assert by_id.returncode == 1


def test_json_on_stdout_moves_the_lines_to_stderr(project: Project) -> None:
    project.evalset(GOOD, case("prints", "print"))
    done = project.run("run", ".", "--json", "-", "--print-detailed-results")
    assert json.loads(done.stdout)["summary"]["passed"] == 2
    assert done.stdout.count("\n") == 1
    assert len(lines_with(done.stderr, ["PASS"])) == 2
    assert "─ echo › talk › good ─" in done.stderr


def test_refusal_replaces_the_report_of_an_earlier_run(project: Project) -> None:
    project.evalset(GOOD)
    old = project.write("report.json", {"summary": {"passed": 1}})
    assert project.run("run", "echo/talk.evalset.json:godo", "--json", "report.json").returncode == 2
    assert list(json.loads(old.read_text("utf-8"))) == ["schema", "error"]


def test_report_through_a_link_to_nothing_is_refused_before_the_run(project: Project) -> None:
    project.write("echo/talk.evalset.json", {"eval_set_id": "talk", "eval_cases": [GOOD]})
    for name, target in (("circle.json", "circle.json"), ("nothing.json", "absent.json")):
        (project.root / name).symlink_to(project.root / target)
        done = project.run("run", ".", "--json", name)
        assert done.returncode == 2
        assert f"--json {name}: it is a link to a file that does not exist" in done.stderr


def test_unwritable_report_exits_with_3(project: Project) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    project.evalset(GOOD)
    done = project.run("run", ".", "--json", "/dev/full")
    assert done.returncode == 3
    assert "--json /dev/full: No space left" in done.stderr


def test_run_accepts_repeats_a_state_folder_and_files_with_warnings(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = {"eval_set_id": "talk", "desciption": "of the set", "eval_cases": [GOOD]}
    project.write("echo/talk.evalset.json", content)
    state = tmp_path_factory.mktemp("state") / "kept"
    done = project.run("run", ".", "--runs", "3", "--state-dir", str(state), "--json", "-")
    assert done.returncode == 0
    assert "warning: echo/talk.evalset.json:1:" in done.stderr
    assert "desciption" in done.stderr
    report = json.loads(done.stdout)
    assert sorted(item["repeat"] for item in report["cases"]) == [1, 2, 3]
    assert report["summary"]["total"] == 3
    assert only_run(state).name == report["run_id"]
    assert not (project.root / ".workbench").exists()


def test_log_level_reaches_the_agents(project: Project) -> None:
    project.evalset(case("logs", "log"))
    assert project.run("run", ".", "--junit", "loud.xml", "--log_level", "debug").returncode == 0
    (logs,) = Tree.parse(project.root / "loud.xml").iter("testcase")
    assert logs.get("name") == "logs"
    assert str(logs.findtext("system-err")).endswith(" - DEBUG - agent.py:13 - looked twice\n")


def test_text_of_agents_and_files_cannot_control_the_terminal(project: Project) -> None:
    project.evalset(RAISES, case("\x1b[2J\u202eid", "print"), path="echo/[bold]\x1b[31m.evalset.json")
    done = project.run("run", ".", "--print-detailed-results", "--junit", "junit.xml")
    assert done.returncode == 3
    assert "␛[2J" in done.stdout
    assert not leaks(done.stdout + done.stderr)
    printed = Tree.parse(project.root / "junit.xml").getroot().findtext(".//system-out")
    assert printed == "to the log ␛]0;title␇\n"


def test_c_locale_terminal_gets_ascii(project: Project) -> None:
    project.evalset(case("日本", answer="まったく違う"))
    environment = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "LANG": "C"}
    process = project.start("run", ".", "--print-detailed-results", environment=environment)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert b"Traceback" not in err
    assert "FAIL echo/talk/\\u65e5\\u672c" in out.decode("ascii")


def test_vanished_reader_does_not_affect_the_run(project: Project) -> None:
    project.evalset(*(case(f"case_{number}") for number in range(20)), BAD)
    reading, writing = os.pipe()
    process = project.start("run", ".", "--json", "report.json", stdout=writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.readline().startswith(b"PASS")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"")
    assert json.loads((project.root / "report.json").read_text("utf-8"))["summary"]["total"] == 21


@pytest.mark.parametrize("words", [["--plain"], ["--json", "-"]])
def test_full_disk_exits_with_3(words: list[str], project: Project) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    project.evalset(GOOD, case("prints", "print"))
    with Path("/dev/full").open("w") as full:
        process = project.start("run", ".", "--junit", "junit.xml", *words, stdout=full.fileno())
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert err.count(b"No space left") == 1
    assert b"bug in the workbench" not in err
    assert (project.root / "junit.xml").exists()


def test_closed_standard_streams_do_not_stop_a_run(project: Project) -> None:
    project.evalset(GOOD, case("prints", "print"))
    command = f"exec {sys.executable} -m workbench run . --json report.json <&- >&- 2>&-"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(["/bin/sh", "-c", command], cwd=project.root, env=environment, check=False, timeout=60)
    assert done.returncode == 0
    assert json.loads((project.root / "report.json").read_text("utf-8"))["summary"]["passed"] == 2
