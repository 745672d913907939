"""Workspaces made from files, stores fed with events, and an app whose runs are scripted."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification
from textual.pilot import Pilot

from tests.ui.fake_view import Bench, FakeView
from tests.ui.feed import Feed, user
from tests.ui.quiet import quick_pilots
from tests.ui.shown import record_writes, shown_strips
from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import CriteriaChoice, EvalsetEntry, Workspace
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.files import settings as config
from workbench.files.criteria import default_config
from workbench.files.evalset import open_evalset
from workbench.freshness import follow, staleness
from workbench.freshness.changes import PROMPT
from workbench.run.dask.files import MachineState
from workbench.store.store import Store
from workbench.ui.freshness import staleness as marks
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.running.engine_run import ONCE, Engine, RepeatOptions
from workbench.ui.running.run_thread import Publish
from workbench.ui.screen import key_order
from workbench.ui.session.session import Session
from workbench.ui.terminal.terminal import Display, Pace
from workbench.ui.terminal.themes import Themes
from workbench.ui.widgets.footer import KeyLine


@pytest.fixture(scope="session", autouse=True)
def _style_sheets_are_parsed_once() -> Iterator[None]:
    """Share parsed style sheets between apps with the same variables.

    Otherwise, each app would parse the same style sheets again. Rules are hashed very often. `object.__hash__` does it
    by identity like `RuleSet.__hash__`, but faster.
    """
    parsed: dict[Any, list[RuleSet]] = {}
    parse = Stylesheet._parse_rules

    def remembered(self: Stylesheet, *words: Any, **more: Any) -> list[RuleSet]:
        key = (frozenset(self._variables.items()), words, frozenset(more.items()))
        if key not in parsed:
            parsed[key] = parse(self, *words, **more)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", remembered)
        patch.setattr(RuleSet, "__hash__", object.__hash__)
        yield


@pytest.fixture(scope="session", autouse=True)
def _pilots_are_quick() -> Iterator[None]:
    with quick_pilots():
        yield


@pytest.fixture(scope="session", autouse=True)
def _busy_machine_changes_nothing() -> Iterator[None]:
    """Keep notices, messages in the last line and waiting keys. A busy machine would drop them before a test looks."""
    set_timer = KeyLine.set_timer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_order, "PATIENCE", 60)
        patch.setattr(KeyLine, "set_timer", lambda line, seconds, call: set_timer(line, 3600.0, call))
        patch.setattr(Notification, "time_left", 3600.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _files_are_followed_promptly() -> Iterator[None]:
    """Let screens notice a saved file at once. They take their time because they are idle most of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow, "CALM", PROMPT)
        patch.setattr(marks, "_BETWEEN", 0.05)
        patch.setattr(marks, "_PAUSE_FACTOR", 1.0)
        patch.setattr(marks, "_POLL_INTERVAL", 0.5)
        yield


@pytest.fixture(autouse=True)
def _warm(warm_scorers: None) -> None:
    """Let the scorers and workers of runs in this process be forks."""


