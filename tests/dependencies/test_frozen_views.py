"""A recording is changed on disk in a project with a frozen run, and every view names it."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.projects import REPOSITORY, Project, PutBack
from tests.cli.test_frozen import DESK, EVALSET, order
from tests.dependencies.test_every_view import named, not_resumed_with, opened
from workbench.agents.workspace import open_workspace
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.watch.changes import Batch
from workbench.engine.watch.watcher import Watcher

FOLDER = "desk/orders.evalset.frozen"
FILE = f"{FOLDER}/one.frozen.json"
CHANGE = {"input": "frozen", "name": "recording", "file": FILE, "effect": "run"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    def prepare(project: Project) -> None:
        project.write("desk/agent.py", DESK)
        project.evalset(order("one", "A-1"), order("two", "A-2"), path=EVALSET)
        project.write("desk/test_config.json", {"criteria": {"response_match_score": 0.8}})
        project.run("run", ".", "--plain")
        project.run("freeze", "last")
        assert project.run("run", ".", "--frozen").returncode == 0

    return PutBack(tmp_path_factory.mktemp("frozen_inputs"), prepare)


@pytest.fixture
def project(kept: PutBack) -> Project:
    return kept.project()


def edit(project: Project) -> None:
    file = project.root / FILE
    file.write_text(file.read_text().replace('"shipped"', '"shipped and late"'))


def test_every_view_names_a_changed_recording(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.run("status", "--fail-stale").returncode == 0
    edit(project)
    one, two = json.loads(project.run("status", "--json").stdout)["cases"]
    assert (one["changed"], two["changed"]) == ([CHANGE], [])
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    stale = asyncio.run(opened(project)).session.verdicts.stale
    assert list(map(named, stale.values())) == [{("frozen", "recording")}]
    assert "frozen: recording" in project.run("score", one["run_id"]).stderr
    before = one["run_id"]
    project.run("run", ".", "--frozen", "--fresh")
    told = project.run("compare", before, "last").stdout
    assert "frozen: recording" in told
    assert project.run("status", "--fail-stale").returncode == 0


def test_interrupted_frozen_run_is_not_resumed_with_another_recording_or_live(project: Project) -> None:
    run_id = json.loads(project.run("status", "--json").stdout)["cases"][0]["run_id"]
    assert "--frozen" in not_resumed_with(project, run_id, RunOptions())


def test_changed_recording_is_named_when_a_run_is_not_resumed(project: Project) -> None:
    run_id = json.loads(project.run("status", "--json").stdout)["cases"][0]["run_id"]
    edit(project)
    assert "frozen: recording" in not_resumed_with(project, run_id, RunOptions(frozen="tools"))


@pytest.mark.parametrize("frozen", [True, False])
def test_only_a_frozen_watch_reruns_the_case_of_a_saved_recording(project: Project, frozen: bool) -> None:
    watcher = Watcher(open_workspace(project.root), lambda: open_workspace(project.root), dict, frozen=frozen)
    watcher.update_files()
    assert ((project.root / FOLDER) in watcher._folders()) is frozen
    edit(project)
    saved = watcher.check(Batch(frozenset({project.root / FILE})))
    found = {} if saved is None else {key: named(changes) for key, changes in saved.impact.changes.items()}
    assert found == ({(EVALSET, "one"): {("frozen", "recording")}} if frozen else {})


def test_frozen_watch_notices_a_new_folder_of_recordings(project: Project) -> None:
    files = {path: path.read_bytes() for path in Path(project.root, FOLDER).iterdir()}
    for path in files:
        path.unlink()
    (project.root / FOLDER).rmdir()
    watcher = Watcher(open_workspace(project.root), lambda: open_workspace(project.root), dict, frozen=True)
    watcher.update_files()
    (project.root / FOLDER).mkdir()
    for path, content in files.items():
        path.write_bytes(content + b"\n")  # Otherwise they are as the workbench wrote them.
    saved = watcher.check(Batch(frozenset({project.root / FOLDER})))
    assert saved is not None
    assert {key[1] for key in saved.impact.changes} == {"one", "two"}
    assert (project.root / FOLDER) in watcher._folders()
