"""Problems in the folder, without a screen."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.fake_view import FakeView
from workbench.events.events import CaseError
from workbench.files.faults import Fault
from workbench.run.processes.agent_host import TrialImport
from workbench.ui.screen import folder
from workbench.ui.screen.folder import Checks, Folder
from workbench.ui.session.findings import Findings


def nothing_imported(workspace: Any, told: Callable[[TrialImport], object]) -> None:
    raise AssertionError("nobody asked for an import")


def found_in(view: FakeView) -> Findings:
    entry = view.session.entry(0)
    fault = Fault(entry.file, 1, 1, "eval_cases[1]", "no such tool")
    return Findings({(0, 1): (fault,)}, ((fault, (0, 1)),))


async def test_picking_a_problem_goes_to_its_case(view: FakeView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "check", lambda workspace: found_in(view))
    view.answers = [(0, 1)]
    Checks(view, Folder(view), nothing_imported).found()
    await view.settled()
    assert view.asked == ["problems found by check: 1"]
    assert view.rows.cursor == view.rows.row_of(0, 1)
    assert view.session.verdicts.check_results == {(0, 1): "error"}


async def test_folder_is_checked_after_each_read_if_checks_are_on(
    view: FakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "check", lambda workspace: found_in(view))
    controller = Checks(view, Folder(view), nothing_imported)
    controller.loaded()
    assert view.timers == []
    view.session.checks = True
    controller.loaded()
    controller.loaded()
    assert [timer.stopped for timer in view.timers] == [True, False]
    view.timers[-1].call()
    await view.settled()
    assert view.session.findings.every


async def test_check_waits_for_the_verdicts_of_earlier_sessions(
    view: FakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "check", lambda workspace: found_in(view))
    view.session.checks, view.session.loading = True, "results"
    Checks(view, Folder(view), nothing_imported).loaded()
    view.timers[0].call()
    await view.settled()
    assert not view.session.findings.every
    view.session.loading = "changes"
    view.timers[1].call()
    await view.settled()
    assert view.session.findings.every


async def test_findings_of_an_outdated_folder_are_dropped(view: FakeView, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_meanwhile(workspace: Any) -> Findings:
        found = found_in(view)
        view.session.workspace = None
        return found

    monkeypatch.setattr(folder, "check", read_meanwhile)
    Checks(view, Folder(view), nothing_imported).found()
    await view.settled()
    assert (view.asked, view.session.findings.every) == ([], ())


def test_each_trial_import_is_reported_when_it_ends(view: FakeView) -> None:
    assert view.session.workspace is not None
    agent = view.session.workspace.agents[0]

    def import_one(workspace: Any, told: Callable[[TrialImport], object]) -> None:
        told(TrialImport(agent, CaseError("import_failed", "no module named x")))
        told(TrialImport(agent))

    Checks(view, Folder(view), import_one).import_agents()
    assert view.said[1:] == [f"{agent.name} cannot be imported", f"{agent.name} was imported"]
