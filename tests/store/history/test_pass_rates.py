"""Pass rates over stored runs: the same cases in each, one vote per case."""

from pathlib import Path
from typing import Any

import pytest

from tests.stored import sql
from workbench.events.event_json import as_line
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    Event,
    Frozen,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.run.resuming import newest_interrupted
from workbench.store.execution import CaseRecord
from workbench.store.history.latest import latest_runs
from workbench.store.history.run_list import Trend, last_comparable, list_all_runs, pass_rates
from workbench.store.history.run_names import started_at
from workbench.store.history.run_writer import RunWriter
from workbench.store.rates import Case, case_keys

WHOLE = RunFinished(1.0)


def keep(
    state: Path,
    day: str,
    ending: RunFinished | None = WHOLE,
    /,
    *,
    inject: str = "",
    frozen: Frozen | None = None,
    **came_out: str,
) -> Path:
    """Store a run. `a1="pf"` is a case of a.evalset.json that passed once and failed once; `x` is cancelled,
    and `e` is an error of the agent. `inject` names the faults that were injected, `frozen` how cases were replayed."""
    refs: dict[CaseRef, str] = {}
    for name, letters in came_out.items():
        for repeat, letter in enumerate(letters, 1):
            refs[CaseRef("desk", f"{name[0]}.evalset.json", name[0], name, repeat)] = letter
    run_id = f"{day}T10-00-00-aaaa"
    planned = tuple(PlannedCase(ref, None, "") for ref in refs)
    inputs = {"options": {"inject": inject}} if inject else {}
    events: list[Event] = [RunStarted(run_id, "/shop", f"{day}T10:00:00Z", planned, inputs=inputs)]
    for ref, letter in refs.items():
        if letter == "x":
            events.append(CaseFinished(ref, "cancelled", CaseError("cancelled", "cancelled"), 0.0))
        elif letter == "e":
            events.append(CaseFinished(ref, "error", CaseError("agent_raised", "KeyError"), 0.1))
        else:
            events.append(CaseFinished(ref, "passed" if letter == "p" else "failed", None, 0.1, frozen=frozen))
    events += [ending] if ending else []
    journal = RunWriter.open(state, run_id)
    journal.write(map(as_line, events), sync=False)
    journal.close()
    assert journal.path is not None
    return journal.path


def cases(*names: str) -> set[Case]:
    return {(f"{name[0]}.evalset.json", name) for name in names}


def rates_of(trend: Trend) -> list[tuple[str, float, int]]:
    return [(rate.started[8:10], round(rate.passed, 3), rate.total) for rate in trend.rates]


