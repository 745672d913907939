"""Facts stored with a run: the agents' files without secrets, models, versions and the commit."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import GOOD, Project
from tests.stored import stored_runs
from workbench.events.event_json import from_json
from workbench.events.events import Event, RunFinished, RunStarted
from workbench.store.database.database import database
from workbench.store.database.values import get_content
from workbench.store.history.stored_events import read_run

pytestmark = pytest.mark.usefixtures("warm_scorers")


def content(state: Path, digest: str) -> bytes | None:
    return database(state).read(lambda connection: get_content(connection, digest))


def _run(project: Project) -> tuple[RunStarted, RunFinished]:
    assert project.run("run", ".", "--plain").returncode == 0
    events: list[Event] = list(read_run(stored_runs(project.root / ".workbench")[-1]))
    started, finished = events[0], events[-1]
    assert isinstance(started, RunStarted)
    assert isinstance(finished, RunFinished)
    return started, finished


def _git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    return subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def test_source_files_are_stored_once_and_without_secrets(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.evalset(GOOD)
    project.write("echo/prompts/tone.md", "Be kind. hunter2hunter2")
    project.write("echo/.env", "TONE_PASSWORD=hunter2hunter2\n")
    project.write("echo/notes.py", 'MODEL = "gemini-2.5-flash"\n')
    started, _ = _run(project)
    sources = started.sources["echo"]
    assert set(sources) == {"echo/agent.py", "echo/prompts/tone.md", "echo/notes.py"}
    state = tmp_path / ".workbench"
    assert content(state, sources["echo/prompts/tone.md"]) == b"Be kind. [secret TONE_PASSWORD]"
    assert content(state, sources["echo/agent.py"]) == (tmp_path / "echo/agent.py").read_bytes()
    assert started.models == {"echo": ["gemini-2.5-flash"]}
    assert started.versions["python"]
    kept = sorted((state / "objects").glob("*/*"))
    again, _ = _run(project)
    assert again.sources == started.sources
    assert sorted((state / "objects").glob("*/*")) == kept


def test_files_read_by_the_agent_are_stored_too(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("shared/house.md", "Rules of the house")
    reads = 'from pathlib import Path\nRULES = (Path(__file__).parents[1] / "shared/house.md").read_text()\n'
    project.write("echo/agent.py", reads + (tmp_path / "echo/agent.py").read_text())
    project.evalset(GOOD)
    _, finished = _run(project)
    digest = finished.sources["echo"]["shared/house.md"]
    assert content(tmp_path / ".workbench", digest) == b"Rules of the house"


def test_commit_and_dirty_state_are_recorded(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.evalset(GOOD)
    (tmp_path / ".git").rmdir()
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-qm", "first")
    assert _run(project)[1].git == {"commit": _git(tmp_path, "rev-parse", "HEAD"), "dirty": False}
    project.write("echo/agent.py", (tmp_path / "echo/agent.py").read_text() + "# more\n")
    assert _run(project)[1].git["dirty"] is True


def test_folder_with_unreadable_files_and_without_git_can_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.evalset(GOOD)
    (tmp_path / "echo/gone.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "echo/raw.txt").write_bytes(b"\xff\xfe\x00")
    started, finished = _run(project)
    assert finished.git == {}
    assert set(started.sources["echo"]) == {"echo/agent.py", "echo/raw.txt"}


def test_older_journal_has_no_provenance(tmp_path: Path) -> None:
    old: dict[str, Any] = json.loads('{"event": "RunStarted", "run_id": "r", "root": "/", "started": "", "cases": []}')
    event = from_json(old)
    assert isinstance(event, RunStarted)
    assert event.sources == {}