Shape: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""agent → evalset → IDs of its cases. The agent "" means no agent."""
SHOP: Shape = {
    "order_desk": {
        "refunds": ["on_time", "late_parcel", "unknown_order", "two_parcels"],
        "greetings": ["hello", "good_night"],
    },
    "team_router": {"hand_over": ["to_billing", "to_technician"]},
}


def case_json(eval_id: str) -> dict[str, Any]:
    turn = {
        "invocation_id": "one",
        "user_content": user("Where is my parcel?"),
        "final_response": {"role": "model", "parts": [{"text": "On its way."}]},
    }
    return {"eval_id": eval_id, "conversation": [turn], "session_input": {"app_name": "x", "user_id": "u", "state": {}}}


MakeWorkspace: TypeAlias = Callable[..., Workspace]


@pytest.fixture
def make_workspace(tmp_path: Path) -> MakeWorkspace:
    """Write the files of a `Shape` and open them. An evalset given as text is written unchanged."""

    def make(shape: Mapping[str, Mapping[str, Sequence[str] | str]] = SHOP) -> Workspace:
        agents, entries = [], []
        for agent_name, evalsets in shape.items():
            folder = tmp_path / (agent_name or "loose")
            folder.mkdir(exist_ok=True)
            definition = folder / "agent.py"
            definition.write_text("root_agent = None\n", encoding="utf-8")
            agent = AgentFolder(agent_name, folder, "python", definition, "root_agent") if agent_name else None
            agents += [agent] if agent else []
            for evalset, cases in evalsets.items():
                file = folder / f"{evalset}.evalset.json"
                data = {"eval_set_id": evalset, "name": evalset, "eval_cases": [case_json(case) for case in cases]}
                file.write_text(cases if isinstance(cases, str) else json.dumps(data), encoding="utf-8")
                criteria = CriteriaChoice(default_config(), "defaults: no test_config.json or eval_config.json")
                reason = "its folder holds the file" if agent else "no agent near it"
                relative = file.relative_to(tmp_path).as_posix()
                entries.append(EvalsetEntry(file, relative, open_evalset(file), agent, reason, criteria))
        return Workspace(tmp_path, tmp_path, tuple(agents), tuple(entries), ())

    return make


@pytest.fixture
def shop(make_workspace: MakeWorkspace) -> Workspace:
    return make_workspace()


@pytest.fixture
def view(make_workspace: MakeWorkspace) -> FakeView:
    return FakeView(make_workspace())


@pytest.fixture
def bench(view: FakeView) -> Bench:
    return Bench(view)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def feed(store: Store, shop: Workspace) -> Feed:
    return Feed(store, shop)


class FakeRun:
    """A run that follows a script: it calls `script(publish, refs)` when it starts, and ends after `end`."""

    def __init__(self, publish: Publish, refs: list[CaseRef], root: str) -> None:
        self.publish, self.refs, self.root = publish, refs, root
        self.cancelled: list[tuple[CaseRef | None, bool]] = []
        self.stopped = False
        self.interrupted = False
        self.states: Sequence[MachineState] = ()
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def execute(self) -> None:
        planned = tuple(PlannedCase(ref, None, "defaults") for ref in self.refs)
        self.publish(RunStarted("run-1", self.root, "2026-11-21T10:30:00Z", planned))
        await self._over.wait()
        self.publish(RunFinished(1.0, self.interrupted))

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        self.cancelled.append((ref, kill))
        if ref is None:
            self.interrupted = True
            self._over.set()

    def stop(self) -> None:
        self.stopped = True

    def machines(self) -> Sequence[MachineState]:
        return self.states

    def begin(self, ref: CaseRef) -> None:
        self.publish(CaseStarted(ref, 0.0, ({"user_content": user("hello")},), {"response_match_score": 0.8}))

    def end_case(self, ref: CaseRef, status: CaseStatus) -> None:
        self.publish(CaseFinished(ref, status, None, 0.5))

    def end(self) -> None:
        """Publish an event from the test's thread."""
        self._loop.call_soon_threadsafe(self._over.set)


class AtOnce(Pace):
    """A pace that paints every frame. Tests of `Pace` check which frames are left out."""

    def wait(self, now: float, *, decided: bool = False) -> float:
        return 0.0


class Scripted(Engine):
    """An engine whose runs are made by the test."""

    def __init__(self, session: Session, settings: config.Settings, make: Callable[[Any, RepeatOptions], Any]) -> None:
        super().__init__(session, settings)
        self._make = make

    def build(self, targets: Any, times: RepeatOptions = ONCE, recordings: Any = None) -> Any:
        return self._make(targets, times)


def record_notices(app: WorkbenchApp) -> list[str]:
    """Return the list of all notices from now on."""
    notices: list[str] = []
    notify = app.notify

    def record(message: str, **options: Any) -> None:
        notices.append(message)
        notify(message, **options)

    app.notify = record  # type: ignore[method-assign]
    return notices


