"""Which cases `run` starts and what it prints with `-k`, `--last-failed`, `-x` and `-q`; and its help."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, RAISES, WAITS, Project, case, heard, statuses
from tests.cli.test_run_interrupted import said
from tests.cli.test_run_terminal import on_a_terminal
from workbench.cli.run_command import run_command

pytestmark = pytest.mark.usefixtures("warm_programs")

LATER = case("later")


def report_of(project: Project, *words: str) -> tuple[int, dict[str, str], str]:
    """Return exit code, status of each case and standard error of `run . words --json -`."""
    done = project.run("run", ".", *words, "--json", "-")
    return done.returncode, statuses(json.loads(done.stdout)), done.stderr


def last_verdicts(project: Project) -> dict[str, Any]:
    done = project.run("status", "--json")
    return {one["eval_id"]: one["status"] for one in json.loads(done.stdout)["cases"]}


# -x


def test_x_starts_no_case_after_the_first_that_did_not_pass(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES, LATER)
    done = project.run("run", ".", "-x", "--concurrency", "1", "--json", "report.json", "--junit", "junit.xml")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["PASS", "FAIL"]
    assert "CANCELLED" not in done.stdout
    assert done.stdout.splitlines()[-2] == "-x: no case started after echo/talk/bad."
    assert done.stdout.splitlines()[-1].startswith("2 cases in ")
    report = json.loads((project.root / "report.json").read_text("utf-8"))
    assert statuses(report) == {"good": "passed", "bad": "failed"}
    assert report["summary"]["total"] == 2
    assert (project.root / "junit.xml").read_text("utf-8").count("<testcase") == 2
    stored = json.loads(project.run("export", "last", "--format", "json", "-o", "-").stdout)
    assert statuses(stored) == {"good": "passed", "bad": "failed"}
    assert last_verdicts(project) == {"good": "passed", "bad": "failed", "raises": None, "later": None}


def test_case_left_out_by_x_keeps_its_earlier_verdict(project: Project) -> None:
    project.evalset(GOOD, LATER)
    assert project.run("run", ".").returncode == 0
    project.evalset(BAD, LATER)
    assert project.run("run", ".", "-x", "--concurrency", "1").returncode == 1
    assert last_verdicts(project) == {"bad": "failed", "later": "passed"}


def test_x_without_a_failure_runs_all_cases(project: Project) -> None:
    project.evalset(GOOD, LATER)
    done = project.run("run", ".", "-x")
    assert (done.returncode, "-x:" in done.stdout) == (0, False)
    assert done.stdout.splitlines()[-1].startswith("2 cases in ")


def test_run_stopped_by_x_is_not_resumed(project: Project) -> None:
    project.evalset(BAD, LATER)
    for _ in range(2):
        code, found, err = report_of(project, "-x", "--concurrency", "1")
        assert (code, found, "resuming" in err) == (1, {"bad": "failed"}, False)


def test_broken_file_ends_a_run_with_x(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/torn.evalset.json", '{"eval_set_id": "torn", "eval_cases": [')
    code, found, _ = report_of(project, "-x")
    assert (code, found) == (3, {"echo/torn.evalset.json": "error"})


def test_failed_repeat_ends_a_run_with_x(project: Project) -> None:
    project.evalset(GOOD, BAD, LATER)
    done = project.run("run", ".", "-x", "--concurrency", "1", "--runs", "2", "--json", "-")
    repeats = [(item["eval_id"], item["repeat"]) for item in json.loads(done.stdout)["cases"]]
    assert repeats == [("good", 1), ("good", 2), ("bad", 1)]


def test_low_pass_rate_ends_a_run_with_x_and_until_sure(project: Project) -> None:
    project.evalset(GOOD, BAD)
    done = project.run("run", ".", "-x", "--concurrency", "1", "--until-sure", "0.9", "--json", "-")
    repeats = [(item["eval_id"], item["repeat"]) for item in json.loads(done.stdout)["cases"]]
    assert sorted(repeats) == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1), ("good", 2), ("good", 3)]
    assert done.returncode == 3, "good is undecided"


def test_x_starts_no_fault_matrix_after_a_failure_without_faults(project: Project) -> None:
    project.evalset(GOOD, BAD, LATER)
    code, found, err = report_of(project, "-x", "--concurrency", "1", "--inject", "matrix")
    assert (code, found) == (1, {"good": "passed", "bad": "failed"})
    assert "to see which tools are called" in err
    assert "no case calls a tool" not in err


class Beside:
    """A run with `-x` of two cases at a time: one fails while the other runs until it is told to go on."""

    def __init__(self, project: Project) -> None:
        self._project = project
        project.evalset(WAITS, BAD, LATER, case("last"))
        self._started, self._go_on = project.root / "started", project.root / "go_on"
        os.mkfifo(self._started)
        os.mkfifo(self._go_on)

    def start(self) -> "subprocess.Popen[bytes]":
        """Return once the second case has failed."""
        environment = {"STARTED": str(self._started), "GO_ON": str(self._go_on)}
        words = ["run", ".", "-x", "--concurrency", "2", "--json", "report.json"]
        process = self._project.start(*words, environment=environment)
        assert heard(self._started, process) == "running\n"
        assert process.stdout is not None
        shown = b""
        while b"FAIL echo/talk/bad" not in shown:
            shown += os.read(process.stdout.fileno(), 1000) or pytest.fail(f"it ended after {shown!r}")
        return process

    def go_on(self) -> None:
        self._go_on.write_text("go on\n")


def report_in(project: Project) -> dict[str, str]:
    return statuses(json.loads((project.root / "report.json").read_text("utf-8")))


def test_case_running_beside_the_failed_case_finishes(project: Project) -> None:
    beside = Beside(project)
    process = beside.start()
    beside.go_on()
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert report_in(project) == {"waits": "passed", "bad": "failed"}


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_run_with_x_interrupted_after_a_failure_is_not_resumed(project: Project, how: str) -> None:
    beside = Beside(project)
    process = beside.start()
    if how == "killed":
        process.kill()
    else:
        process.send_signal(signal.SIGINT)
        beside.go_on()
    process.communicate(timeout=60)
    process = beside.start()
    beside.go_on()
    _, err = process.communicate(timeout=60)
    assert b"resuming" not in err
    assert report_in(project) == {"waits": "passed", "bad": "failed"}


def test_run_with_x_killed_before_a_failure_is_resumed(project: Project) -> None:
    project.evalset(GOOD, WAITS, BAD, LATER)
    started, go_on = project.root / "started", project.root / "go_on"
    os.mkfifo(started)
    os.mkfifo(go_on)
    words = ["run", ".", "-x", "--concurrency", "1", "--json", "report.json"]
    environment = {"STARTED": str(started), "GO_ON": str(go_on)}
    process = project.start(*words, environment=environment)
    heard(started, process)
    process.kill()
    process.communicate()
    process = project.start(*words, environment=environment)
    heard(started, process)
    go_on.write_text("go on\n")
    _, err = process.communicate(timeout=60)
    assert b"1 of 4 cases has a result" in err
    assert process.returncode == 1
    assert report_in(project) == {"good": "passed", "waits": "passed", "bad": "failed"}
    stored = json.loads(project.run("export", "last", "--format", "json", "-o", "-").stdout)
    assert statuses(stored) == report_in(project)


# -k


@pytest.mark.parametrize("text", ["返品", "RÜCK", normalize("NFD", "rück")])
def test_k_runs_cases_whose_id_contains_the_text(project: Project, text: str) -> None:
    project.evalset(GOOD, case("返品_rückgabe"), case("返金"))
    assert report_of(project, "-k", text)[:2] == (0, {"返品_rückgabe": "passed"})


def test_k_restricts_the_named_cases(project: Project) -> None:
    project.evalset(GOOD, BAD, LATER)
    code, found, _ = report_of(project, "--case", "good", "--case", "bad", "-k", "OO")
    assert (code, found) == (0, {"good": "passed"})
    done = project.run("run", "echo/talk.evalset.json:good,bad", "-k", "later", "--json", "-")
    assert (done.returncode, statuses(json.loads(done.stdout))) == (3, {})


def test_k_without_a_matching_case_runs_nothing(project: Project) -> None:
    project.evalset(GOOD, BAD)
    done = project.run("run", ".", "-k", "goood", "--json", "-")
    assert (done.returncode, json.loads(done.stdout)["cases"]) == (3, [])
    assert done.stderr.splitlines()[:2] == ["Nothing ran: no case has goood in its name", "Did you mean good?"]


def test_empty_k_is_refused(here: Here, project: Project) -> None:
    project.evalset(GOOD)
    done = here("run", ".", "-k", "")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "Error: -k needs a text")


# --last-failed


def test_last_failed_runs_only_cases_with_a_failed_or_error_verdict(project: Project) -> None:
    project.evalset(GOOD, BAD, RAISES)
    assert project.run("run", ".").returncode == 3
    code, found, _ = report_of(project, "--last-failed")
    assert (code, found) == (3, {"bad": "failed", "raises": "error"})
    project.evalset(GOOD, case("bad"), RAISES)
    assert report_of(project, "--last-failed", "-k", "bad")[:2] == (0, {"bad": "passed"})
    assert report_of(project, "--last-failed")[1] == {"raises": "error"}


@pytest.mark.parametrize("ran_before", [False, True])
def test_last_failed_without_a_failure_runs_all_cases_and_says_so(project: Project, ran_before: bool) -> None:
    project.evalset(GOOD, LATER)
    if ran_before:
        project.run("run", ".")
    code, found, err = report_of(project, "--last-failed")
    assert (code, found) == (0, {"good": "passed", "later": "passed"})
    assert "no last verdict is failed or error, so all cases run, as in pytest" in err.splitlines()


def test_last_failed_reads_the_named_state_folder(project: Project) -> None:
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--state-dir", "kept")
    assert len(report_of(project, "--last-failed")[1]) == 2
    assert report_of(project, "--last-failed", "--state-dir", "kept")[1] == {"bad": "failed"}


@pytest.mark.parametrize("had_failed", [False, True])
def test_last_failed_takes_a_cancelled_case_only_if_its_last_verdict_failed(project: Project, had_failed: bool) -> None:
    project.evalset(BAD, *([case("waits", answer="Something else entirely")] if had_failed else []))
    project.run("run", ".")
    beside = Beside(project)
    process = beside.start()
    process.send_signal(signal.SIGINT)
    said(process, b"No new cases")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert report_in(project)["waits"] == "cancelled"
    project.evalset(case("waits"), BAD)
    assert report_of(project, "--last-failed")[1] == {"bad": "failed", **({"waits": "passed"} if had_failed else {})}


# -q


def test_q_prints_only_the_summary(project: Project) -> None:
    project.evalset(GOOD, BAD)
    done = project.run("run", ".", "-q")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["", "Failures:", "  echo/talk/bad"]
    assert lines[-1].startswith("2 cases in ")
    assert not any(line.startswith(("PASS", "FAIL")) for line in lines)


def test_q_leaves_standard_output_to_the_report(project: Project) -> None:
    project.evalset(GOOD)
    done = project.run("run", ".", "-q", "--json", "-")
    assert statuses(json.loads(done.stdout)) == {"good": "passed"}
    (summary,) = filter(None, done.stderr.splitlines())
    assert summary.startswith("1 case in ")


def test_q_draws_no_progress_on_a_terminal(project: Project) -> None:
    project.evalset(GOOD, BAD)
    code, sent = on_a_terminal(project, "run", ".", "-q", environment={"NO_COLOR": "1"})
    assert code == 1
    assert b"Failures:" in sent
    assert b"2 cases in " in sent
    for absent in (b"PASS", b"FAIL", b"starting", b"Next:"):
        assert absent not in sent


# Refusals and help


@pytest.mark.parametrize(
    "words",
    [
        ["--shard", "1/2", "-x"],
        ["--shard", "1/2", "--last-failed"],
        ["--shard", "1/2", "--until-sure", "0.9"],
        ["--watch", "-x"],
    ],
)
def test_options_that_exclude_each_other_are_refused(here: Here, project: Project, words: list[str]) -> None:
    project.evalset(GOOD)
    done = here("run", ".", *words)
    assert done.returncode == 2
    assert f"{words[0]} cannot be used with {words[2 if words[0] == '--shard' else 1]}" in done.stderr
    assert not Path(project.root / ".workbench").exists()


def test_help_shows_each_option_in_one_group(here: Here) -> None:
    text = here("run", "--help").stdout
    titles = ["What runs", "How it is judged", "What is written", "Where it runs", "Recordings", "Help"]
    places = [text.index(f"\n{title}:\n") for title in titles]
    assert places == sorted(places)
    rows = [line.split()[0].rstrip(",") for line in text[places[0] :].splitlines() if line.startswith("  -")]
    shown = [option.opts[0] for option in run_command.params if not getattr(option, "hidden", True)]
    assert sorted(rows) == sorted([*shown, "-h"])