def test_errors_are_excluded_from_the_rate(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f", a3="e")
    keep(tmp_path, "2026-11-21", a1="p", a2="p", a3="e")
    keep(tmp_path, "2026-11-22", a1="p", a2="ep", a3="p")
    trend = pass_rates(tmp_path, cases("a1", "a2", "a3"))
    # A repeat in which the agent broke off counts beside repeats with a verdict.
    assert rates_of(trend) == [("20", 1, 2), ("21", 2, 2), ("22", 1.5, 2)]


@pytest.mark.parametrize("inject", ["matrix", "faults.json"])
def test_runs_with_injected_faults_make_no_rates_and_no_verdicts(tmp_path: Path, inject: str) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f")
    keep(tmp_path, "2026-11-21", a1="p", a2="p")
    keep(tmp_path, "2026-11-22", inject=inject, a1="f", a2="fe")
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2"))) == [("20", 1, 2), ("21", 2, 2)]
    (latest,) = latest_runs(tmp_path, {"a.evalset.json": ["a1", "a2"]})
    assert latest.summary.run_id.startswith("2026-11-21")
    newest, before, _ = list_all_runs(tmp_path, tmp_path, [])[0]
    assert newest.injected
    assert newest.better is None
    assert not before.injected
    found = last_comparable(before, [newest, before])
    assert found is None


def test_frozen_and_live_verdicts_never_share_a_rate(tmp_path: Path) -> None:
    tools, everything = Frozen("tools"), Frozen("all")
    keep(tmp_path, "2026-11-18", a1="p", a2="p")
    keep(tmp_path, "2026-11-19", frozen=tools, a1="p", a2="f")
    keep(tmp_path, "2026-11-20", frozen=everything, a1="f", a2="f")
    keep(tmp_path, "2026-11-21", a1="p", a2="f")
    keep(tmp_path, "2026-11-22", frozen=tools, a1="p", a2="p")
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2"))) == [("18", 2, 2), ("21", 1, 2)]
    wanted = {(*case, "tools") for case in cases("a1", "a2")}
    assert rates_of(pass_rates(tmp_path, wanted)) == [("19", 1, 2), ("22", 2, 2)]
    listed = list_all_runs(tmp_path, tmp_path, [])[0]
    assert [(run.run_id[8:10], run.better, run.frozen) for run in listed] == [
        ("22", 1.0, 2),
        ("21", -1.0, 0),
        ("20", None, 2),
        ("19", None, 2),
        ("18", None, 0),
    ]
    found = last_comparable(listed[0], listed)
    assert found is not None
    assert found.run_id.startswith("2026-11-19")


def test_frozen_cases_are_compared_with_frozen_ones(tmp_path: Path) -> None:
    refs = [CaseRef("desk", "a.evalset.json", "a", name) for name in ("a1", "a2")]
    records = [CaseRecord(PlannedCase(ref, None, "")) for ref in refs]
    records[1].frozen = Frozen("tools")
    assert case_keys([ref.name for ref in refs], records) == {
        ("a.evalset.json", "a1"),
        ("a.evalset.json", "a2", "tools"),
    }


def test_rates_cover_the_same_cases_oldest_first(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f", b1="f")
    keep(tmp_path, "2026-11-22", a1="p", a2="p")
    keep(tmp_path, "2026-11-21", b1="p")
    trend = pass_rates(tmp_path, cases("a1", "a2"))
    assert rates_of(trend) == [("20", 1, 2), ("22", 2, 2)]
    assert (trend.cases, trend.left_out) == (2, 0)
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2"), until="2026-11-21")) == [("20", 1, 2)]
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2"), most=1)) == [("22", 2, 2)]
    assert not pass_rates(tmp_path / "nowhere", cases("a1")).is_comparable


def test_repeats_of_one_case_do_not_raise_the_rate(tmp_path: Path) -> None:
    """`--until-sure` makes many repeats of a good case and few of a bad one."""
    keep(tmp_path, "2026-11-20", good="p", bad="f")
    keep(tmp_path, "2026-11-21", good="p" * 44, bad="fff")
    wanted = {("g.evalset.json", "good"), ("b.evalset.json", "bad")}
    assert rates_of(pass_rates(tmp_path, wanted)) == [("20", 1, 2), ("21", 1, 2)]


def test_rerun_of_one_case_is_left_out(tmp_path: Path) -> None:
    everything: Any = {"a1": "p", "a2": "p", "a3": "f", "a4": "p"}
    keep(tmp_path, "2026-11-20", **everything)
    keep(tmp_path, "2026-11-21", **everything)
    keep(tmp_path, "2026-11-22", a3="f")
    trend = pass_rates(tmp_path, cases(*everything))
    assert rates_of(trend) == [("20", 3, 4), ("21", 3, 4)]
    assert trend.left_out == 1


def test_new_case_keeps_the_trend_of_the_others(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f")
    keep(tmp_path, "2026-11-21", a1="p", a2="p", a3="f")
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2", "a3"))) == [("20", 1, 2), ("21", 2, 2)]


def test_runs_of_other_cases_are_not_comparable(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="p")
    keep(tmp_path, "2026-11-21", a3="f", a4="f")
    trend = pass_rates(tmp_path, cases("a1", "a2", "a3", "a4"))
    assert not trend.is_comparable
    assert trend.left_out == 1


def test_unreadable_runs_are_left_out(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", b1="p")
    keep(tmp_path, "2026-11-21", a1="p", b1="p")
    pass_rates(tmp_path, cases("a1"))
    sql(tmp_path, "UPDATE execution SET status = 'failed' WHERE run = 2")
    sql(tmp_path, "DELETE FROM event WHERE run = 2 AND name = 'CaseFinished'")
    assert rates_of(pass_rates(tmp_path, cases("a1"))) == [("20", 1, 1)]


@pytest.mark.parametrize("ending", [None, RunFinished(1.0, interrupted=True)])
def test_incomplete_run_does_not_lower_the_trend(tmp_path: Path, ending: RunFinished | None) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="p")
    keep(tmp_path, "2026-11-21", ending, a1="p", a2="x")
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2"))) == [("20", 2, 2)]


def test_cancelled_case_is_left_out_of_all_pass_rates(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="p")
    keep(tmp_path, "2026-11-21", a1="p", a2="x")
    assert rates_of(pass_rates(tmp_path, cases("a1", "a2"))) == [("20", 1, 1), ("21", 1, 1)]


def test_list_shows_a_difference_only_for_the_same_cases(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-19", a1="p")
    keep(tmp_path, "2026-11-20", a2="f")
    keep(tmp_path, "2026-11-21", a1="f")
    keep(tmp_path, "2026-11-22", a1="pppp")
    runs, _ = list_all_runs(tmp_path, tmp_path, [])
    assert [run.better for run in runs] == [1, -1, None, None]


def test_last_comparable_run_shares_half_of_the_cases_or_else_any_case(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-18", c1="p")
    keep(tmp_path, "2026-11-19", a1="p", a2="p", a3="p")
    keep(tmp_path, "2026-11-20", a1="f")
    keep(tmp_path, "2026-11-21", b1="p")
    keep(tmp_path, "2026-11-22", a1="p", a2="p", a3="f", a4="p")
    runs, _ = list_all_runs(tmp_path, tmp_path, [])
    proposed = [last_comparable(run, runs) for run in runs]
    assert [run and run.started[8:10] for run in proposed] == ["19", None, "19", None, None]
    only = [run for run in runs if run.started[8:10] != "19"]
    found = last_comparable(runs[0], only)
    assert found is not None
    assert found.started[8:10] == "20"


def test_cancelled_cases_keep_their_previous_verdict_after_reopening(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f", a3="pp")
    keep(tmp_path, "2026-11-21", RunFinished(1.0, interrupted=True), a1="x", a2="p", a3="fx")
    found = latest_runs(tmp_path, {"a.evalset.json": ["a1", "a2", "a3"]})
    names = [(run.summary.started[8:10], sorted((ref.eval_id, ref.repeat) for ref in run.refs)) for run in found]
    assert names == [("21", [("a2", 1), ("a3", 1)]), ("20", [("a1", 1)])]


def test_ended_run_with_cancelled_cases_can_be_resumed(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="p")
    assert newest_interrupted(tmp_path) is None
    keep(tmp_path, "2026-11-21", RunFinished(1.0, cancelled=1), a1="p", a2="x")
    newest = newest_interrupted(tmp_path)
    assert newest is not None
    assert newest[1].run_id.startswith("2026-11-21")


def test_previous_verdicts_are_those_of_older_runs(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f")
    keep(tmp_path, "2026-11-21", a1="f", a2="x")
    newest = keep(tmp_path, "2026-11-22", a1="p", a2="p").name
    found = list(latest_runs(tmp_path, {"a.evalset.json": {"a1", "a2"}}, before=newest))
    assert [(run.summary.run_id[8:10], [ref.eval_id for ref in run.refs]) for run in found] == [
        ("21", ["a1"]),
        ("20", ["a2"]),
    ]
    assert len(list(latest_runs(tmp_path, {"a.evalset.json": {"a1", "a2"}}, before=newest, most=1))) == 1
    assert not list(latest_runs(tmp_path, {"a.evalset.json": {"a1"}}, before="unknown"))


def test_run_id_contains_its_start_time() -> None:
    assert started_at("2026-11-21T10-30-00-3f2a") == "2026-11-21T10:30:00Z"
    assert started_at("run-1") == ""
