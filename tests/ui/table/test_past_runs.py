"""The columns of past runs: their order, their cells, and which runs can be compared."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.ui.feed import Feed
from workbench.agents.workspace import Workspace
from workbench.events.events import CaseError, CaseRef, MetricResult, PlannedCase
from workbench.store.execution import CaseState, Execution
from workbench.store.history.summary import ListedRun, Summary
from workbench.store.store import Store
from workbench.ui.session.run_labels import by_date
from workbench.ui.table import sources
from workbench.ui.table.sources import Cases, RunCells
from workbench.ui.tree.verdicts import Verdicts

FILE = "order_desk/refunds.evalset.json"


def one(eval_id: str, state: CaseState, score: float | None = None, repeat: int = 1, why: str = "") -> Execution:
    planned = PlannedCase(CaseRef("desk", FILE, "refunds", eval_id, repeat), None, "")
    error = CaseError("agent_raised", why) if state == "error" else None
    if score is None:
        return Execution(planned, state, error=error)
    result = MetricResult("resp", "passed" if score >= 0.8 else "failed", score, 0.8, why)
    return Execution(planned, state, scores={"resp": result}, error=error)


def summary(run_id: str, started: str, *executions: Execution) -> Summary:
    return Summary(run_id, started=started, executions={each.ref: each for each in executions})


RUNS = [
    summary(
        "new",
        "2026-11-22T09:00:00Z",
        one("on_time", "passed", 1.0),
        one("late_parcel", "failed", 0.79999, why="\x1b[31mwords"),
        one("unknown_order", "error", why="boom"),
        one("two_parcels", "passed", 0.9),
        one("two_parcels", "failed", 0.5, repeat=2),
    ),
    summary("few", "2026-11-21T09:00:00Z", one("on_time", "failed", 0.1), one("late_parcel", "cancelled")),
    summary("none", "2026-11-20T09:00:00Z", one("another", "passed", 1.0)),
]


@pytest.fixture
def cells(store: Store, shop: Workspace, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> RunCells:
    entries = [ListedRun(run.run_id, files=(FILE,)) for run in RUNS]
    monkeypatch.setattr(sources, "list_runs", lambda state: past_runs_list(entries))
    monkeypatch.setattr(
        sources, "load_summary", lambda state, run_id: (next(run for run in RUNS if run.run_id == run_id), [])
    )
    verdicts = Verdicts(store)
    verdicts.bind(shop.evalsets)
    cases = Cases(shop.evalsets, verdicts)
    found = RunCells(cases, [cases.key((0, case)) for case in range(4)])
    for run in found.reading(Path(), ""):
        found.add(run)
    found.update([(0, case) for case in range(4)])
    return found


def past_runs_list(entries: list[ListedRun]) -> Any:
    class Listed:
        runs = entries

    return Listed()


def test_newest_run_is_leftmost_and_runs_of_other_cases_are_omitted(cells: RunCells) -> None:
    assert [column.name for column in cells.columns[2:]] == ["new", "few"]
    assert [column.marks for column in cells.columns[2:]] == ["", "~"], "one of four cases is too few to compare"


def test_cell_has_the_worst_verdict_and_its_score(cells: RunCells) -> None:
    texts = [[cells.cell((0, case), column).text for case in range(4)] for column in cells.columns[2:]]
    assert texts == [["✓1.00", "✗0.79", "!", "✗0.50"], ["✗0.10", "", "", ""]]


def test_cell_is_explained_with_the_reason_of_that_run(cells: RunCells) -> None:
    new, few = cells.columns[2:]
    assert "late_parcel in the run of " in cells.explain((0, 1), new)
    assert cells.explain((0, 1), new).endswith("fail, 0.79 < 0.80, resp: ␛[31mwords")
    assert cells.explain((0, 2), new).endswith("error, boom")
    assert "fail, 1 of 2 passed, 0.50 < 0.80" in cells.explain((0, 3), new)
    assert cells.explain((0, 3), few).endswith("no verdict; ~ not comparable: the run decided 1 of these cases")


def test_run_that_was_read_or_is_active_is_not_read_again(cells: RunCells) -> None:
    assert [run.run_id for run in cells.reading(Path(), "")] == []
    fresh = RunCells(cells.cases, [(FILE, "on_time")])
    assert [run.run_id for run in fresh.reading(Path(), "new")] == ["few"]


@pytest.mark.parametrize(
    ("started", "title"),
    [
        ("2026-11-23T14:02:00+00:00", "14:02"),
        ("2026-01-02T14:02:00+00:00", "2 Jan"),
        ("2025-01-02", "2025"),
        ("", "no date"),
    ],
)
def test_time_of_a_run_fits_over_its_column(started: str, title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 23, 18, 0, tzinfo=UTC)
    monkeypatch.setenv("TZ", "UTC")
    assert by_date(started, now, "%H:%M", "%-d %b", "%Y") == title
