"""`.env` as ADK loads it, without touching our own environment."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dotenv import load_dotenv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agents.conftest import Tree
from workbench.agents.environment import (
    InterpreterError,
    agent_environment,
    choose_interpreter,
    installation_times,
    working_directory,
)


def test_nearest_env_file_is_used_up_to_the_file_system_root(tree: Tree) -> None:
    project = tree({".env": "A=top\nB=top", "sub/.env": "A=sub", "sub/agent/": "", "other/agent/.env/": ""})
    near = agent_environment(project / "sub" / "agent", {})
    assert (dict(near.values), near.file, near.names) == ({"A": "sub"}, project / "sub" / ".env", ("A",))
    far = agent_environment(project / "other" / "agent", {})
    assert (dict(far.values), far.file) == ({"A": "top", "B": "top"}, project / ".env")


def test_process_values_win_except_in_references(tree: Tree) -> None:
    project = tree({".env": "A=file\nB=${A}/${C}\nNEW=1\n"})
    found = agent_environment(project, {"A": "process", "C": "c", "KEPT": "k"})
    assert dict(found.values) == {"A": "process", "B": "file/c", "C": "c", "KEPT": "k", "NEW": "1"}
    assert found.names == ("A", "B", "NEW")


@pytest.mark.parametrize(
    ("name", "value", "loaded"),
    [
        ("ADK_DISABLE_LOAD_DOTENV", "1", False),
        ("ADK_DISABLE_LOAD_DOTENV", " Yes ", False),
        ("ADK_DISABLE_LOAD_DOTENV", "0", True),
        ("ADK_DISABLE_LOAD_DOTENV", "", True),
        ("PYTHON_DOTENV_DISABLED", "T", False),
        ("PYTHON_DOTENV_DISABLED", "no", True),
    ],
)
def test_variables_turn_off_the_env_file(tree: Tree, name: str, value: str, loaded: bool) -> None:
    found = agent_environment(tree({".env": "A=1"}), {name: value})
    assert ("A" in found.values) is loaded
    assert (found.file is not None) is loaded


def test_without_a_file_the_environment_is_unchanged(tmp_path: Path) -> None:
    found = agent_environment(tmp_path, {"A": "1"})
    assert found.file is None
    assert dict(found.values) == {"A": "1"}
    assert found.warnings == ()


def test_fingerprint_changes_with_effective_values(tree: Tree) -> None:
    def mark(text: str, **base: str) -> str:
        return agent_environment(tree({".env": text}), base).fingerprint

    first = mark("A=1\nB=2")
    assert first == mark("# note\nB=2\nA='1'\n", UNRELATED="x")
    assert first != mark("A=1\nB=3")
    assert first != mark("A=1")
    assert first != mark("A=1\nB=2", B="3")
    assert mark("A=1", A="9") == mark("A=2", A="9")


def test_unusable_line_is_a_warning(tree: Tree) -> None:
    project = tree({".env": "A=1\n\n\nthis is not = fine = 'open\n'B=C'=1\nD=a\0b\nE=2\n"})
    found = agent_environment(project, {})
    assert dict(found.values) == {"A": "1", "E": "2"}
    assert [warning.removeprefix(f"{project / '.env'}, ") for warning in found.warnings] == [
        "line 4: not a valid assignment",
        "line 5: cannot be set as an environment variable",
        "line 6: cannot be set as an environment variable",
    ]


def test_variable_that_no_process_can_get_is_a_warning(tree: Tree) -> None:
    project = tree({".env": f"A='{'é' * 22_000}'\nB=${{A}}${{A}}${{A}}\nC=${{A}}${{A}}\n"})
    found = agent_environment(project, {})
    assert list(found.values) == ["A", "C"]
    assert [warning.removeprefix(f"{project / '.env'}, ") for warning in found.warnings] == [
        "line 2: too long for an environment variable"
    ]
    subprocess.run([sys.executable, "-c", ""], env=found.values, check=True)


def test_file_that_is_not_text_is_a_warning(tree: Tree) -> None:
    project = tree({})
    (project / ".env").write_bytes(b"A=\xff\xfe")
    found = agent_environment(project, {"B": "1"})
    assert dict(found.values) == {"B": "1"}
    assert found.file == project / ".env"
    assert "is not used" in found.warnings[0]


_NAMES = st.sampled_from(["A", "B", "C", "HELD"])
_VALUES = st.sampled_from(
    ["1", "", "'q u'", '"a\\nb"', "${A}", "x${B}y", "${NONE:-d}", "'${A}'", "${HELD}", "a #c", "$A"]
)
_LINES = st.one_of(
    st.tuples(_NAMES, _VALUES).map("=".join),
    st.tuples(_NAMES, _VALUES).map("export {0[0]} = {0[1]}".format),
    _NAMES,
    st.sampled_from(["", "# note", "= 1", "A B=2", "'"]),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(_LINES, max_size=6))
def test_environment_equals_that_of_adk_for_any_file(new_folder: Callable[[], Path], lines: list[str]) -> None:
    folder = new_folder()
    (folder / ".env").write_text("\n".join(lines))
    base = {"HELD": "held", "A": "process"}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("A", "B", "C", "HELD"):
            patch.delenv(name, raising=False)
        for name, value in base.items():
            patch.setenv(name, value)
        before = dict(os.environ)
        load_dotenv(folder / ".env", override=True)
        os.environ.update(before)
        theirs = dict(os.environ)
        for name in set(theirs) - set(before):
            patch.delenv(name)
    assert dict(agent_environment(folder, before).values) == theirs


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
        ("text", "not an executable file"),
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


def test_installation_times_change_with_packages(tmp_path: Path) -> None:
    interpreter = tmp_path / "bin" / "python"
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    interpreter.parent.mkdir()
    packages.mkdir(parents=True)
    assert len(installation_times(interpreter)) == 2  # It need not exist.
    interpreter.touch()
    before = installation_times(interpreter)
    assert installation_times(interpreter) == before
    os.utime(packages, ns=(1, 1))
    after = installation_times(interpreter)
    assert after != before
    os.utime(interpreter, ns=(1, 1))
    assert installation_times(interpreter) != after


def test_working_directory_follows_the_agents_project(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    project = root / "agents" / "travel"
    agent = project / "travel"
    for folder in (agent, elsewhere, project / "eval"):
        folder.mkdir(parents=True)
    assert working_directory(agent, root, elsewhere) == root
    assert working_directory(agent, root, project) == project, "as with adk: the start folder, if inside the project"
    (project / "pyproject.toml").touch()
    assert working_directory(agent, root, root) == project, "otherwise the project's own folder"
    assert working_directory(agent, root, elsewhere) == project
    assert working_directory(agent, root, project / "eval") == project / "eval"


def test_marks_above_the_root_and_in_the_agents_own_folder_do_not_count(tmp_path: Path) -> None:
    root = tmp_path / "root"
    agent = root / "desk"
    agent.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (agent / "requirements.txt").touch()
    assert working_directory(agent, root, tmp_path) == root
