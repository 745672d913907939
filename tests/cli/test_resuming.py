"""A killed run continues where it stopped, or says why it does not. Two runs at once do not affect each other."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import BAD, GOOD, RAISES, WAITS, Project, case, heard, statuses

pytestmark = pytest.mark.usefixtures("warm_programs")

ASKED = """
def noted(agent):
    def ask(message, session):
        with open(os.environ["ASKED"], "a") as asked:
            asked.write(message + "\\n")
        return agent(message, session)
    return ask

root_agent = noted(root_agent)
"""


class Killed:
    """A run of one case at a time, killed while the one that waits is running. `asked` is what the agent was told."""

    def __init__(self, project: Project, *words: str) -> None:
        self.project = project
        project.write("echo/agent.py", (project.root / "echo/agent.py").read_text() + ASKED)
        project.evalset(GOOD, BAD, RAISES, WAITS, case("later", "later"))
        self.started, self.go_on = project.root / "started", project.root / "go_on"
        os.mkfifo(self.started)
        os.mkfifo(self.go_on)
        self.asked = project.root / "asked.log"
        self.environment = {"STARTED": str(self.started), "GO_ON": str(self.go_on), "ASKED": str(self.asked)}
        self.process = project.start("run", ".", "--concurrency", "1", *words, environment=self.environment)
        heard(self.started, self.process)
        assert self.process.stdout is not None
        shown = b""
        # What is shown is kept: else the kill may come between the end of a case and its line in the journal.
        while b"\nERROR" not in b"\n" + shown:
            shown += os.read(self.process.stdout.fileno(), 1 << 16) or pytest.fail(f"it ended after {shown!r}")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def again(self, *words: str) -> tuple[str, str, dict[str, Any]]:
        """Run it once more to its end. Return standard output, standard error and the report."""
        process = self.project.start("run", ".", "--json", "r.json", *words, environment=self.environment)
        heard(self.started, process)
        self.go_on.write_text("go on\n")
        out, err = process.communicate(timeout=60)
        return out.decode(), err.decode(), json.loads((self.project.root / "r.json").read_text("utf-8"))


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    found = Killed(Project(tmp_path))
    yield found
    if found.process.poll() is None:
        found.kill()


def test_killed_shard_is_resumed_only_as_the_same_shard(tmp_path: Path) -> None:
    killed = Killed(Project(tmp_path), "--shard", "1/1")
    killed.kill()
    _, err, report = killed.again()
    assert "resuming" not in err
    assert "shard" not in report
    refused = killed.project.run("merge", ".")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "(shard 1/1) has not ended: it was killed" in refused.stderr
    _, err, report = killed.again("--shard", "1/1")
    assert f"resuming {report['run_id']}: " in err
    assert report["shard"]["executions"] == len(report["cases"]) == 5
    merged = killed.project.run("merge", ".", "--json", "-")
    assert merged.returncode == 3
    assert json.loads(merged.stdout)["summary"] == report["summary"]


def test_killed_shard_is_not_resumed_after_its_files_change(tmp_path: Path) -> None:
    killed = Killed(Project(tmp_path), "--shard", "1/1")
    killed.kill()
    killed.project.write("echo/notes.py", "more = 1")
    _, err, _ = killed.again("--shard", "1/1")
    assert "was interrupted and is not resumed: other files: echo/notes.py was added" in err


def test_finished_cases_are_not_run_again(killed: Killed) -> None:
    killed.kill()
    out, err, report = killed.again()
    run_id = report["run_id"]
    assert f"resuming {run_id}: " in err
    assert " of 5 cases have results" in err
    asked = killed.asked.read_text().split()
    # Both that are left are asked at the same time.
    assert (asked[:4], sorted(asked[4:])) == (["hello", "hello", "raise", "wait"], ["later", "wait"])
    wanted = {"good": "passed", "bad": "failed", "raises": "error", "waits": "passed", "later": "passed"}
    assert statuses(report) == wanted
    ended = [line.split()[0] for line in out.splitlines() if line.startswith(("PASS", "FAIL", "ERROR"))]
    assert sorted(ended[:5]) == ["ERROR", "FAIL", "PASS", "PASS", "PASS"]
    listed = killed.project.run("history").stdout.splitlines()
    assert len(listed) == 1, "it is one run"
    assert "3 passed, 1 failed, 1 error in" in listed[0]
    exported = json.loads(killed.project.run("export", "last", "--format", "json").stdout)
    assert statuses(exported) == wanted
    # It has come to its end: the next one is a new run.
    assert killed.again()[2]["run_id"] != run_id


def test_status_shows_the_verdict_that_was_made_last(killed: Killed) -> None:
    killed.kill()
    agent = killed.project.root / "echo/agent.py"
    source = agent.read_text()
    killed.project.write("echo/agent.py", source.replace("You said", "Nobody said"))
    for name in ("bad", "later"):
        words = "run", f"echo/talk.evalset.json:{name}"
        assert killed.project.run(*words, environment=killed.environment).returncode == 1
    agent.write_text(source)
    run_id = killed.again()[2]["run_id"]
    shown = killed.project.run("status", "--json", environment=killed.environment)
    found = json.loads(shown.stdout)["cases"]
    last = {one["eval_id"]: (one["status"], one["run_id"] == run_id, one["stale"]) for one in found}
    assert last["later"] == ("passed", True, False), "it was resumed after the run of this case"
    assert last["bad"] == ("failed", False, True), "it was decided before"


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("echo/prompt.txt", "Be kind.", "echo/prompt.txt is new"),
        (
            "echo/test_config.json",
            '{"criteria": {"response_match_score": 0.1}}',
            "criteria: response_match_score threshold",
        ),
        ("echo/.env", "MODEL_NAME=other", ".env MODEL_NAME"),
    ],
)
def test_changed_input_is_named_and_starts_a_new_run(killed: Killed, path: str, content: str, why: str) -> None:
    killed.kill()
    killed.project.write(path, content)
    _, err, _ = killed.again()
    assert "is not resumed: " in err
    assert why in err
    assert killed.asked.read_text().split().count("later") == 1
    assert killed.asked.read_text().split().count("raise") == 2


def test_run_with_another_timeout_is_not_resumed(killed: Killed) -> None:
    killed.kill()
    _, err, _ = killed.again("--timeout", "60")
    assert "is not resumed: --timeout" in err


def test_fresh_starts_a_new_run(killed: Killed) -> None:
    killed.kill()
    _, err, _ = killed.again("--fresh")
    assert "resum" not in err
    assert killed.asked.read_text().split().count("raise") == 2


def test_active_run_is_neither_resumed_nor_deleted(killed: Killed) -> None:
    done = killed.project.run("run", ".", "--case", "good", environment=killed.environment)
    assert done.returncode == 0
    ids = [run["run_id"] for run in json.loads(killed.project.run("history", "--json").stdout)["runs"]]
    deleted = killed.project.run("history", "delete", ids[-1])
    assert f"{ids[-1]} was not deleted" in deleted.stderr
    assert killed.project.run("history", "--keep", "0").stdout == f"deleted {ids[0]}\n"
    killed.go_on.write_text("go on\n")
    out, _ = killed.process.communicate(timeout=60)
    assert b"5 cases" in out
    assert killed.project.run("history").stdout.startswith(ids[-1])
