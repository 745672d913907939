"""The bytecode trap: the current source always runs, even if it was saved twice within a second."""

import os
import py_compile
import sysconfig
from pathlib import Path

import pytest

from tests.worker.client import Worker
from tests.worker.conftest import needs_fork, write
from workbench.worker import project_files


@needs_fork
def test_file_saved_twice_within_a_second_runs_in_its_new_form(worker: Worker, tmp_path: Path) -> None:
    agent, tools = tmp_path / "desk" / "agent.py", tmp_path / "desk" / "tools.py"
    source = "from .tools import WORD\ndef root_agent(message, session): return 'one ' + WORD\n"
    write(tmp_path / "desk", {"agent.py": source, "tools.py": "WORD = 'one'\n", "__init__.py": ""})
    for file in (agent, tools):
        # A .pyc from another import, which Python considers valid.
        py_compile.compile(str(file), doraise=True)
        before = file.stat()
        file.write_text(file.read_text().replace("'one", "'two"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_size == before.st_size
    assert worker.agent(tmp_path / "desk").run("hi").answers == ["two two"]


@needs_fork
def test_nothing_is_cached_for_the_project(worker: Worker, tmp_path: Path) -> None:
    source = "from .tools import WORD\nimport helper\ndef root_agent(message, session): return WORD\n"
    files = {"desk/agent.py": source, "desk/tools.py": "WORD = 'x'\n", "desk/__init__.py": "", "helper.py": ""}
    agent = worker.agent(write(tmp_path, files) / "desk", env={"PYTHONDONTWRITEBYTECODE": ""})
    assert agent.run("hi").answers == ["x"]
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".pyc" or path.name == "__pycache__"] == []


@needs_fork
def test_installed_agent_counts_as_the_project(worker: Worker, tmp_path: Path) -> None:
    source = "def root_agent(message, session): return inner()\ndef inner(): return 1 / 0\n"
    folder = write(tmp_path / "site-packages" / "samples" / "desk", {"agent.py": source})
    error = worker.agent(folder, root=folder.parent).run("hi").error
    assert error["traceback"].count("agent.py") == 2
    assert not list(folder.rglob("*.pyc"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/ana/project/agent.py", True),
        ("/home/ana/project/.venv/lib/python3.11/site-packages/google/adk/runners.py", False),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", False),
        (sysconfig.get_path("stdlib") + "/json/__init__.py", False),
        (project_files.__file__, False),
        ("<string>", False),
        ("", False),
    ],
)
def test_project_files_are_distinguished_from_libraries(path: str, expected: bool) -> None:
    assert project_files.is_project_file(path) is expected
