"""A view without a terminal. It records messages and dialogs, and answers questions."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.ui.feed import Feed
from workbench.agents.workspace import Workspace
from workbench.editing.responsible import Place, case_place
from workbench.events.events import CaseRef, PlannedCase, RunStarted
from workbench.files import settings as config
from workbench.ui.actions import Situation, keymap
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.freshness.staleness import Staleness
from workbench.ui.freshness.watch import Watch
from workbench.ui.main.wiring import Controllers
from workbench.ui.running.engine_run import ONCE, Engine, RepeatOptions
from workbench.ui.running.news import News
from workbench.ui.running.run import Run
from workbench.ui.running.run_thread import RunThread
from workbench.ui.screen.folder import Folder
from workbench.ui.screen.situation import WayBack, situation_of
from workbench.ui.screen.subjects import Subjects
from workbench.ui.session.session import Session
from workbench.ui.terminal.host import Host
from workbench.ui.tree.model import Tree
from workbench.ui.tree.query import Query, parse_query
from workbench.ui.tree.scope import targets_of
from workbench.ui.widgets.basics import Work


def nothing(*given: Any) -> None:
    """Do nothing."""


HOST = Host(("night",), nothing, nothing, nothing, nothing)
"""A host without an app."""


class Timer:
    """A timer that the test fires."""

    def __init__(self, seconds: float, call: Callable[[], Any]) -> None:
        self.seconds, self.call = seconds, call
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


class FakeTreeView:
    """A tree that paints nothing."""

    def __init__(self, model: Tree) -> None:
        self.model = model
        self.repeats_changed, self.arrange_again = model.repeats_changed, model.arrange_again
        self.when_changed: list[Any] = []
        self.when_arranged: list[Any] = []

    def next_problem(self, step: int) -> bool | None:
        found = self.model.problem(step)
        if found is None:
            return None
        self.model.show(found[0])
        return found[1]

    def show_verdicts(self) -> int:
        self.model.verdicts.changed.clear()
        return 0

    def refresh(self) -> None:
        """Paint all rows."""


class FakeSplit:
    """The border between the sides."""

    share: float | None = None

    def use(self, share: float | None) -> None:
        self.share = share


class FakeRight:
    """The right side without a case."""

    region = None
    in_case = False
    shows_overview = False
    moves = 0
    selected: Sequence[tuple[int, int]] = ()
    item_key = ""

    def __init__(self, shown: list[str]) -> None:
        self._shown = shown

    def show_past_runs(self, ref: CaseRef, earlier: Any, compared: Any = None) -> None:
        self._shown.append(f"earlier {ref.eval_id}{f': {compared.trouble}' if compared is not None else ''}")

    def open_pane(self, title: str) -> None:
        self._shown.append(title)

    def selected_cases(self) -> Sequence[tuple[int, int]]:
        return self.selected

    def copied(self) -> tuple[str, str] | None:
        return None


_Screen: Any = object  # mypy takes the class for any other, so for the Textual screen.


class FakeView(_Screen):  # type: ignore[misc]
    """A view that answers each question with the next of `answers`. `said` and `notices` are the messages so far."""

    def __init__(self, workspace: Workspace) -> None:
        self.session = Session(workspace.target)
        self.keys = keymap().keys
        self.rows = Tree(self.session.verdicts)
        self.said: list[str] = []
        self.notices: list[str] = []
        self.answers: list[Any] = []
        self.asked: list[Any] = []
        """Titles of questions, and dialogs."""
        self.pushed: list[Any] = []
        self.timers: list[Timer] = []
        self.shown: list[str] = []
        self.opened: list[tuple[str, WayBack | None]] = []
        """Panes of cases that were opened, and the way back."""
        self.tree_view: Any = FakeTreeView(self.rows)
        self.right: Any = FakeRight(self.shown)
        self.split = FakeSplit()
        self.selected = None
        self._tasks: list[asyncio.Future[Any]] = []
        self.show_workspace(workspace)

    @property
    def situation(self) -> Situation:
        return situation_of(self.session, self.rows)

    def targets(self, action: str) -> list[tuple[int, int]]:
        return targets_of(action, self.rows, self.selected).pairs()

    async def settled(self) -> None:
        """Wait for all work, including the work that it starts."""
        while self._tasks:
            await self._tasks.pop(0)

    # View

    tree_width = 30

    def show_evidence(self) -> bool:
        return False

    @property
    def subjects(self) -> Subjects:
        return Subjects(self.session, lambda record: None)

    def say(self, text: str, *, warning: bool = False, seconds: float = 3.0) -> None:
        self.said.append(text)

    say_on_page: Any = None

    def clear_message(self) -> None:
        self.shown.append("keys")

    def notify(self, message: str, **more: Any) -> None:
        self.notices.append(message)

    async def pick(self, title: str, items: Sequence[Item], **more: Any) -> Any:
        return self._answer(title)

    async def name_for(self, question: str, fault: Callable[[str], str], proposed: str = "", ways: str = "") -> Any:
        return self._answer(question)

    async def ask(self, dialog: Any) -> Any:
        return self._answer(dialog)

    def push(self, page: Any, done: Callable[[Any], None] | None = None) -> None:
        self.pushed.append(page)
        if done is not None:
            done(self.answers.pop(0))

    def work(self, work: Work, group: str, *, exclusive: bool = True) -> None:
        if group != "disk":  # It would follow the disk for ever.
            self._tasks.append(asyncio.ensure_future(work()))

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        self.timers.append(Timer(delay, callback))
        return self.timers[-1]

    set_interval = set_timer

    def call_later(self, callback: Callable[..., Any], *args: Any) -> object:
        return callback(*args)

    def show_workspace(self, workspace: Workspace) -> None:
        self.session.set_workspace(workspace)
        self.rows.load(workspace)

    def open_case(self, evalset: int, case: int, pane: str = "", back: WayBack | None = None) -> None:
        self.go_to(evalset, case)
        self.opened.append((pane, back))

    def go_to(self, evalset: int, case: int = -1) -> bool:
        row = self.rows.row_of(evalset, case)
        self.rows.show(row)
        return self.rows.cursor == row

    reveal = go_to

    def go_left(self) -> None:
        self.shown.append("cases")

    def do(self, action: str) -> None:
        self.shown.append(f"action {action}")

    overviews: Any = None
    in_right = False

    def go_right(self) -> None:
        self.shown.append("right side")

    def set_filter(self, text: str) -> None:
        self.rows.set_query(parse_query(text), typing=True)

    keys_delivered = 0
    covered = False
    occupied = False
    theme_name = "night"

    def close_pages(self) -> None:
        self.shown.append("no pages")

    def lend_terminal(self, use: Any) -> Any:
        return self._answer(use.args[-1])

    def responsible(self) -> Place | None:
        row = self.rows.cursor
        return None if row is None or row.evalset < 0 else case_place(self.session.entry(row.evalset), row.case)

    def leave(self, reopen: Path | None = None) -> None:
        self.shown.append("left" if reopen is None else f"left for {reopen.name}")

    def clear_filter(self) -> None:
        self.rows.set_query(Query())

    def show_state(self) -> None:
        self.shown.append("state")

    def tick(self) -> None:
        self.shown.append("tick")

    def refresh_row(self, touched: set[CaseRef]) -> int:
        return 0

    def get_selected_text(self) -> str | None:
        return None

    def clear_selection(self) -> None:
        self.shown.append("no selection")

    def show_row(self) -> None:
        self.shown.append("row")

    def show_facts(self) -> bool:
        self.shown.append("facts")
        return False

    def drawn(self) -> str:
        return "<svg/>"

    def _answer(self, asked: Any) -> Any:
        self.asked.append(asked)
        return self.answers.pop(0)


class StillThread(RunThread):
    """A thread that starts nothing. `built` holds the runs handed to it, and `news` its coming events."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[Any] = []
        self.news: list[Any] = []
        self.cancelled: list[tuple[Any, bool]] = []

    def start(self, build: Any) -> int:
        self.built.append(build)
        return len(self.built)

    def also(self, work: Any) -> None:
        self.built.append(work)

    def cancel(self, refs: list[CaseRef] | None, *, kill: bool = False, stop: bool = False) -> None:
        self.cancelled.append((refs, kill))

    def take(self) -> list[Any]:
        news, self.news = self.news, []
        return news

    def close(self, timeout: float = 5.0) -> None:
        self.built.append("closed")


