"""A watch on the screen, with the real engine and real files."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.cli.projects import BAD, GOOD, Project
from tests.saves import save
from tests.ui.conftest import AtOnce, Screen, record_notices
from tests.ui.quiet import quick_pilots
from workbench.events.events import Usage
from workbench.files import settings as config
from workbench.store.details import read_details
from workbench.ui.dialogs.pick import PickList
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import Themes
from workbench.ui.tree.query import parse_query


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_pilots():
        yield


def agent(answer: str) -> str:
    return f"def root_agent(message, session):\n    return {answer!r} + message\n"


class Watched(Screen):
    """The app on a project of two cases, one of which passes."""

    def __init__(
        self,
        root: Path,
        *,
        watch: bool = False,
        calls: int | None = None,
        themes: Themes | None = None,
        settings: Path | None = None,
    ) -> None:
        self.project = Project(root)
        self.project.write("echo/agent.py", agent("You said "))
        self.project.evalset(GOOD, BAD)
        themes = themes or Themes()
        said = config.Settings(settings or root / "none.toml", watch_calls=calls)
        self.session = Session(root)
        self.app = WorkbenchApp(self.session, said, themes, themes.read("night"), watch=watch)
        self.main = self.app.main
        self.main.controllers.news.pace = AtOnce()
        self.notices = record_notices(self.app)
        self.pilot: Pilot[int]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Watched"]:
        async with self.app.run_test(size=(120, 30), notifications=True) as pilot:
            self.pilot, self.patience = pilot, 20.0
            self.press_in_turn(pilot)
            await self.until(pilot, lambda: self.session.workspace is not None)
            yield self
            if self.session.watching is not None:
                await pilot.press("w")
            await asyncio.to_thread(self.app.main.controllers.thread.close, 10.0)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def ran(self, earlier: str = "") -> None:
        """Wait for the end of a run other than the previous one."""
        store = self.session.store
        await self.until(self.pilot, lambda: store.run.run_id not in ("", earlier) and store.run.finished)
        await self.until(self.pilot, lambda: not self.session.store.activity.starting)

    async def arm(self) -> None:
        await self.press("w")
        await self.armed()

    async def armed(self) -> None:
        await self.until(self.pilot, lambda: self.session.watching is not None)
        watching = self.session.watching
        assert watching is not None
        await asyncio.wait_for(watching.watcher.changes.armed.wait(), 60)

    def states(self) -> dict[str, str]:
        return {ref.eval_id: record.state for ref, record in self.session.store.records.items()}

    @property
    def bar(self) -> str:
        return self.main.bar.render().plain


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


async def test_starting_a_watch_runs_nothing(tmp_path: Path) -> None:
    watched = Watched(tmp_path, watch=True)
    async with watched.opened():
        await watched.armed()
        await watched.until(watched.pilot, lambda: "watch on" in watched.bar)
        assert watched.session.store.run.run_id == ""


async def test_watch_requested_while_the_folder_is_read_starts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, wait = Watched(tmp_path), threading.Event()
    read = watched.session.read
    monkeypatch.setattr(watched.session, "read", lambda arrived=None: (wait.wait(60), read(arrived))[1])
    async with watched.app.run_test(size=(80, 24)) as watched.pilot:
        await watched.press("w")
        assert watched.session.watching is None
        wait.set()
        await watched.armed()
        await watched.press("w")
        await asyncio.to_thread(watched.app.main.controllers.thread.close, 10.0)


async def test_save_runs_its_cases_and_changed_verdicts_can_be_visited(watched: Watched) -> None:
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        assert watched.states() == {"good": "passed", "bad": "failed"}
        await watched.arm()
        first = watched.session.store.run.run_id
        watched.project.write("echo/agent.py", agent("I say "))
        await watched.ran(first)
        assert watched.states() == {"good": "failed", "bad": "failed"}
        await watched.until(watched.pilot, lambda: "saved → verdict" in watched.bar)
        # The tree hears of it with its next update.
        await watched.until(watched.pilot, lambda: bool(watched.session.verdicts.flips))
        await watched.press("]")
        row = watched.main.rows.cursor
        assert row is not None
        assert watched.session.entry(row.evalset).document.cases[row.case].eval_id == "good"
        detail = watched.main.right.detail
        assert detail.reading.titles[-1] == "History"
        parts = ("✓ pass", "✗ fail", "−{You said} hello", "+{I say} hello", "echo/agent.py")
        # The two runs are compared in a thread.
        await watched.until(watched.pilot, lambda: all(part in (detail.copy_text() or ("", ""))[1] for part in parts))
        watched.main.tree_view.set_query(parse_query(":changed"))
        assert [watched.main.tree_view.model.outline.all_cases()] == [[(row.evalset, row.case)]]


async def test_save_right_after_the_watch_is_on_runs_its_cases(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        first = watched.session.store.run.run_id
        staleness, may_compare = watched.main.controllers.staleness, asyncio.Event()
        compared = staleness.compared

        async def slowly() -> None:
            await may_compare.wait()
            await compared()

        monkeypatch.setattr(staleness, "compared", slowly)
        await watched.press("w")
        await watched.until(watched.pilot, lambda: "watch on" in watched.bar)
        watched.project.write("echo/agent.py", agent("I say "))
        may_compare.set()
        await watched.ran(first)
        assert watched.states() == {"good": "failed", "bad": "failed"}


async def test_readme_and_license_files_run_nothing(watched: Watched) -> None:
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        await watched.arm()
        first = watched.session.store.run.run_id
        watched.project.write("README.md", "hello")
        watched.project.write("other/agent.py", agent("Hello "))
        watched.project.write("echo/agent.py", agent("You said ") + "# the last\n")
        await watched.ran(first)
        runs = {record.run_id for record in watched.session.store.records.values()}
        assert len(runs) == 1, "one run since, of all cases"


async def test_changed_threshold_only_decides_again(watched: Watched) -> None:
    watched.project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        await watched.arm()
        first = watched.session.store.run.run_id
        watched.project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.0}})
        await watched.ran(first)
        assert watched.states() == {"good": "passed", "bad": "passed"}
        await watched.until(watched.pilot, lambda: "compared scores" in watched.bar)
        assert watched.session.store.run.scored_from == first


async def test_verdicts_stay_stale_after_a_syntax_error(watched: Watched) -> None:
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        await watched.arm()
        first = watched.session.store.run.run_id
        watched.project.write("echo/agent.py", "def root_agent(\n")
        await watched.until(watched.pilot, lambda: len(watched.session.verdicts.stale) == 2)
        await watched.until(watched.pilot, lambda: "agent.py:1 is broken" in watched.bar)
        await watched.until(watched.pilot, lambda: "2 stale" in watched.bar)
        assert watched.states() == {"good": "passed", "bad": "failed"}
        watched.main.tree_view.set_query(parse_query(":stale"))
        assert len(watched.main.tree_view.model.outline.all_cases()) == 2
        watched.project.write("echo/agent.py", agent("I say "))
        await watched.ran(first)
        await watched.until(watched.pilot, lambda: not watched.session.verdicts.stale)


async def test_only_marked_cases_are_watched(watched: Watched) -> None:
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        watched.main.tree_view.model.marks.add([(0, 0)])
        await watched.arm()
        first = watched.session.store.run.run_id
        watched.project.write("echo/agent.py", agent("I say "))
        await watched.ran(first)
        newest = {ref.eval_id for ref in watched.session.store.current}
        assert newest == {"good"}
        await watched.until(watched.pilot, lambda: watched.session.verdicts.stale.keys() == {(0, 1)})


async def test_job_above_the_limit_waits_for_a_key(tmp_path: Path) -> None:
    watched = Watched(tmp_path, calls=0)
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        records = watched.session.store.records
        records |= {ref: replace(read_details(record), usage=Usage(model_calls=5)) for ref, record in records.items()}
        await watched.arm()
        first = watched.session.store.run.run_id
        watched.project.write("echo/agent.py", agent("I say "))
        await watched.until(watched.pilot, lambda: "2 of 2 stale, about 10 calls: press w to run" in watched.bar)
        assert watched.session.store.run.run_id == first
        await watched.press("w")
        await watched.ran(first)
        assert watched.states()["good"] == "failed"


async def test_watched_files_are_listed(watched: Watched) -> None:
    async with watched.opened():
        await watched.arm()
        watched.main.controllers.watch.watched()
        await watched.until(watched.pilot, lambda: bool(watched.app.screen.query(PickList)))
        shown = watched.app.screen.query_one(PickList)
        texts = [shown.row_pieces(number, 100) for number in range(shown.row_count())]
        assert "echo/talk.evalset.json" in str(texts)
        await watched.press("escape")


async def test_second_w_stops_the_watch(watched: Watched) -> None:
    async with watched.opened():
        await watched.arm()
        await watched.press("w")
        await watched.until(watched.pilot, lambda: "watch off" in watched.bar)
        assert watched.session.watching is None


async def test_saves_before_the_watch_make_verdicts_stale_and_run_nothing(watched: Watched) -> None:
    async with watched.opened():
        await watched.press("r")
        await watched.ran()
        run, session = watched.session.store.run, watched.session
        agent_file = watched.project.write("echo/agent.py", agent("I say "))
        os.utime(agent_file, (time.time() + 5, time.time() + 5))  # The second of the run is over.
        await watched.arm()
        await watched.until(watched.pilot, lambda: session.verdicts.stale.keys() == {(0, 0), (0, 1)})
        await watched.until(watched.pilot, lambda: "2 stale" in watched.bar)
        assert session.store.run is run


async def test_saved_theme_and_keys_change_only_the_screen(tmp_path: Path) -> None:
    settings, folder = tmp_path / "settings.toml", tmp_path / "themes"
    folder.mkdir()
    (tmp_path / "project").mkdir()
    mine = folder / "mine.toml"
    mine.write_text('[colors]\nprimary = "#111111"\n')
    settings.write_text("")
    watched = Watched(tmp_path / "project", themes=Themes([folder]), settings=settings)
    async with watched.opened():
        await watched.arm()
        app, said = watched.app, watched.pilot
        save(settings, 'theme = "mine"\n[keys]\nrun = "R"\n')
        await watched.until(said, lambda: app.theme == "mine")
        await watched.until(said, lambda: watched.main.keys["run"] == ("R",))
        save(mine, '[colors]\nprimary = "#222222"\n')
        await watched.until(said, lambda: app.current_theme.primary == "#222222")
        assert app.get_css_variables()["primary"].lower() == "#222222"
        save(settings, "theme = [")
        save(mine, '[colors]\nprimary = "no colour"\n')
        parts = ("R is now the key of run", "settings.toml: cannot be read", "mine.toml: primary: 'no colour'")

        def told() -> list[int]:
            return [sum(part in notice for notice in watched.notices) for part in parts]

        await watched.until(said, lambda: all(told()))
        assert told() == [1, 1, 1], "\n".join(watched.notices)
        assert (app.theme, app.current_theme.primary, watched.main.keys["run"]) == ("mine", "#222222", ("R",))
        assert watched.session.store.run.run_id == ""


def test_moved_current_folder_is_reported_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    root.mkdir()
    Project(root)
    monkeypatch.chdir(root)
    session = Session(Path())
    assert session.read().root == root
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="does not exist"):
        session.read()
