"""A user without a home folder: everything that uses it still works."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.agents.workspace import open_workspace
from workbench.files import settings as config
from workbench.files.folders import copy_samples, expanded, home, settings_folder, shipped

_NOBODY = 54321


def _no_home(*_: object, **__: object) -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_unknown_home_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (home(), expanded("~/a"), expanded("a")) == (tmp_path, tmp_path / "a", Path("a"))
    monkeypatch.setattr(Path, "home", _no_home)
    assert home() is None
    assert expanded("~no_such_user/a") == Path("~no_such_user/a")


def test_settings_are_read_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_config_dir", _no_home)
    assert settings_folder().name == "agent-workbench"
    assert config.read_settings().faults == ()


@pytest.mark.parametrize("words", [["--help"], ["check", "."], ["history"]], ids=" ".join)
def test_commands_run_for_an_unknown_user_without_a_home(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk/agent.py").write_text("def root_agent(message, session):\n    return message\n")
    script = (
        "import os, pwd, runpy, sys\n"
        "os.environ.pop('HOME', None)\n"
        f"os.getuid = lambda: {_NOBODY}\n"
        f"sys.argv = ['agent-workbench', *{words!r}]\n"
        "runpy.run_module('workbench', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


def test_samples_are_copied_without_runs_and_caches(tmp_path: Path) -> None:
    source = tmp_path / "installed"
    for name in ("desk/agent.py", "desk/.workbench/run.json", "desk/__pycache__/agent.pyc", "desk/data/deep/one.json"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "desk/agent.py").chmod(0o444)
    project = tmp_path / "project"
    project.mkdir()
    copy = copy_samples(project, source)
    files = {str(file.relative_to(copy)) for file in copy.rglob("*") if file.is_file()}
    assert files == {"desk/agent.py", "desk/data/deep/one.json"}
    (copy / "desk/agent.py").write_text("can be edited")
    assert [entry.name for entry in project.iterdir()] == ["sample_agents"]


def test_samples_overwrite_nothing_and_leave_no_part(tmp_path: Path) -> None:
    (tmp_path / "sample_agents").write_text("mine")
    with pytest.raises(FileExistsError, match="already exists: nothing was copied"):
        copy_samples(tmp_path)
    assert (tmp_path / "sample_agents").read_text() == "mine"
    with pytest.raises(FileNotFoundError, match="not installed"):
        copy_samples(tmp_path, tmp_path / "gone")
    assert len(list(tmp_path.iterdir())) == 1


def test_copied_samples_are_found(tmp_path: Path) -> None:
    assert copy_samples(tmp_path) == tmp_path / "sample_agents"
    assert len(open_workspace(tmp_path).agents) == len(open_workspace(shipped("sample_agents")).agents) > 3
