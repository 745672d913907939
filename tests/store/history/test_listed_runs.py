"""The list of runs of all origins, single cases of a run, and the newest verdict of each case."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stores import ANSWER_PASSED, FAILED, FILE, PASSED, TRAJECTORY_FAILED, case_events
from tests.store.history.test_adk_results import RESULT
from tests.store.history.test_stored_runs import keep_run
from tests.stored import drop_events, event_texts, sql
from workbench.events.events import CaseFinished, CaseRef, MetricScored, PlannedCase, RunStarted, TurnFinished
from workbench.store.database.database import database
from workbench.store.history.latest import latest_runs, past_runs
from workbench.store.history.other_programs import adk_case_events
from workbench.store.history.reading import case_events as read_case
from workbench.store.history.reading import load_summary, read_run_events
from workbench.store.history.run_list import list_all_runs, list_runs, newest_runs
from workbench.store.history.summary import Summary
from workbench.store.store import Store

ALL_PASS = [*case_events(PASSED, "passed", [ANSWER_PASSED]), *case_events(FAILED, "passed", [ANSWER_PASSED])]
CASES = {FILE: [PASSED.eval_id, FAILED.eval_id]}


def _adk(root: Path, data: Any = RESULT) -> Path:
    path = root / "desk/.adk/eval_history/desk_refunds_1.5.evalset_result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_own_runs_and_adk_runs_are_in_one_list(tmp_path: Path) -> None:
    keep_run(tmp_path, "2025-11-20T10-00-00-aaaa")
    _adk(tmp_path)
    keep_run(tmp_path, "2026-11-22T10-00-00-bbbb", ALL_PASS)
    runs, trouble = list_all_runs(tmp_path, tmp_path, [tmp_path / "desk"])
    assert [run.started[:10] for run in runs] == ["2026-11-22", "2025-11-21", "2025-11-20"]
    assert [run.is_foreign for run in runs] == [False, True, False]
    assert [run.better for run in runs] == [1, None, None]
    assert runs[1].name == str(runs[1].file)
    assert not trouble


def test_unfinished_cases_do_not_count_as_fewer_passes(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", ALL_PASS)
    keep_run(tmp_path, "2026-11-21T10-00-00-aaaa", case_events(PASSED, "passed", [ANSWER_PASSED]), ended=False)
    keep_run(tmp_path, "2026-11-22T10-00-00-aaaa")
    runs, _ = list_all_runs(tmp_path, tmp_path, [])
    assert [run.better for run in runs] == [-1, None, None]
    assert [(run.outcomes["error"], run.outcomes["not_run"]) for run in runs] == [(0, 0), (0, 1), (0, 0)]


def test_unreadable_run_is_listed_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (20, 21, 22):
        keep_run(tmp_path, f"2026-11-{day}T10-00-00-aaaa")
    sql(tmp_path, "UPDATE run SET listed = NULL WHERE run_id LIKE '2026-11-21%'")

    def unreadable(state: Path, run_id: str) -> tuple[Summary, list[str]]:
        raise OSError(5, "cannot be read", run_id)

    monkeypatch.setattr("workbench.store.history.run_list.load_summary", unreadable)
    runs, trouble = list_all_runs(tmp_path, tmp_path, [])
    assert [bool(run.trouble) for run in runs] == [False, True, False]
    assert "cannot be read" in runs[1].trouble
    assert not trouble


def test_newest_runs_are_those_of_the_whole_list(tmp_path: Path) -> None:
    for day in range(10, 30):
        keep_run(tmp_path, f"2026-10-{day}T10-00-00-aaaa")
    assert newest_runs(tmp_path) == list_all_runs(tmp_path, tmp_path, [])[0]


def test_events_of_one_case_are_read_alone(tmp_path: Path) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    started, *events = read_case(path, {FAILED})
    assert started == RunStarted(
        "2026-11-20T10-00-00-aaaa", "/root", "2026-11-20T10:00:00Z", (PlannedCase(FAILED, None, "defaults"),)
    )
    assert [type(event).__name__ for event in events] == [
        type(event).__name__ for event in case_events(FAILED, "failed", [TRAJECTORY_FAILED, ANSWER_PASSED])
    ]
    unknown = CaseRef("desk", FILE, "refunds", "of another run")
    assert list(read_case(path, {unknown})) == [
        RunStarted("2026-11-20T10-00-00-aaaa", "/root", started.started, (PlannedCase(unknown, None, "not known"),))
    ]


@pytest.mark.parametrize("damage", ["data = 'x'", "crc = 0", "id = id + 100", "execution = 1"])
def test_case_with_a_damaged_event_is_not_shown_in_part(tmp_path: Path, damage: str) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    sql(tmp_path, f"UPDATE event SET {damage} WHERE name = 'TurnStarted' AND id % 256 < 6")
    with pytest.raises(ValueError, match="is lost"):
        list(read_case(path, {PASSED}))
    assert len(list(read_case(path, {FAILED}))) == 9


def test_adk_result_is_read_as_events(tmp_path: Path) -> None:
    path = _adk(tmp_path)
    started, *events = adk_case_events(path, {CaseRef("desk", "", "refunds", "late", 1)})
    assert isinstance(started, RunStarted)
    assert started.started == "2025-11-21T10:30:00Z"
    scored = next(event for event in events if isinstance(event, MetricScored))
    assert (scored.result.status, scored.result.score, len(scored.turns)) == ("failed", 0.5, 1)
    assert next(event for event in events if isinstance(event, TurnFinished)).actual["user_content"]
    assert next(event for event in events if isinstance(event, CaseFinished)).status == "failed"
    assert [type(event).__name__ for event in read_run_events(path.name, tmp_path, path.parent)].count(
        "CaseFinished"
    ) == 2


@pytest.mark.parametrize("odd", [7, "x", [], [7], {}, [{"actual_invocation": 3}]])
def test_malformed_adk_results_are_shown_in_part(tmp_path: Path, odd: Any) -> None:
    for key in ("eval_metric_result_per_invocation", "overall_eval_metric_results", "final_eval_status"):
        case = {**RESULT["eval_case_results"][0], key: odd}  # type: ignore[index]
        store = Store()
        for event in adk_case_events(_adk(tmp_path, {**RESULT, "eval_case_results": [case]})):
            store.apply(event)
        assert len(store.records) == 1


def test_past_runs_of_a_case_are_found(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-aaaa", ALL_PASS)
    found = past_runs(tmp_path, FAILED, 20)
    assert [(run.run_id[:10], run.executions[0].state) for run in found] == [
        ("2026-11-21", "passed"),
        ("2026-11-20", "failed"),
    ]
    assert len(past_runs(tmp_path, FAILED, 1)) == 1
    assert not past_runs(tmp_path, replace(FAILED, eval_id="other"), 20)
    assert not past_runs(tmp_path, replace(FAILED, agent="other"), 20)
    sql(tmp_path, "UPDATE execution SET status = 'passed' WHERE run = 1")
    assert [run.run_id[:10] for run in past_runs(tmp_path, FAILED, 20)] == ["2026-11-21"], "a damaged row shows nothing"


def test_newest_verdict_of_each_case_is_found(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb", case_events(PASSED, "failed", [TRAJECTORY_FAILED]), ended=False)
    runs = latest_runs(tmp_path, CASES)
    assert [(run.summary.run_id[-4:], run.refs) for run in runs] == [("bbbb", (PASSED,)), ("aaaa", (FAILED,))]
    assert not list(latest_runs(tmp_path, {"other.evalset.json": ["one"]}))


def test_lost_verdict_is_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", ALL_PASS)
    path = keep_run(tmp_path, "2026-11-21T10-00-00-bbbb")
    lost = [
        number for number, text in enumerate(event_texts(path), 1) if '"CaseFinished"' in text and '"failed"' in text
    ]
    for also in ((), (1,)):
        drop_events(path, *lost, *also)
        sql(tmp_path, "UPDATE execution SET status = 'passed' WHERE run = 2 AND eval_id = ?", (FAILED.eval_id,))
        assert [run.refs for run in latest_runs(tmp_path, CASES)] == [(PASSED,)]


def test_run_that_is_lost_as_a_whole_hides_older_verdicts(tmp_path: Path) -> None:
    for day in (20, 21, 22):
        keep_run(tmp_path, f"2026-11-{day}T10-00-00-aaaa", ALL_PASS)
    database(tmp_path).close()
    sql(tmp_path, "DELETE FROM event WHERE run = 2")
    sql(tmp_path, "DELETE FROM execution WHERE run = 2")
    sql(tmp_path, "UPDATE run SET events = -1, executions = -1, crc = 0, listed = NULL, started = '' WHERE id = 2")
    sql(tmp_path, "UPDATE run SET facts_crc = 1 WHERE id = 2")
    sql(tmp_path, "UPDATE execution SET eval_id = 'another' WHERE run = 3")
    assert list(latest_runs(tmp_path, {FILE: ["never_ran"]})) == []
    assert any("lost" in line for line in list_runs(tmp_path).trouble)


def test_verdict_is_found_behind_many_runs_of_another_case(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    for second in range(30):
        again = case_events(PASSED, "failed", [TRAJECTORY_FAILED])
        keep_run(tmp_path, f"2026-11-21T10-00-{second:02}-bbbb", again, ended=False)
    found = list(latest_runs(tmp_path, CASES))
    assert [(run.summary.run_id[-11:], run.refs) for run in found] == [
        ("-00-29-bbbb", (PASSED,)),
        ("-00-00-aaaa", (FAILED,)),
    ]


def test_no_run_is_read_after_the_last_verdict_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb")
    looked_at: list[str] = []

    def spied(state: Path, run_id: str) -> tuple[Summary, list[str]]:
        looked_at.append(run_id[-4:])
        return load_summary(state, run_id)

    monkeypatch.setattr("workbench.store.history.latest.load_summary", spied)
    assert [run.summary.run_id[-4:] for run in latest_runs(tmp_path, CASES)] == ["bbbb"]
    assert looked_at == ["bbbb"]
