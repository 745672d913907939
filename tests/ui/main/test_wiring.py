"""All controllers together, and the rows of the action table that call them."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.binding import Binding
from textual.screen import Screen

import workbench.ui
from tests.ui.fake_view import FakeView, WordEngine
from workbench.files import settings as config
from workbench.ui.accepting.screen import AcceptScreen
from workbench.ui.actions import ACTIONS, actions_in
from workbench.ui.actions.elsewhere import IN_PLACE
from workbench.ui.chat.review import ReviewScreen
from workbench.ui.chat.screen import ChatScreen
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.editing.conflicts import ConflictScreen
from workbench.ui.editing.editor import EditorScreen
from workbench.ui.faults.screen import FaultDialog, FaultScreen
from workbench.ui.forking.dialog import ForkDialog
from workbench.ui.forking.screen import ForkScreen
from workbench.ui.freezing.screen import FreezeScreen
from workbench.ui.history.compare_screen import CompareScreen
from workbench.ui.history.run_screen import RunScreen
from workbench.ui.history.screen import HistoryScreen
from workbench.ui.main import general
from workbench.ui.main.screen import MainScreen
from workbench.ui.main.wiring import Controllers
from workbench.ui.review.screen import CaseReviewScreen
from workbench.ui.screen.controller import Controller
from workbench.ui.table.screen import TableScreen
from workbench.ui.terminal.host import Host
from workbench.ui.triage.dialog import TriageScreen
from workbench.ui.variants.screen import TryScreen
from workbench.ui.widgets.footer import bindings_of

SCREENS: dict[str, type[Screen[Any]]] = {
    "editor": EditorScreen,
    "chat": ChatScreen,
    "capture": ReviewScreen,
    "review": CaseReviewScreen,
    "conflict": ConflictScreen,
    "criteria": CriteriaScreen,
    "accept": AcceptScreen,
    "freeze": FreezeScreen,
    "try_faults": FaultDialog,
    "faults": FaultScreen,
    "triage": TriageScreen,
    "history": HistoryScreen,
    "stored": RunScreen,
    "compare": CompareScreen,
    "table": TableScreen,
    "fork": ForkDialog,
    "forked": ForkScreen,
    "variants": TryScreen,
}
ROWS = [action for action in ACTIONS if action.by]


def nothing(*given: Any) -> None:
    """Do nothing, in place of a function of the app."""


@pytest.fixture
def controllers(view: FakeView) -> Controllers:
    host = Host(("night",), nothing, nothing, nothing, nothing)
    workspace = view.session.workspace
    view.session.read = lambda arrived=None: workspace  # type: ignore[method-assign, assignment, return-value]
    return Controllers(view, WordEngine(view.session, config.Settings(Path("none.toml"))), host)


@pytest.mark.parametrize("action", ROWS, ids=lambda action: action.id)
def test_each_action_names_a_method_of_its_controller(controllers: Controllers, action: Any) -> None:
    owner = getattr(controllers, action.by)
    assert callable(getattr(owner, action.method))
    assert isinstance(owner, Controller)


def test_main_screen_actions_without_a_controller_are_its_methods() -> None:
    own = [action for action in actions_in("main") if not action.by]
    assert len(own) > 20
    for action in own:
        assert callable(vars(MainScreen)[f"action_{action.method}"]), action.id


@pytest.mark.parametrize("where", SCREENS)
def test_actions_of_other_screens_have_a_binding_and_a_method(where: Any) -> None:
    bound = {binding.id for binding in bindings_of(where)}
    for action in actions_in(where):
        assert callable(getattr(SCREENS[where], f"action_{action.method}")), action.id
        assert action.id in bound


def leaves(kind: type[Screen[Any]]) -> Iterator[type[Screen[Any]]]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for one in below:
        yield from leaves(one)


def test_every_key_of_every_screen_has_an_action_method() -> None:
    for module in pkgutil.walk_packages(workbench.ui.__path__, "workbench.ui."):
        importlib.import_module(module.name)
    ours = [one for one in leaves(Screen) if one.__module__.startswith("workbench.")]
    assert len(ours) > len(SCREENS)
    for screen in ours:
        bindings = [one for one in screen.BINDINGS if isinstance(one, Binding) and "." not in one.action]
        missing = [one.key for one in bindings if not hasattr(screen, f"action_{one.action.partition('(')[0]}")]
        assert not missing, screen


def test_every_place_has_its_screen() -> None:
    assert SCREENS.keys() == IN_PLACE.keys()


async def test_opening_reads_the_folder_and_past_results(controllers: Controllers, view: FakeView) -> None:
    view.session.workspace = None
    await controllers.open(watch=False)
    assert view.session.workspace is not None
    await view.settled()
    assert view.session.loading == ""
    assert controllers.thread.started == 0, "opening runs nothing"


async def test_unreadable_folder_is_reported_and_opening_stops(controllers: Controllers, view: FakeView) -> None:
    def gone(arrived: Any = None) -> Any:
        raise FileNotFoundError("gone")

    view.session.read = gone  # type: ignore[method-assign]
    await controllers.open(watch=True)
    assert view.notices == ["gone"]
    assert view.session.watching is None


@pytest.mark.parametrize(
    ("keys_later", "seconds_later", "quits"), [(1, 2.9, True), (1, 3.0, False), (2, 0.1, False), (5, 12.0, False)]
)
async def test_quitting_during_a_run_needs_a_second_press_within_three_seconds(
    keys_later: int,
    seconds_later: float,
    quits: bool,
    controllers: Controllers,
    view: FakeView,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(general, "time", SimpleNamespace(monotonic=lambda: now))
    view.session.store.request_run()
    for again in (False, True):
        controllers.general.quit()
        await view.settled()
        assert ("left" in view.shown) == (again and quits)
        view.keys_delivered += keys_later
        now += seconds_later
    asked = "a run is starting: press again to kill it and quit"
    assert view.said == ([asked, "killing the run"] if quits else [asked, asked])


def test_case_of_a_stored_run_is_found_in_the_tree(controllers: Controllers, view: FakeView) -> None:
    from workbench.events.events import CaseRef

    ref = CaseRef("order_desk", "order_desk/refunds.evalset.json", "refunds", "late_parcel")
    assert controllers.files.go_to_stored(ref)
    assert view.rows.cursor == view.rows.row_of(0, 1)
    assert "no pages" in view.shown
    gone = CaseRef("order_desk", "order_desk/refunds.evalset.json", "refunds", "gone")
    assert not controllers.files.go_to_stored(gone)


async def test_triage_needs_a_verdict(controllers: Controllers, view: FakeView) -> None:
    controllers.triage.triage()
    assert view.said == ["put the cursor on a case first, or mark cases with space"]
    view.go_to(0, 1)
    controllers.triage.triage()
    await view.settled()
    assert view.said[-1] == "triage needs a verdict: run the case first"
    view.rows.marks.add([(0, 0), (0, 1)])
    controllers.triage.triage()
    await view.settled()
    assert view.said[-1] == "triage needs verdicts: no marked case has one"


async def test_shell_command_is_chosen_and_copied(
    controllers: Controllers, view: FakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    monkeypatch.setattr(controllers.general, "_copy", lambda what, text: copied.append(f"{what}: {text}"))
    offered = controllers.general._commands()
    assert [item.kind.strip() for item in offered] == ["status"], "nothing has run"
    view.answers = [offered[0].value, None]
    for _ in range(2):
        controllers.general.copy_command()
        await view.settled()
    assert copied == [f"command: {offered[0].value}"]
    assert offered[0].value.startswith("agent-workbench status")
