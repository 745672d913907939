"""`status` from the shell: last verdicts, which are stale, and why."""

import contextlib
import json
import sqlite3
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, Project, PutBack, case
from tests.hostile import HOSTILE
from tests.schemas import SCHEMAS
from tests.stored import only_run

Status = Callable[..., dict[str, Any]]
CONFIG = {"criteria": {"response_match_score": 0.5}}


def prepare(project: Project) -> None:
    project.write("echo/test_config.json", CONFIG)
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--plain")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    return PutBack(tmp_path_factory.mktemp("status"), prepare)


@pytest.fixture
def project(kept: PutBack) -> Project:
    """Replace the empty project by one with a run."""
    return kept.project()


@pytest.fixture
def status(here: Here) -> Status:
    def call(*words: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(here("status", "--json", *words).stdout)
        jsonschema.validate(data, SCHEMAS["status"](), cls=jsonschema.Draft202012Validator)
        return data

    return call


def test_fresh_verdicts_have_a_line_each_and_no_reason(here: Here) -> None:
    done = here("status")
    assert (done.returncode, done.stderr) == (0, "2 cases, 0 stale\n")
    assert done.stdout == "PASS echo/talk/good\nFAIL echo/talk/bad\n"
    assert here("status", "--fail-stale").returncode == 0


def test_case_has_exactly_the_keys_of_the_contract(status: Status, project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.6}})
    found = status()
    assert (found["schema"], found["root"]) == ("agent-workbench/status/1", str(project.root))
    first = found["cases"][0]
    assert list(first) == [
        "agent", "evalset_file", "eval_set_id", "eval_id", "status", "run_id", "stale", "frozen", "judged_by",
        "place", "unseen", "changed",
    ]  # fmt: skip
    assert (first["status"], first["stale"], first["judged_by"]) == ("passed", True, None)
    assert first["run_id"] == only_run(project.root / ".workbench").name
    assert [change["input"] for change in first["changed"]] == ["criteria"]


def test_stale_verdict_is_named_with_its_reason(here: Here, project: Project) -> None:
    project.write("echo/agent.py", "def root_agent(message, session):\n    return 'no'\n")
    done = here("status")
    assert (done.returncode, done.stderr) == (0, "2 cases, 2 stale\n")
    assert done.stdout.splitlines()[0].startswith("PASS echo/talk/good stale: echo")
    assert here("status", "--fail-stale").returncode == 1
    assert here("status", "--fail-stale", "--json").returncode == 1


def test_case_without_a_verdict_is_not_stale(here: Here, status: Status, project: Project) -> None:
    project.evalset(GOOD, BAD, case("new"))
    assert "NOT_RUN echo/talk/new\n" in here("status").stdout
    assert here("status", "--fail-stale").returncode == 0
    new = status()["cases"][2]
    wanted: dict[str, Any] = {"eval_id": "new", "status": None, "run_id": None, "stale": False, "changed": []}
    assert {name: new[name] for name in wanted} == wanted


@pytest.mark.parametrize("path", [".", "echo", "echo/talk.evalset.json"])
def test_folder_agent_and_evalset_paths_list_the_same_cases(status: Status, path: str) -> None:
    assert [item["eval_id"] for item in status(path)["cases"]] == ["good", "bad"]


def test_broken_file_affects_only_its_own_entry(here: Here, status: Status, project: Project) -> None:
    project.write("echo/broken.evalset.json", '{"eval_cases": [')
    lines = here("status").stdout.splitlines()
    assert lines[0].startswith("NOT_RUN echo/broken.evalset.json broken file: echo/broken.evalset.json:1:16")
    assert lines[1:] == ["PASS echo/talk/good", "FAIL echo/talk/bad"]
    found = {item["eval_id"]: item["status"] for item in status()["cases"]}
    assert found == {"": None, "good": "passed", "bad": "failed"}


def test_damaged_database_has_no_verdicts(here: Here, project: Project) -> None:
    for log in (project.root / ".workbench").glob("runs.db-*"):
        log.unlink()  # Its rows could still be read.
    (project.root / ".workbench/runs.db").write_bytes(b"\xff{")
    assert here("status").stdout == "NOT_RUN echo/talk/good\nNOT_RUN echo/talk/bad\n"


def test_control_codes_in_case_names_do_not_reach_the_terminal(here: Here, project: Project) -> None:
    project.evalset(*(case(name) for name in HOSTILE))
    out = here("status").stdout
    assert len(out.splitlines()) == len(set(HOSTILE))
    assert not {letter for letter in out if ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0} - {"\n"}


def test_status_writes_no_file(here: Here, project: Project) -> None:
    def everything() -> set[tuple[Path, int]]:
        files = {path for path in project.root.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
        # SQLite makes an empty log when it opens a database to read.
        files = {path for path in files if path.suffix != ".db-wal" or path.stat().st_size}
        return {(path, path.stat().st_mtime_ns) for path in files}

    before = everything()
    here("status")
    here("status", "--json", ".")
    assert everything() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothere",), "nothere does not exist"),
        ((".", "echo"), "give one path; 'echo' is a second one"),
        (("--state-dir", "echo/agent.py"), "is not a folder"),
        (("--fresh",), "No such option"),
    ],
)
def test_wrong_command_line_is_refused(here: Here, words: tuple[str, ...], said: str) -> None:
    done = here("status", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


READING = """
    import sqlite3, subprocess, sys
    from pathlib import Path

    def root_agent(message, session):
        database = sqlite3.connect(Path(__file__).parent / "rows.db")
        if "child" in message:
            subprocess.run([sys.executable, "-c", ""])
        return str(database.execute("select count(*) from t").fetchone())
"""


def test_changed_row_of_a_database_makes_its_cases_stale(here: Here, status: Status, project: Project) -> None:
    def write() -> None:
        with contextlib.closing(sqlite3.connect(project.root / "echo/rows.db")) as database, database:
            database.execute("create table if not exists t (v)")
            database.execute("insert into t values (1)")

    project.write("echo/agent.py", textwrap.dedent(READING))
    project.evalset(case("row", "row"), case("child", "child"))
    write()
    here("run", ".", "--plain")
    found = {one["eval_id"]: (one["stale"], one["unseen"]) for one in status()["cases"]}
    assert found == {"row": (False, []), "child": (False, ["child programs"])}
    assert "echo/talk/child (cannot see: child programs)\n" in here("status").stdout
    write()
    assert [one["changed"][0]["name"] for one in status()["cases"]] == ["echo/rows.db"] * 2
