"""`agent-workbench migrate`, from outside."""

import errno
import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import GOOD, Project

OLD = [{"query": "hello", "reference": "You said hello", "expected_tool_use": [], "note": "mine"}]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _write(project: Project, path: str = "echo/talk.test.json") -> Path:
    return project.write(path, json.dumps(OLD))


def test_converted_file_passes_and_the_old_one_is_saved(project: Project) -> None:
    file = _write(project)
    before = file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json")
    assert done.returncode == 0, done.stderr
    assert file.with_name("talk.test.json.old").read_bytes() == before
    assert "not carried over" in done.stderr
    assert "`note`" in done.stderr
    code, report = project.report("echo")
    assert (code, report["summary"]["passed"]) == (0, 1)


def test_conversion_that_could_not_be_written_can_be_tried_again(
    project: Project, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _write(project)
    before = file.read_bytes()

    def on_full_disk(path: Path, content: bytes) -> None:
        if content != before:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        path.write_bytes(content)

    with monkeypatch.context() as full:
        full.setattr("workbench.cli.migrate_command.replace_content", on_full_disk)
        assert here("migrate", "echo/talk.test.json").returncode == 2
    assert file.read_bytes() == before
    assert here("migrate", "echo/talk.test.json").returncode == 0


def test_lost_json_of_migrate_exits_with_2(project: Project) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    _write(project)
    with Path("/dev/full").open("w") as full:
        process = project.start("migrate", ".", "--json", stdout=full.fileno())
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err


def test_old_content_is_not_saved_through_a_link(project: Project) -> None:
    file = _write(project)
    before = file.read_bytes()
    outside = project.root / "outside"
    file.with_name("talk.test.json.old").symlink_to(outside)
    assert project.run("migrate", "echo/talk.test.json").returncode == 2
    done = project.run("migrate", ".")
    assert "it is a link to a file that does not exist" in done.stderr
    assert file.read_bytes() == before
    assert not outside.exists()


def test_converted_file_can_have_another_name(project: Project) -> None:
    file = _write(project)
    before = file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json", "-o", "echo/new.evalset.json")
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == before
    assert json.loads((project.root / "echo/new.evalset.json").read_text())["eval_set_id"] == "new"


@pytest.mark.parametrize("option", [["--dry-run"], ["-o", "-"]], ids=" ".join)
def test_dry_run_and_standard_output_print_the_file_and_write_nothing(project: Project, option: list[str]) -> None:
    file = _write(project)
    before = sorted(project.root.rglob("*")), file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json", *option)
    assert done.returncode == 0
    shown = done.stdout
    assert (sorted(project.root.rglob("*")), file.read_bytes()) == before
    project.run("migrate", "echo/talk.test.json")
    assert file.read_text() == shown


def test_second_conversion_says_that_the_file_is_current_and_changes_nothing(project: Project) -> None:
    file = _write(project)
    project.run("migrate", "echo/talk.test.json")
    before = file.read_bytes()
    done = project.run("migrate", "echo/talk.test.json")
    assert (done.returncode, file.read_bytes()) == (0, before)
    assert done.stderr == "echo/talk.test.json: it already has the current schema; nothing to do\n"


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_conversion_that_would_replace_an_old_copy_is_refused(project: Project, more: list[str]) -> None:
    file = _write(project)
    kept = project.write("echo/talk.test.json.old", "mine")
    done = project.run("migrate", "echo/talk.test.json", *more)
    assert (done.returncode, json.loads(file.read_text()), kept.read_text()) == (2, OLD, "mine")
    assert "talk.test.json.old already exists" in done.stderr
    assert project.run("migrate", "echo/talk.test.json", "-o", "-").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["echo/none.test.json"], "does not exist"),
        (["echo/broken.test.json"], "`query` is missing"),
        (["echo/talk.test.json", "-o", "echo/agent.py"], "already exists"),
        (["echo/talk.test.json", "-o", "nowhere/new.json"], "cannot be written"),
        (["echo/talk.test.json", "--initial-session-file", "none.json"], "does not exist"),
    ],
)
def test_impossible_conversion_is_refused_and_writes_nothing(project: Project, words: list[str], said: str) -> None:
    file = _write(project)
    project.write("echo/broken.test.json", json.dumps([{"reference": "x"}]))
    before = sorted(project.root.rglob("*")), file.read_bytes()
    done = project.run("migrate", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert (sorted(project.root.rglob("*")), file.read_bytes()) == before


def test_converted_file_keeps_its_permissions(project: Project) -> None:
    file = _write(project)
    file.chmod(0o640)
    project.run("migrate", "echo/talk.test.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def _old_files(project: Project) -> dict[str, Path]:
    case = [{"name": "one", "data": [{"query": "hello", "reference": "You said hello"}]}]
    return {
        "test": _write(project),
        "evalset": project.write("echo/cases.evalset.json", json.dumps(case)),
        "other": project.write("eval/data/football.json", json.dumps(OLD)),
        "current": project.evalset({**GOOD}, path="echo/now.evalset.json"),
        "broken": project.write("echo/torn.test.json", "[{"),
        "data": project.write("data.json", '[{"query": "a search"}]'),
    }


@pytest.mark.parametrize("words", [["."], ["echo", "eval"], ["echo/", "echo/talk.test.json", "eval"]])
def test_all_old_files_below_a_folder_are_converted(project: Project, words: list[str]) -> None:
    files = _old_files(project)
    before = {name: file.read_bytes() for name, file in files.items()}
    dry = project.run("migrate", *words, "--dry-run")
    assert {name: file.read_bytes() for name, file in files.items()} == before
    assert "3 old files would be converted" in dry.stderr
    done = project.run("migrate", *words)
    assert done.returncode == 0
    assert "3 old files converted, 1 left unchanged" in done.stderr
    assert "torn.test.json left unchanged" in done.stderr
    changed = {name for name, file in files.items() if file.read_bytes() != before[name]}
    assert changed == {"test", "evalset", "other"}
    for name in changed:
        assert json.loads(files[name].read_text())["eval_cases"]
        assert files[name].with_name(files[name].name + ".old").read_bytes() == before[name]
    assert "0 old files converted" in project.run("migrate", *words).stderr


def test_circular_link_makes_only_its_own_file_unreadable(project: Project) -> None:
    files = _old_files(project)
    circle = project.root / "echo/circle.test.json"
    circle.symlink_to(circle)
    done = project.run("migrate", ".")
    assert "circle.test.json left unchanged" in done.stderr
    assert json.loads(files["test"].read_text())["eval_cases"]


def test_session_applies_to_lists_of_turns_in_a_folder(project: Project) -> None:
    files = _old_files(project)
    project.write("session.json", {"app_name": "echo", "user_id": "u", "state": {"x": 1}})
    assert project.run("migrate", "echo", "--initial-session-file", "session.json").returncode == 0
    assert json.loads(files["test"].read_text())["eval_cases"][0]["session_input"]["state"] == {"x": 1}
    assert "session_input" not in json.loads(files["evalset"].read_text())["eval_cases"][0]


def test_file_with_an_existing_old_copy_is_left_unchanged(project: Project) -> None:
    file = _write(project)
    kept = project.write("echo/talk.test.json.old", "mine")
    done = project.run("migrate", ".")
    assert "talk.test.json.old already exists" in done.stderr
    assert (json.loads(file.read_text()), kept.read_text()) == (OLD, "mine")


@pytest.mark.parametrize("words", [["."], ["echo", "other"], ["echo/talk.test.json", "echo/talk.test.json"]])
def test_output_option_takes_one_file(project: Project, words: list[str]) -> None:
    _write(project)
    (project.root / "other").mkdir()
    done = project.run("migrate", *words, "-o", "new.evalset.json")
    assert done.returncode == 2
    assert "-o is for one file" in done.stderr


def test_link_and_its_file_are_converted_once(project: Project) -> None:
    files = _old_files(project)
    link = files["test"].with_name("again.test.json")
    link.symlink_to(files["test"].name)
    assert "3 old files would be converted" in project.run("migrate", ".", "--dry-run").stderr
    assert "3 old files converted" in project.run("migrate", ".").stderr
    assert link.is_symlink()
    assert not link.with_name(f"{link.name}.old").exists()
    assert files["test"].with_name(f"{files['test'].name}.old").exists()
