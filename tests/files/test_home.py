"""A user without a home folder: everything that uses it still works."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.files import settings as config
from workbench.files.home import expanded, home, settings_folder

_NOBODY = 54321


def _no_home(*_: object, **__: object) -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_unknown_home_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (home(), expanded("~/a"), expanded("a")) == (tmp_path, tmp_path / "a", Path("a"))
    monkeypatch.setattr(Path, "home", _no_home)
    assert home() is None
    assert expanded("~no_such_user/a") == Path("~no_such_user/a")


def test_without_a_home_the_machines_settings_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_config_dir", _no_home)
    assert settings_folder().name == "agent-workbench"
    assert config.read_settings().faults == ()


@pytest.mark.parametrize("words", [["--help"], ["check", "."], ["history"]], ids=" ".join)
def test_container_with_an_unknown_user_works(words: list[str], tmp_path: Path) -> None:
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
