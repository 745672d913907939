"""A recording is changed on disk in a project with a frozen run, and every view names it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import REPOSITORY, Project, PutBack
from tests.cli.test_frozen import DESK, EVALSET, order
from tests.freshness.test_every_view import named, not_resumed_with, opened
from workbench.agents.workspace import Workspace, open_workspace
from workbench.files.run_options import FrozenMode, RunOptions
from workbench.freshness.changes import Batch
from workbench.freshness.watcher import Watcher
from workbench.run.resuming import options_of
from workbench.store.database.database import run_path
from workbench.store.history.stored_events import announcement

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


def test_interrupted_frozen_run_is_not_resumed_live(project: Project) -> None:
    run_id = json.loads(project.run("status", "--json").stdout)["cases"][0]["run_id"]
    assert "--frozen" in not_resumed_with(project, run_id, RunOptions())


def test_changed_recording_is_named_when_a_run_is_not_resumed(project: Project) -> None:
    run_id = json.loads(project.run("status", "--json").stdout)["cases"][0]["run_id"]
    edit(project)
    assert "frozen: recording" in not_resumed_with(project, run_id, RunOptions(frozen="tools"))


def watcher_of(project: Project, options: RunOptions) -> Watcher:
    def opened_again() -> Workspace:
        return open_workspace(project.root)

    watcher = Watcher(opened_again(), opened_again, dict, options=lambda: options)
    watcher.update_files()
    return watcher


def set_mode(project: Project, mode: str) -> None:
    project.write("pyproject.toml", f'[tool.agent-workbench]\nfrozen = "{mode}"\n')


def test_status_and_screen_name_a_changed_frozen_setting_of_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed() -> list[Any]:
        return [case["changed"] for case in json.loads(project.run("status", "--json").stdout)["cases"]]

    set_mode(project, "off")
    assert changed() == [[], []], "the newest run was frozen on its command line"
    set_mode(project, "all")
    change = {"input": "options", "name": "--frozen", "file": "pyproject.toml", "effect": "run"}
    assert changed() == [[change], [change]]
    assert "frozen in pyproject.toml" in project.run("status").stdout
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    screen = asyncio.run(opened(project)).session
    assert list(map(named, screen.verdicts.stale.values())) == [{("options", "--frozen")}] * 2
    set_mode(project, "tools")
    project.run("run", ".", "--fresh")
    assert changed() == [[], []]
    project.root.joinpath("pyproject.toml").unlink()
    assert changed() == [[change], [change]], "without the setting, runs are live"


def test_frozen_run_is_not_resumed_after_the_frozen_setting_changes(project: Project) -> None:
    run_id = json.loads(project.run("status", "--json").stdout)["cases"][0]["run_id"]
    announced = announcement(run_path(project.root / ".workbench", run_id))
    assert announced is not None
    assert options_of(announced, project.root).frozen == "tools"
    set_mode(project, "all")
    assert "--frozen" in not_resumed_with(project, run_id, options_of(announced, project.root))


@pytest.mark.parametrize(("chosen", "affected"), [(None, {"one", "two"}), ("tools", set()), ("", set())])
def test_changed_frozen_setting_reruns_all_watched_cases_unless_a_mode_was_chosen(
    project: Project, chosen: FrozenMode | None, affected: set[str]
) -> None:
    watcher = watcher_of(project, RunOptions(frozen=chosen))
    assert ((project.root / FOLDER) in watcher.changes._folders()) is (chosen == "tools")
    set_mode(project, "tools")
    saved = watcher.check(Batch(frozenset({project.root / "pyproject.toml"})))
    assert saved is not None
    assert {eval_id for _, eval_id in saved.impact.depths} == affected
    assert ((project.root / FOLDER) in watcher.changes._folders()) is (chosen != "")


@pytest.mark.parametrize("frozen", [True, False])
def test_only_a_frozen_watch_reruns_the_case_of_a_saved_recording(project: Project, frozen: bool) -> None:
    watcher = watcher_of(project, RunOptions(frozen="tools" if frozen else ""))
    assert ((project.root / FOLDER) in watcher.changes._folders()) is frozen
    edit(project)
    saved = watcher.check(Batch(frozenset({project.root / FILE})))
    found = {} if saved is None else {key: named(changes) for key, changes in saved.impact.changes.items()}
    assert found == ({(EVALSET, "one"): {("frozen", "recording")}} if frozen else {})


def test_frozen_watch_notices_a_new_folder_of_recordings(project: Project) -> None:
    files = {path: path.read_bytes() for path in Path(project.root, FOLDER).iterdir()}
    for path in files:
        path.unlink()
    (project.root / FOLDER).rmdir()
    watcher = watcher_of(project, RunOptions(frozen="tools"))
    (project.root / FOLDER).mkdir()
    for path, content in files.items():
        path.write_bytes(content + b"\n")  # Otherwise they are as the workbench wrote them.
    saved = watcher.check(Batch(frozenset({project.root / FOLDER})))
    assert saved is not None
    assert {key[1] for key in saved.impact.changes} == {"one", "two"}
    assert (project.root / FOLDER) in watcher.changes._folders()
