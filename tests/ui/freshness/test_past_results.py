"""Verdicts of earlier sessions on the screen."""

from unittest.mock import Mock

import pytest

from tests.ui.conftest import MakeWorkspace
from tests.ui.fake_view import FakeView, controllers_of
from tests.ui.history.test_history_screen import keep
from workbench.ui.freshness import results


async def test_past_runs_are_shown_one_by_one_only_if_reading_takes_long(
    make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace()
    names = [case.eval_id for case in workspace.evalsets[0].document.cases]
    for number, name in enumerate(names, 1):
        keep(workspace, f"2026-01-0{number}T10-00-00-aaaa", {name: "passed"})

    async def updates(seconds: float) -> int:
        view = FakeView(workspace)
        view.tree_view.show_verdicts = Mock()
        monkeypatch.setattr(results, "_SHOWN_EVERY", seconds)
        controllers_of(view).past_results.load_verdicts()
        await view.settled()
        assert view.session.verdicts.counts[0] == {"passed": len(names)}
        return int(view.tree_view.show_verdicts.call_count)

    assert await updates(-1.0) - await updates(60.0) == len(names)