class Screen:
    """The app with a workspace made from files and scripted runs."""

    def __init__(
        self,
        workspace: Workspace,
        config_file: Path,
        *,
        theme: str = "night",
        overrides: Any = None,
        shown: Display | None = None,
    ) -> None:
        self.session = Session(workspace.target)
        self.workspace = workspace
        self._contents = {one.file: one.file.read_bytes() for one in workspace.evalsets if one.file.is_file()}
        self.reads = 0
        self.session.read = self._read  # type: ignore[method-assign]
        self.started: list[tuple[list[tuple[int, int]], int]] = []
        self.times: list[RepeatOptions] = []
        self.runs: list[FakeRun] = []
        self.refusal: Exception | None = None
        themes = Themes()
        settings = config.Settings(config_file, keys=overrides or {})
        self.engine = Scripted(self.session, settings, self.build)
        self.sent: list[str] = []
        """Sequences sent to the terminal's clipboard."""
        self.patience = 20.0
        """Seconds after which `pilot.press` returns although its keys are not done, for tests that hold them up."""
        theme_read, shown = themes.read(theme), shown or Display()
        self.app = WorkbenchApp(self.session, settings, themes, theme_read, engine=self.engine, shown=shown)
        self.main = self.app.main
        self.main.controllers.news.pace = AtOnce()
        self.notices = record_notices(self.app)

    @classmethod
    def around(cls, app: WorkbenchApp, pilot: Pilot[int]) -> "Screen":
        """Return the helper for an app that was made elsewhere."""
        screen = cls.__new__(cls)
        screen.app, screen.main, screen.session, screen.sent = app, app.main, app.session, []
        screen.patience = 20.0
        screen.notices = record_notices(app)
        screen.press_in_turn(pilot)
        return screen

    @asynccontextmanager
    async def open(self, size: tuple[int, int] = (100, 30)) -> AsyncIterator[Pilot[int]]:
        async with self.app.run_test(size=size, notifications=True) as pilot:
            await self.until(pilot, lambda: self.session.workspace is not None)
            record_writes(self.app, self._keep_copy)
            self.press_in_turn(pilot)
            yield pilot
            await asyncio.to_thread(self.app.main.controllers.thread.close, 1.0)

    def press_in_turn(self, pilot: Pilot[int]) -> None:
        """Make `pilot.press` wait until its keys are done. A key may wait, for example, until a case is read."""
        order, press = self.app._key_order, pilot.press

        async def press_and_wait(*keys: str) -> None:
            await press(*keys)
            for _ in range(int(self.patience * 100)):
                if order._follower is None or not (order._waiting or any(order._at_work())):
                    break
                await asyncio.sleep(0.01)
            await pilot.pause()

        pilot.press = press_and_wait  # type: ignore[method-assign]

    async def until(self, pilot: Pilot[int], holds: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until the condition holds, for at most this many seconds of sleep.

        Looking at the screen takes processor time from what is waited for, so what takes long is looked at less often.
        """
        slept, pause = 0.0, 0.01
        while slept < seconds:
            await pilot.pause()
            if holds():
                return
            await asyncio.sleep(pause)
            slept += pause
            pause = min(pause * 1.1, 0.05)
        raise AssertionError(f"it never came to that:\n{self.text}")

    @property
    def text(self) -> str:
        """Text of the whole screen."""
        return "\n".join(strip.text for strip in shown_strips(self.app))

    @property
    def row(self) -> str:
        """Name of the row under the cursor: a case ID, or the text of a heading."""
        view = self.main.tree_view
        left, _ = view.row_pieces(view.cursor, 80)
        return "".join(text for text, _ in left).strip().lstrip("▾▸○✓✗!?▶· ")

    def _keep_copy(self, data: str) -> None:
        if data.startswith("\x1b]52;"):
            self.sent.append(data)

    def _read(self, arrived: object = None) -> Workspace:
        """Return the workspace, with the evalsets that were edited since read again from disk."""
        self.reads += 1
        entries = tuple(
            entry
            if not entry.file.is_file() or entry.file.read_bytes() == self._contents.get(entry.file)
            else replace(entry, document=open_evalset(entry.file))
            for entry in self.workspace.evalsets
        )
        return replace(self.workspace, evalsets=entries)

    def build(self, targets: Any, times: RepeatOptions) -> Any:
        self.started.append((list(targets), times.runs))
        self.times.append(times)
        runs = times.runs
        refs = []
        for evalset, case in targets:
            entry = self.workspace.evalsets[evalset]
            agent, document = entry.agent.name if entry.agent else "", entry.document
            name = document.cases[case].eval_id
            refs += [CaseRef(agent, entry.relative, document.eval_set_id, name, n) for n in range(1, runs + 1)]

        async def build(publish: Publish) -> FakeRun:
            if self.refusal is not None:
                raise self.refusal
            self.runs.append(FakeRun(publish, refs, str(self.workspace.root)))
            return self.runs[-1]

        return build


OpenScreen: TypeAlias = Callable[..., Screen]


@pytest.fixture
def open_screen(
    tmp_path_factory: pytest.TempPathFactory, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> OpenScreen:
    """Return a function that makes a `Screen`, by default with the workspace of the shop.

    Its runs record no inputs, so their verdicts do not become stale at a time that depends on the machine.
    """
    monkeypatch.setattr(staleness, "stale_transcripts", lambda cases, workspace, state: {})
    file = tmp_path_factory.mktemp("settings") / "config.toml"

    def make(workspace: Workspace | None = None, **options: Any) -> Screen:
        return Screen(workspace or make_workspace(), file, **options)

    return make