class WordEngine(Engine):
    """An engine that returns strings instead of runs."""

    def build(self, targets: Any, times: RepeatOptions = ONCE, recordings: Any = None) -> Any:
        return "run", list(targets), times.runs

    def rescore(self, targets: Any, *, fresh: bool = False, references_of_now: bool = False) -> Any:
        return "score", list(targets), fresh, references_of_now

    def resume(self) -> Any:
        return "resume"

    def planned(self, make: Any, *, is_last: bool = True) -> Any:
        return "planned", make

    def warm(self) -> Any:
        return "warm"


class Bench:
    """Controllers around a view, with a thread and an engine that do nothing."""

    def __init__(self, view: FakeView) -> None:
        self.view, self.thread, self.session = view, StillThread(), view.session
        self.engine = WordEngine(view.session, config.Settings(Path("none.toml")))
        self.session.read = lambda arrived=None: self.workspace  # type: ignore[method-assign]
        self.folder = Folder(view)
        self.files = Files(view, self.folder)
        self.run = Run(view, self.folder, self.engine, self.thread)
        self.news = News(view, self.run)
        self.staleness = Staleness(view, self.folder, self.news)
        host = Host((), nothing, nothing, nothing, lambda: view.shown.append("themes"))
        self.watch = Watch(view, self.folder, self.run, self.news, self.staleness, self.engine, host)

    @property
    def workspace(self) -> Workspace:
        assert self.session.workspace is not None
        return self.session.workspace

    def tell(self, *news: Any) -> None:
        """Apply events of the thread."""
        self.thread.news += news
        self.news.flush()

    def started(self, *cases: tuple[str, str], run_id: str = "run-1", scored_from: str = "") -> list[CaseRef]:
        """Apply the start of a run of these cases (evalset, ID)."""
        refs = [ref for case in cases for ref in Feed(self.session.store, self.workspace).refs(*case)]
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in refs)
        root = str(self.workspace.root)
        self.tell(RunStarted(run_id, root, "2026-11-21T10:30:00Z", planned, scored_from=scored_from))
        return refs

    def put_cursor(self, evalset: int, case: int = -1) -> None:
        self.view.go_to(evalset, case)


def controllers_of(view: FakeView) -> Controllers:
    """Return all controllers, with an engine that reads the user's project."""
    return Controllers(view, Engine(view.session, config.Settings(Path("none.toml"))), HOST)
