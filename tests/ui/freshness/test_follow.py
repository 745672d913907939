"""Files and runs of other programs on the screen, with real files and without a terminal."""

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.projects import BAD, GOOD, REPOSITORY, Project, PutBack, case
from tests.store.history.other import Other
from tests.ui.fake_view import FakeView, controllers_of
from workbench.agents.workspace import open_workspace
from workbench.freshness.changes import Batch
from workbench.freshness.follow import Follower, TouchedPaths
from workbench.store.database.database import database
from workbench.ui.freshness import staleness


def prepare(project: Project) -> None:
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--plain")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    return PutBack(tmp_path_factory.mktemp("follow"), prepare)


@pytest.fixture(autouse=True)
def prepared(kept: PutBack) -> None:
    """Run the project outside of the event loop of the test."""
    kept.project()


class Opened:
    """An open project. `touch` reports changed files, as the system would."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.view = FakeView(open_workspace(project.root))
        self.session = self.view.session
        self.flags = 0
        self.controllers = controllers_of(self.view)
        self.controllers.watch.show_flags = self._count_flags  # type: ignore[method-assign]
        self.past_results, self.staleness = self.controllers.past_results, self.controllers.staleness
        self.runs, self.follow = self.controllers.other_runs, self.controllers.follow

    def _count_flags(self) -> None:
        self.flags += 1

    async def open(self) -> "Opened":
        await self.runs.begin()
        self.past_results.load_verdicts()
        await self.view.settled()
        return self

    async def touch(self, *files: Path, runs: bool = False) -> None:
        self.follow.take(TouchedPaths(frozenset(files), runs))
        await self.fire()

    async def fire(self) -> None:
        """Fire the timers that show changes, once."""
        await self.view.settled()
        for timer in [timer for timer in self.view.timers if timer.call in (self.follow._show, self.runs._look_again)]:
            self.view.timers.remove(timer)
            timer.call()
        await self.view.settled()

    def elsewhere(self) -> Other:
        """Begin a newer run of the same cases in another program."""
        refs = list(self.session.store.current)
        return Other(self.session.state_dir, f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-ffff", refs)

    @property
    def states(self) -> dict[str, str]:
        cases = self.session.entry(0).document.cases
        return {one.eval_id: self.session.verdicts.state(0, one.index) for one in cases}


@pytest.fixture
async def opened(kept: PutBack, monkeypatch: pytest.MonkeyPatch) -> Opened:
    project = await asyncio.to_thread(kept.project)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setattr(staleness, "_BETWEEN", 0.0)
    monkeypatch.setattr(staleness, "_PAUSE_FACTOR", 0.0)
    return await Opened(project).open()


async def test_unreadable_past_runs_are_reported_with_the_reason(opened: Opened) -> None:
    stored = database(opened.session.state_dir)
    await asyncio.to_thread(stored.write, lambda connection: connection.execute("PRAGMA user_version=1000"))
    await asyncio.to_thread(stored.close)
    opened.view.go_to(0, 1)
    opened.past_results.cursor_moved()
    opened.view.timers[-1].call()
    await opened.view.settled()
    (shown,) = (text for text in opened.view.shown if text.startswith("earlier "))
    assert shown.startswith(f"earlier bad: {stored.path}: a later version of agent-workbench made it")


async def test_footer_is_updated_once_past_runs_of_the_case_are_read(opened: Opened) -> None:
    opened.view.go_to(0, 1)
    opened.view.shown.clear()
    opened.past_results.cursor_moved()
    opened.view.timers[-1].call()
    await opened.view.settled()
    assert opened.view.shown == ["earlier bad", "state"]


async def test_changed_evalset_appears_and_the_cursor_stays(opened: Opened) -> None:
    opened.view.go_to(0, 1)
    opened.view.rows.marks.add([(0, 1)])
    file = opened.project.evalset(case("new"), GOOD, BAD)
    await opened.touch(file)
    assert opened.view.said == ["talk.evalset.json changed on disk: 1 case"]
    row = opened.view.rows.cursor
    assert row is not None
    assert opened.session.entry(0).document.cases[row.case].eval_id == "bad"
    assert list(opened.view.rows.marks) == [(0, 2)]
    assert opened.states == {"new": "not_run", "good": "passed", "bad": "failed"}


async def test_changes_wait_while_the_user_edits(opened: Opened) -> None:
    shown = opened.session.workspace
    opened.view.occupied = True
    await opened.touch(opened.project.evalset(GOOD))
    await opened.fire()
    assert opened.session.workspace is shown
    opened.view.occupied = False
    await opened.fire()
    assert opened.view.said == ["talk.evalset.json changed on disk: 1 case"]
    assert opened.states == {"good": "passed"}


async def test_follower_reports_no_files_during_a_watch(opened: Opened) -> None:
    opened.session.watching = object()  # type: ignore[assignment]
    await opened.touch(opened.project.evalset(GOOD))
    assert opened.view.said == []


async def test_changed_agent_is_reported_with_its_number_of_stale_verdicts(opened: Opened) -> None:
    source = opened.project.root / "echo/agent.py"
    before = source.read_text()
    source.write_text(before.replace("You said", "You say"))
    await opened.touch(source)
    await opened.view.settled()
    assert opened.view.said == ["agent.py changed on disk: 2 verdicts stale"]
    source.write_text(before)
    await opened.touch(source)
    await opened.view.settled()
    assert opened.view.said[1:] == ["agent.py changed on disk: no verdict stale"]


async def test_run_in_another_terminal_appears(opened: Opened) -> None:
    other = opened.elsewhere()
    other.start()
    other.end_case(0, "failed")
    await opened.touch(runs=True)
    assert opened.states == {"good": "failed", "bad": "failed"}
    assert opened.session.elsewhere == (1, 2)
    assert opened.session.store.run.run_id != other.run_id
    other.end_case(1, "failed")
    other.finish()
    await opened.touch(runs=True)
    assert opened.session.elsewhere is None
    assert opened.view.said == ["run of 2 cases in another terminal: 2 failed"]
    assert opened.session.store.run.run_id == opened.session.restored_run == other.run_id
    assert opened.session.store.counts() == {"failed": 2}
    assert [ref.eval_id for ref in opened.session.changed.refs()] == ["good"]
    assert opened.flags


async def test_unreadable_runs_of_other_programs_are_reported_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look() -> None:
        raise LookupError("x\x1b[31m")

    monkeypatch.setattr(opened.runs._runs, "look", look)
    for _ in range(2):
        await opened.touch(runs=True)
    (notice,) = opened.view.notices
    assert notice.startswith("runs of other programs are not shown: LookupError(")
    assert "\x1b" not in notice


async def test_results_of_another_program_wait_for_the_end_of_the_active_run(opened: Opened) -> None:
    run = opened.session.store.run
    opened.session.store.run = dataclasses.replace(run, finished=False)
    other = opened.elsewhere()
    other.start()
    other.end_case(0)
    other.end_case(1)
    other.finish()
    await opened.touch(runs=True)
    assert opened.session.store.run.run_id == run.run_id
    opened.session.store.run = run
    await opened.fire()
    assert opened.session.elsewhere is None
    assert opened.view.said == ["run of 2 cases in another terminal: 2 passed"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs the system's events")
async def test_follower_reports_files_and_runs(tmp_path: Path) -> None:
    project = Project(tmp_path)
    file = project.evalset(GOOD)
    workspace = open_workspace(tmp_path)
    follower = Follower(tmp_path / ".workbench", lambda: workspace, lambda: [tmp_path / "data/a.txt"], lambda: False)
    follower.update(walk=True)
    assert follower.complete
    seen: asyncio.Queue[TouchedPaths] = asyncio.Queue()

    async def read() -> None:
        async for touched in follower.touched():
            seen.put_nowait(touched)

    task = asyncio.create_task(read())
    await asyncio.wait_for(follower.changes.armed.wait(), 60)
    project.evalset(BAD)
    found = TouchedPaths(frozenset())
    while file not in found.paths:
        found |= await asyncio.wait_for(seen.get(), 60)
    (tmp_path / ".workbench/runs/2026-11-21T10-30-00-aaaa").mkdir(parents=True)
    while not (await asyncio.wait_for(seen.get(), 60)).runs:
        pass
    follower.changes.close()
    await asyncio.wait_for(task, 60)


async def test_change_whose_event_was_lost_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    file = project.evalset(GOOD)
    workspace = open_workspace(tmp_path)
    follower = Follower(tmp_path / ".workbench", lambda: workspace, list, lambda: False)
    follower.update(walk=True)

    async def batches() -> AsyncIterator[Batch]:
        for _ in range(2):
            yield Batch(frozenset(), all_files=True)

    monkeypatch.setattr(follower.changes, "batches", batches)
    file.unlink()
    # The folders are looked up again, for example after a run, before the change is noticed.
    follower.update(walk=False)
    first, second = [touched.paths async for touched in follower.touched()]
    assert file in first
    assert not second
