"""`agent-workbench migrate`, from outside."""

import json
import stat
from pathlib import Path

import pytest

from tests.cli.projects import Project

OLD = [{"query": "hello", "reference": "You said hello", "expected_tool_use": [], "note": "mine"}]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _write(project: Project, path: str = "echo/talk.test.json") -> Path:
    return project.write(path, json.dumps(OLD))


def test_in_place_the_old_file_is_kept_beside_it_and_the_new_one_passes(project: Project) -> None:
    file = _write(project)
    before = file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json")
    assert done.returncode == 0, done.stderr
    assert file.with_name("talk.test.json.old").read_bytes() == before
    assert "not carried over" in done.stderr
    assert "`note`" in done.stderr
    code, report = project.report("echo")
    assert (code, report["summary"]["passed"]) == (0, 1)


def test_to_another_file(project: Project) -> None:
    file = _write(project)
    before = file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json", "-o", "echo/new.evalset.json")
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == before
    assert json.loads((project.root / "echo/new.evalset.json").read_text())["eval_set_id"] == "new"


def test_a_dry_run_shows_the_file_and_writes_nothing(project: Project) -> None:
    file = _write(project)
    before = sorted(project.root.rglob("*")), file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json", "--dry-run")
    assert done.returncode == 0
    shown = done.stdout
    assert (sorted(project.root.rglob("*")), file.read_bytes()) == before
    project.run("migrate", "echo/talk.test.json")
    assert file.read_text() == shown


def test_a_second_time_there_is_nothing_to_do(project: Project) -> None:
    file = _write(project)
    project.run("migrate", "echo/talk.test.json")
    before = file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json")
    assert (done.returncode, file.read_bytes()) == (0, before) or "exists already" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["echo/none.test.json"], "no such file"),
        (["echo/broken.test.json"], "`query` is missing"),
        (["echo/talk.test.json", "-o", "echo/agent.py"], "exists already"),
        (["echo/talk.test.json", "-o", "nowhere/new.json"], "cannot be written"),
        (["echo/talk.test.json", "--initial-session-file", "none.json"], "no such file"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(project: Project, words: list[str], said: str) -> None:
    file = _write(project)
    project.write("echo/broken.test.json", json.dumps([{"reference": "x"}]))
    before = sorted(project.root.rglob("*")), file.read_bytes()
    done = project.run("migrate", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert (sorted(project.root.rglob("*")), file.read_bytes()) == before


def test_the_new_file_has_ordinary_permissions(project: Project) -> None:
    file = _write(project)
    file.chmod(0o640)
    project.run("migrate", "echo/talk.test.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
