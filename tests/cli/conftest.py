import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.projects import Project, python_path
from tests.cli.stores import all_statuses
from workbench.__main__ import main
from workbench.store.store import Store


@pytest.fixture(autouse=True)
def _warm(warm_scorers: None) -> None:
    """Let the scorers of runs in this process be forks."""


@pytest.fixture
def store() -> Store:
    """A finished run with every status in it."""
    return all_statuses()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


Here = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run the program in this process, in the root of a project. For help and refusals, which start no child."""

    monkeypatch.setenv("PYTHONPATH", python_path())

    def call(*words: str, project: Project = project) -> "subprocess.CompletedProcess[str]":
        monkeypatch.chdir(project.root)
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert isinstance(ended.value.code, int)
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(words, ended.value.code, out, err)

    return call
