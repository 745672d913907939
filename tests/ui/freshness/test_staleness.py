"""Marks of stale verdicts on the screen, with real files and without a terminal."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.cli.projects import BAD, GOOD, REPOSITORY, Project, PutBack
from tests.ui.fake_view import FakeView, controllers_of
from workbench.agents.environment import package_folders
from workbench.agents.workspace import open_workspace
from workbench.events.events import CaseFinished, CaseRef, PlannedCase, RunFinished, RunStarted
from workbench.files.file_access import signature_of
from workbench.store.history.retention import delete_runs
from workbench.ui.freshness import staleness

PROMPTED = """
from pathlib import Path

def root_agent(message, session):
    return (Path(__file__).parent / "prompt.txt").read_text() + message
"""


def prepare(project: Project) -> None:
    project.write("echo/agent.py", PROMPTED)
    project.write("echo/prompt.txt", "You said ")
    project.evalset(GOOD, BAD)
    project.run("run", ".", "--plain")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    return PutBack(tmp_path_factory.mktemp("staleness"), prepare)


class Opened:
    """A project that was run, closed and opened again."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.view = FakeView(open_workspace(project.root))
        self.controllers = controllers_of(self.view)
        self.staleness = self.controllers.staleness
        self.verdicts = self.view.session.verdicts

    async def open(self) -> "Opened":
        self.controllers.past_results.load_verdicts()
        await self.view.settled()
        return self

    async def look(self) -> None:
        """Fire the timer that polls the files."""
        (timer,) = (timer for timer in self.view.timers if timer.call == self.staleness.poll)
        timer.call()
        await self.view.settled()

    @property
    def marks(self) -> dict[str, list[str]]:
        cases = self.view.session.entry(0).document.cases
        return {cases[case].eval_id: [change.name for change in why] for (_, case), why in self.verdicts.stale.items()}


@pytest.fixture
async def opened(kept: PutBack, monkeypatch: pytest.MonkeyPatch) -> Opened:
    project = await asyncio.to_thread(kept.project)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setattr(staleness, "_PAUSE_FACTOR", 0.0)
    return await Opened(project).open()


@pytest.fixture(autouse=True)
def prepared(kept: PutBack) -> None:
    """Run the project outside of the event loop of the test."""
    kept.project()


async def test_save_without_a_watch_is_marked_at_the_next_poll(opened: Opened) -> None:
    assert opened.marks == {}
    opened.project.write("echo/prompt.txt", "He said ")
    await opened.look()
    assert opened.marks == {"good": ["echo/prompt.txt"], "bad": ["echo/prompt.txt"]}
    assert opened.verdicts.stale_text == ("2 stale: prompt.txt", "2 stale")
    opened.project.write("echo/prompt.txt", "You said ")
    await opened.look()
    assert opened.marks == {}
    assert opened.verdicts.stale_text == ("", "")


async def test_save_of_the_evalset_marks_only_the_cases_that_changed(opened: Opened) -> None:
    opened.project.evalset(GOOD, {**BAD, "session_input": {"app_name": "echo", "user_id": "u", "state": {"a": 1}}})
    await opened.look()
    assert list(opened.marks) == ["bad"]


async def test_new_module_and_new_config_make_verdicts_stale(opened: Opened) -> None:
    opened.project.write("echo/more.py", "X = 1\n")
    await opened.look()
    assert opened.marks == {"good": ["echo/more.py"], "bad": ["echo/more.py"]}
    (opened.project.root / "echo/more.py").unlink()
    opened.project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    await opened.look()
    assert opened.marks == {name: ["tool_trajectory_avg_score"] for name in ("good", "bad")}


async def test_new_virtual_environment_makes_verdicts_stale(opened: Opened) -> None:
    assert opened.staleness._last is not None
    assert set(package_folders(Path(sys.executable))) <= set(opened.staleness._last.files)
    venv = opened.project.root / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(sys.executable)
    (venv / "lib/python3.11/site-packages").mkdir(parents=True)
    await opened.look()
    assert all("interpreter" in why for why in opened.marks.values())
    assert list(opened.marks) == ["good", "bad"]


async def test_unreadable_evalset_keeps_its_marks(opened: Opened) -> None:
    opened.project.write("echo/prompt.txt", "He said ")
    await opened.look()
    opened.project.write("echo/talk.evalset.json", '{"eval_cases": [')
    await opened.look()
    assert list(opened.marks) == ["good", "bad"]


async def test_shown_verdict_of_a_deleted_run_becomes_stale(opened: Opened) -> None:
    delete_runs(opened.view.session.state_dir, [opened.view.session.store.run.run_id])
    opened.project.write("echo/prompt.txt", "He said ")
    opened.staleness.stored()
    await opened.view.settled()
    assert list(opened.marks) == ["good", "bad"]


async def test_repeats_of_an_older_run_do_not_hide_that_a_newer_verdict_is_stale(opened: Opened) -> None:
    project = opened.project
    await asyncio.to_thread(project.program, "run", ".", "--plain", "--runs", "2")
    again = await Opened(project).open()
    await again.controllers.other_runs.begin()
    await asyncio.to_thread(project.program, "run", ".", "--plain")
    again.controllers.other_runs.look()
    await again.view.settled()
    assert again.verdicts.repeats(0, 0) == 1
    project.write("echo/prompt.txt", "He said ")
    await again.look()
    assert list(again.marks) == ["good", "bad"]


async def test_unchanged_files_are_not_read_again(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("nothing has changed")

    monkeypatch.setattr(opened.staleness, "_read", read)
    await opened.look()
    assert opened.view.notices == []


async def test_running_case_has_no_mark_until_its_old_verdict_returns(opened: Opened) -> None:
    opened.project.write("echo/prompt.txt", "He said ")
    await opened.look()
    good, bad = (CaseRef("echo", "echo/talk.evalset.json", "talk", name) for name in ("good", "bad"))
    store = opened.view.session.store
    store.apply(RunStarted("another", str(opened.project.root), "", (PlannedCase(good, None, ""),)))
    opened.staleness.after_news(False)
    assert list(opened.marks) == ["bad"]
    store.apply(CaseFinished(good, "cancelled", None, 0.1))
    store.apply(RunFinished(0.1, interrupted=True))
    opened.staleness.after_news(True)
    await opened.view.settled()
    assert sorted(opened.marks) == ["bad", "good"]
    assert bad in store.records


async def test_failed_comparison_is_reported_once_and_the_screen_continues(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise LookupError("x\x1b[31m")

    monkeypatch.setattr(opened.staleness, "_read", read)
    await opened.staleness.compared()
    await opened.staleness.compared()
    (notice,) = opened.view.notices
    assert notice.startswith("stale verdicts are not marked: LookupError(")
    assert "\x1b" not in notice
    monkeypatch.undo()
    await opened.staleness.compared()


def test_signature_changes_when_a_file_is_created_or_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a"
    before = signature_of([file])
    file.write_text("1")
    written = signature_of([file])
    other = tmp_path / "b"
    other.write_text("2")
    other.replace(file)
    assert len({before, written, signature_of([file])}) == 3
