"""`history` from the shell: the list, deleting, pinning, and what is refused."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.projects import BAD, GOOD, Project
from tests.schemas import SCHEMAS
from tests.stored import only_run
from workbench.store.history.run_writer import RunWriter


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--plain")
    return project


def test_runs_are_listed_pinned_and_deleted(project: Project) -> None:
    listed = project.run("history")
    assert listed.returncode == 0
    (line,) = listed.stdout.splitlines()
    assert "echo: 1 passed, 1 failed in " in line
    run_id = line.split()[0]
    project.run("run", ".", "--plain")
    assert project.run("history", "pin", run_id).stdout == f"{run_id} is the baseline\n"
    report = json.loads(project.run("history", "--json").stdout)
    jsonschema.validate(report, SCHEMAS["history"](), cls=jsonschema.Draft202012Validator)
    runs = report["runs"]
    assert [run["baseline"] for run in runs] == [False, True]
    assert project.run("history", "--keep", "0").stdout == f"deleted {runs[0]['run_id']}\n"
    assert "baseline" in project.run("history").stdout
    assert project.run("history", "--limit", "0").stderr == "", "no run is listed, but one is stored"
    assert project.run("history", "delete", "baseline").stdout == f"deleted {run_id}\n"
    empty = project.run("history")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "No run is stored" in empty.stderr


def test_json_of_history_lists_the_runs_that_are_left(project: Project) -> None:
    first = project.run("history").stdout.split()[0]
    pinned = project.run("history", "pin", "last", "--json")
    assert [run["baseline"] for run in json.loads(pinned.stdout)["runs"]] == [True]
    assert pinned.stderr == f"{first} is the baseline\n"
    project.run("run", ".", "--plain")
    kept = project.run("history", "--keep", "0", "--json")
    assert [run["run_id"] for run in json.loads(kept.stdout)["runs"]] == [first]
    assert kept.stderr.startswith("deleted ")
    writer = RunWriter.reopen(only_run(project.root / ".workbench"))
    assert writer is not None
    failed = project.run("history", "delete", "last", "--json")
    assert (failed.returncode, json.loads(failed.stdout)["error"]["message"]) == (2, "not every run was deleted")
    writer.release()
    assert json.loads(project.run("history", "delete", "last", "--json").stdout)["runs"] == []


def test_active_run_is_not_deleted_and_exits_with_2(project: Project) -> None:
    path = only_run(project.root / ".workbench")
    writer = RunWriter.reopen(path)
    assert writer is not None
    done = project.run("history", "delete", "last")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{path.name} was not deleted: it is still being written, or deleting failed\n"
    kept = project.run("history", "--keep", "0")
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "nothing was deleted\n")
    writer.release()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["delete"], "takes one run or more"),
        (["delete", "9999"], "no run 9999 found"),
        (["nowhere"], "nowhere does not exist"),
        (["", "--keep", "0"], "a path is empty"),
        (["pin", "baseline"], "no baseline is set"),
        (["--keep", "x"], "--keep"),
        (["delete", "last", "--keep", "1"], "--keep cannot be combined"),
    ],
    ids=" ".join,
)
def test_wrong_command_line_is_refused(project: Project, words: list[str], said: str) -> None:
    done = project.run("history", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(project.run("history").stdout.splitlines()) == 1
