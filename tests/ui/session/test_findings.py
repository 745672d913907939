"""Problems found by `check` on the screen: signs in the tree, texts in the pane, and a list."""

import json
from pathlib import Path

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, case_json
from workbench.events.events import CaseError
from workbench.files.faults import Fault
from workbench.run.processes.agent_host import TrialImport
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.session.findings import check, group_by_row
from workbench.ui.tree.outline import WHOLE_EVALSET
from workbench.ui.tree.verdicts import ImportResults


def content(*cases: object) -> str:
    return json.dumps({"eval_set_id": "refunds", "eval_cases": cases})


ODD = {**case_json("late_parcel"), "evalid": 3}
BROKEN = {**case_json("broken"), "conversation": 3}


def test_each_problem_of_check_has_its_row(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace({"order_desk": {"refunds": content(case_json("on_time"), ODD, BROKEN)}})
    found = check(workspace)
    assert found.worst == {(0, 1): "warning", (0, 2): "error"}
    assert "`evalid`" in found.faults_of(0, 1)[0].message
    assert found.faults_of(0, 0) == ()


def test_problem_is_shown_at_its_evalset_or_at_no_row(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time"], "more": ["hello"]}})
    file = workspace.evalsets[1].file
    agent = workspace.agents[0].definition
    faults = [Fault(file, 0, 0, "", "a"), Fault(Path("/nowhere"), 0, 0, "", "b"), Fault(agent, 0, 0, "", "c")]
    found = group_by_row(workspace, faults)
    assert [pair for _, pair in found.every] == [(1, WHOLE_EVALSET), None, (0, WHOLE_EVALSET)]
    assert [fault.message for fault in found.faults_of(1, WHOLE_EVALSET)] == ["a", "c"]


async def test_check_signs_appear_after_the_tree_and_disappear_when_the_file_is_fixed(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"order_desk": {"refunds": content(case_json("on_time"), ODD, BROKEN)}}))
    screen.session.checks = True
    async with screen.open((120, 40)) as pilot:
        await screen.until(pilot, lambda: "late_parcel △warning" in screen.text and "broken ▲error" in screen.text)
        await pilot.press("j", "j", "j", "j")
        await screen.until(pilot, lambda: "`evalid` is kept, but nothing reads it" in screen.text)
        file = screen.workspace.evalsets[0].file
        file.write_text(content(case_json("on_time"), case_json("late_parcel")), encoding="utf-8")
        await screen.main.controllers.files.reopen(file)
        await screen.until(pilot, lambda: "△" not in screen.text and "▲" not in screen.text)
        await screen.until(pilot, lambda: screen.session.verdicts.check_results == {})


async def test_error_in_check_does_not_end_the_screen(open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(workspace: object) -> None:
        raise FileNotFoundError("gone")

    monkeypatch.setattr("workbench.ui.screen.folder.check", fails)
    screen = open_screen()
    screen.session.checks = True
    async with screen.open((120, 40)) as pilot:
        await screen.until(pilot, lambda: "checking the folder failed: FileNotFoundError: gone" in screen.text)
        await pilot.press("j")
        assert screen.row == "order_desk"


async def test_picking_a_problem_in_the_list_goes_to_its_case(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"order_desk": {"refunds": content(case_json("on_time"), ODD)}}))
    async with screen.open((120, 40)) as pilot:
        assert "△" not in screen.text
        await screen.main.run_action("found")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        assert "problems found by check: 1" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: screen.row.startswith("late_parcel"))
        await screen.until(pilot, lambda: "late_parcel △warning" in screen.text)


async def test_row_of_an_agent_shows_a_failed_import(open_screen: OpenScreen) -> None:
    screen = open_screen()
    agent = screen.workspace.agents[0]
    error = CaseError("import_failed", "No module named 'yfinance'", "uv sync")
    async with screen.open((120, 40)) as pilot:
        screen.main.controllers.checks.imported(TrialImport(agent, error))
        await screen.until(pilot, lambda: f"{agent.name} ▲import" in screen.text)
        await pilot.press("j")
        await screen.until(pilot, lambda: "failed: No module named 'yfinance'" in screen.text)
        assert "uv sync" in screen.text
        screen.main.controllers.checks.imported(TrialImport(agent))
        await screen.until(pilot, lambda: "▲import" not in screen.text and "succeeded" in screen.text)


def test_last_run_shows_whether_an_agent_can_be_imported() -> None:
    book = ImportResults()
    failed = CaseError("no_framework", "google-adk is not installed")
    book.add_case("desk", CaseError("timeout", "took too long"))
    assert (book.failed, book.imported) == ({}, set())
    book.add_case("desk", failed)
    assert book.failed == {"desk": failed}
    book.add_case("desk", None)
    assert (book.failed, book.imported) == ({}, {"desk"})
