"""Signals to a real run: what ends, what is kept, and what the exit code says."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import GOOD, REPOSITORY, WAITS, Project, case, heard, statuses
from tests.schemas import validate_report
from tests.stored import only_run, sql
from workbench.__main__ import execute
from workbench.project.project import Project as Opened
from workbench.project.running import Running
from workbench.run.plan.plan import Plan

pytestmark = pytest.mark.usefixtures("warm_programs")


class Waiting:
    """A run of one case at a time: one that is over, one that runs until it is told to go on, one that is queued."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.evalset(GOOD, WAITS, case("later"))
        self._started, self._go_on = project.root / "started", project.root / "go_on"
        os.mkfifo(self._started)
        os.mkfifo(self._go_on)
        self.environment = {"STARTED": str(self._started), "GO_ON": str(self._go_on)}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "subprocess.Popen[bytes]":
        """Return once the second case is running."""
        words = ["run", ".", "--concurrency", "1", "--json", "report.json", "--junit", "junit.xml"]
        self.process = self.project.start(*words, environment=self.environment)
        self.wait()
        return self.process

    def wait(self) -> None:
        assert self.process is not None
        assert heard(self._started, self.process) == "running\n"

    def go_on(self) -> None:
        with self._go_on.open("w") as file:
            file.write("go on\n")

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.project.root / "report.json").read_text("utf-8"))
        validate_report(report)
        return report


@pytest.fixture
def waiting(project: Project) -> Iterator[Waiting]:
    found = Waiting(project)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.communicate()


def said(process: "subprocess.Popen[bytes]", word: bytes, *, out: bool = False) -> None:
    """Read standard error, or standard output, up to `word`."""
    stream = process.stdout if out else process.stderr
    assert stream is not None
    heard = b""
    while word not in heard:
        part = os.read(stream.fileno(), 1000)
        assert part, f"ended without {word!r}: {heard!r}"
        heard += part


def test_first_ctrl_c_lets_running_cases_finish(waiting: Waiting) -> None:
    process = waiting.start()
    process.send_signal(signal.SIGINT)
    said(process, b"No new cases")
    waiting.go_on()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"PASS echo/talk/waits" in out
    assert b"CANCELLED echo/talk/later\n" in out
    assert b"interrupted, 3 cases" in out
    report = waiting.report()
    assert statuses(report) == {"good": "passed", "waits": "passed", "later": "cancelled"}
    assert report["cases"][-1]["error"]["kind"] == "cancelled"
    assert b"later" in (waiting.project.root / "junit.xml").read_bytes()


def test_ctrl_c_before_the_run_begins_writes_no_report(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.evalset(GOOD)
    run = Opened.run

    def interrupted(opened: Opened, plan: Plan) -> Running:
        signal.raise_signal(signal.SIGINT)
        return run(opened, plan)

    monkeypatch.setattr(Opened, "run", interrupted)
    monkeypatch.chdir(project.root)
    assert execute(["run", ".", "--json", "report.json"]) == 130
    assert not (project.root / "report.json").exists()


def test_second_ctrl_c_kills_running_cases(waiting: Waiting) -> None:
    process = waiting.start()
    process.send_signal(signal.SIGINT)
    said(process, b"No new cases")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    report = waiting.report()
    assert statuses(report) == {"good": "passed", "waits": "cancelled", "later": "cancelled"}
    assert {item["error"]["kind"] for item in report["cases"] if item["error"]} == {"cancelled"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_still_writes_the_report(number: signal.Signals, waiting: Waiting) -> None:
    process = waiting.start()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert statuses(waiting.report()) == {"good": "passed", "waits": "cancelled", "later": "cancelled"}


def test_sigint_stops_a_background_job_of_a_script(waiting: Waiting) -> None:
    """Shells start background jobs with SIGINT ignored."""
    script = f"trap '' INT; exec {sys.executable} -m workbench run . --concurrency 1 --json report.json"
    process = subprocess.Popen(
        ["/bin/sh", "-c", script],
        cwd=waiting.project.root,
        env={**os.environ, **waiting.environment, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    waiting.process = process
    waiting.wait()
    process.send_signal(signal.SIGINT)
    said(process, b"No new cases")
    waiting.go_on()
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_timeout_still_applies_after_ctrl_c(project: Project) -> None:
    waiting = Waiting(project)
    project.evalset(WAITS, case("later"))
    words = ["run", ".", "--concurrency", "1", "--timeout", "3", "--json", "report.json"]
    process = waiting.process = project.start(*words, environment=waiting.environment)
    waiting.wait()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    errors = {item["eval_id"]: item["error"]["kind"] for item in waiting.report()["cases"] if item["error"]}
    assert errors == {"waits": "timeout", "later": "cancelled"}


def test_kill_leaves_shown_verdicts_on_disk(waiting: Waiting) -> None:
    process = waiting.start()
    said(process, b"PASS echo/talk/good", out=True)
    process.kill()
    process.communicate(timeout=60)
    state = waiting.project.root / ".workbench"
    assert only_run(state)
    assert sql(state, "SELECT status FROM execution WHERE eval_id = 'good'") == [("passed",)]


def test_unwritable_run_folder_is_reported(project: Project, tmp_path: Path) -> None:
    project.evalset(GOOD)
    (project.root / ".workbench").symlink_to(tmp_path / "nowhere" / "at all")
    done = project.run("run", ".")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: ")
    assert "memory" in done.stderr
