"""The folder is read again while a dialog is open, as the watch does after each save. Rows then have other numbers."""

from typing import Any

import pytest

from tests.ui.accepting.test_accept_screen import actual, opened
from tests.ui.conftest import SHOP, MakeWorkspace, OpenScreen, Screen, Shape
from tests.ui.triage.test_triage_screen import entries, run_all
from workbench.files.evalset import open_evalset
from workbench.ui.accepting.screen import AcceptScreen
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.dialogs.pick import NameScreen, PickScreen
from workbench.ui.editing.editor import EditorScreen
from workbench.ui.editing.proposals import SeveralScreen
from workbench.ui.faults.screen import FaultDialog
from workbench.ui.running.dialogs import RepeatScreen
from workbench.ui.running.engine_run import Engine
from workbench.ui.triage.dialog import TriageScreen
from workbench.ui.variants.dialog import TryDialog

MORE: Shape = {"order_desk": {"a_new_file": ["first"], **SHOP["order_desk"]}, "team_router": SHOP["team_router"]}
"""The shop with another evalset before the others."""
FEWER: Shape = {"order_desk": {"refunds": SHOP["order_desk"]["refunds"]}}


def ids(file: str, screen: Screen) -> list[str]:
    return [case.eval_id for case in open_evalset(screen.workspace.root / file).cases]


async def dialog(screen: Screen, pilot: Any, kind: type[Any], *keys: str) -> None:
    await pilot.press(*keys)
    await screen.until(pilot, lambda: isinstance(screen.app.screen, kind))


def read_again(screen: Screen, make_workspace: MakeWorkspace, shape: Shape) -> None:
    screen.workspace = make_workspace(shape)
    screen.main.controllers.folder.load(screen.workspace)


@pytest.mark.parametrize("shape", [MORE, FEWER])
async def test_marked_cases_are_deleted_wherever_they_are_now(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, shape: Shape
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.rows.marks.add([(0, 2), (2, 0)])
        await dialog(screen, pilot, PickScreen, "D")
        read_again(screen, make_workspace, shape)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: delete unknown_order, to_billing" in screen.text)
        assert ids("order_desk/refunds.evalset.json", screen) == ["on_time", "late_parcel", "two_parcels"]
        assert ids("team_router/hand_over.evalset.json", screen) == ["to_technician"]


@pytest.mark.parametrize("shape", [MORE, FEWER])
async def test_new_case_goes_into_the_evalset_that_the_dialog_names(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, shape: Shape
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.go_to(2, 0)
        await dialog(screen, pilot, NameScreen, "+")
        read_again(screen, make_workspace, shape)
        await pilot.press(*"mine", "enter")
        await screen.until(pilot, lambda: "mine" in ids("team_router/hand_over.evalset.json", screen))
        assert ids("team_router/hand_over.evalset.json", screen) == ["to_billing", "mine", "to_technician"]
        if shape is MORE:
            await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen))


async def test_accepted_case_is_scored_again(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, scored = open_screen(), list[Any]()
    async with screen.open((120, 40)) as pilot:
        monkeypatch.setattr(screen.main.controllers.run, "score_by_new_references", scored.append)
        await opened(screen, pilot, actual())
        read_again(screen, make_workspace, MORE)
        await pilot.press("a", "enter")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, AcceptScreen) and bool(scored))
        assert scored == [[(1, 0)]]


@pytest.mark.parametrize("shape", [MORE, FEWER])
async def test_text_is_replaced_in_the_case_that_had_the_cursor(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, shape: Shape
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.go_to(2, 1)
        await screen.main.run_action("replace")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        read_again(screen, make_workspace, shape)
        await dialog(screen, pilot, PickScreen, *"parcel", "enter")
        await dialog(screen, pilot, NameScreen, "enter")
        await dialog(screen, pilot, SeveralScreen, *"box", "enter")
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: replace parcel with box in 1 case" in screen.text)
        document = open_evalset(screen.workspace.root / "team_router/hand_over.evalset.json")
        assert [b"box" in document.text(case.index) for case in document.cases] == [False, True]


async def test_triage_goes_into_the_file_of_the_case(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["good", "bad"]}}))
    async with screen.open((120, 30)) as pilot:
        await run_all(screen, pilot)
        await dialog(screen, pilot, TriageScreen, "n", "t")
        read_again(screen, make_workspace, {"desk": {"a_new_file": ["first"], "talk": ["good", "bad"]}})
        await pilot.press("a")
        await screen.until(pilot, lambda: len(entries(screen)) == 1)
        assert not (screen.workspace.root / "desk" / "a_new_file.triage.json").exists()


@pytest.mark.parametrize(("key", "kind", "start"), [("X", RepeatScreen, "enter"), ("o", CriteriaScreen, "r")])
async def test_case_of_the_dialog_runs(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, key: str, kind: type[Any], start: str
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.go_to(0, 1)
        await dialog(screen, pilot, kind, key)
        read_again(screen, make_workspace, MORE)
        await pilot.press(start)
        await screen.until(pilot, lambda: bool(screen.started))
        assert screen.started[0][0] == [(1, 1)]


async def test_variants_are_tried_on_the_cases_of_the_dialog(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []
    monkeypatch.setattr(Engine, "trial", lambda self, targets, wanted, runs: tried.append(targets))
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.go_to(0, 1)
        await dialog(screen, pilot, TryDialog, ":", *"try variants", "enter")
        read_again(screen, make_workspace, MORE)
        await pilot.press("enter")
        await screen.until(pilot, lambda: bool(tried))
        assert tried == [[(1, 1)]]


async def test_case_of_the_fault_dialog_runs(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.go_to(0, 1)
        await dialog(screen, pilot, FaultDialog, ":", *"try faults", "enter")
        read_again(screen, make_workspace, MORE)
        await pilot.press("enter")
        await screen.until(pilot, lambda: bool(screen.started))
        assert screen.started[0][0] == [(1, 1)]


@pytest.mark.parametrize(("shape", "row"), [(MORE, "to_technician"), (FEWER, "everything")])
async def test_palette_goes_to_the_case_that_it_names(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, shape: Shape, row: str
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await dialog(screen, pilot, PickScreen, ":", *"to_technician")
        read_again(screen, make_workspace, shape)
        await pilot.press("enter")
        assert screen.row == row
