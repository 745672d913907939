"""The choice of the Python that runs an agent."""

import os
import sys
from pathlib import Path

import pytest

from tests.agents.conftest import Tree
from workbench.agents.interpreter import InterpreterError, choose_interpreter, installed


def _environment(folder: Path, name: str = "python", mode: int = 0o755) -> Path:
    python = folder / "bin" / name
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(mode)
    return python


def test_nearest_environment_of_the_project_is_chosen(tree: Tree) -> None:
    project = tree({"a/agent/": "", "b/agent/": ""})
    top, near = _environment(project / ".venv"), _environment(project / "a" / ".venv", "python3")
    active = {"VIRTUAL_ENV": str(_environment(project.parent / "active").parents[1])}
    chosen = choose_interpreter(project / "a" / "agent", project, None, active)
    assert (chosen.path, chosen.warning) == (near, "")
    assert chosen.reason == f"the project's {project / 'a' / '.venv'}"
    assert choose_interpreter(project / "b" / "agent", project, None, active).path == top


def test_environment_above_the_root_is_not_used(tree: Tree) -> None:
    project = tree({"agent/": ""})
    _environment(project.parent / ".venv")
    assert choose_interpreter(project / "agent", project, None, {}).path == Path(sys.executable)


def test_active_environment_comes_before_our_own(tree: Tree, tmp_path: Path) -> None:
    project = tree({"agent/": ""})
    virtual, conda = _environment(tmp_path / "v"), _environment(tmp_path / "c")
    both = {"VIRTUAL_ENV": str(tmp_path / "v"), "CONDA_PREFIX": str(tmp_path / "c")}
    chosen = choose_interpreter(project / "agent", project, None, both)
    assert (chosen.path, chosen.reason) == (virtual, f"the active environment (VIRTUAL_ENV={tmp_path / 'v'})")
    assert choose_interpreter(project / "agent", project, None, {"CONDA_PREFIX": str(tmp_path / "c")}).path == conda
    own = choose_interpreter(project / "agent", project, None, {"VIRTUAL_ENV": ""})
    assert (own.path, own.reason, own.warning) == (Path(sys.executable), "the workbench's own interpreter", "")


def test_broken_environments_are_skipped_with_a_warning(tree: Tree, tmp_path: Path) -> None:
    project = tree({"agent/": "", ".venv/bin/": ""})
    (project / ".venv" / "bin" / "python").symlink_to("/nonexistent/python3.9")
    chosen = choose_interpreter(project / "agent", project, None, {"VIRTUAL_ENV": str(tmp_path / "gone")})
    assert chosen.path == Path(sys.executable)
    assert chosen.warning == f"no usable Python in {project / '.venv'}, VIRTUAL_ENV={tmp_path / 'gone'}"


def test_link_to_an_interpreter_is_not_resolved(tree: Tree) -> None:
    project = tree({".venv/bin/": ""})
    link = project / ".venv" / "bin" / "python"
    link.symlink_to(sys.executable)
    assert choose_interpreter(project, project, None, {}).path == link
    assert choose_interpreter(project, project, link, {}).path == link


def test_explicit_interpreter_is_chosen(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tree({"agent/": ""})
    _environment(project / ".venv")
    python = _environment(tmp_path / "mine", "python3.12")
    monkeypatch.chdir(tmp_path)
    for path in (python, Path("mine/bin/python3.12")):
        chosen = choose_interpreter(project / "agent", project, path, {})
        assert (chosen.path, chosen.reason) == (python, "given with --python")
    on_path = choose_interpreter(project / "agent", project, Path("python3.12"), {"PATH": str(python.parent)})
    assert on_path.path == python
    assert choose_interpreter(project / "agent", project, project / ".venv", {}).path == project / ".venv/bin/python"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone/bin/python", "does not exist"),
        ("no_such_python", "no command"),
        ("text", "not a program"),
        ("folder", "without bin/python"),
    ],
)
def test_unusable_explicit_interpreter_is_refused(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    project = tree({"text": "", "folder/": ""})
    monkeypatch.chdir(project)
    with pytest.raises(InterpreterError, match=message):
        choose_interpreter(project, project, Path(path), {"PATH": ""})


def test_installed_changes_with_packages(tmp_path: Path) -> None:
    interpreter = tmp_path / "bin" / "python"
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    interpreter.parent.mkdir()
    packages.mkdir(parents=True)
    assert len(installed(interpreter)) == 2  # It need not exist.
    interpreter.touch()
    before = installed(interpreter)
    assert installed(interpreter) == before
    os.utime(packages, ns=(1, 1))
    after = installed(interpreter)
    assert after != before
    os.utime(interpreter, ns=(1, 1))
    assert installed(interpreter) != after
