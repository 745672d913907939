"""The list of runs of all origins, single cases of a run, and the newest verdict of each case."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.stores import ANSWER_PASSED, FAILED, FILE, PASSED, TRAJECTORY_FAILED, case_events
from tests.history.test_adk_results import RESULT
from tests.history.test_run_list import keep_run
from workbench.events import CaseFinished, CaseRef, MetricScored, PlannedCase, RunStarted, TurnFinished
from workbench.history import case_rows
from workbench.history.adk_events import adk_case_events
from workbench.history.case_events import case_events as read_case
from workbench.history.case_rows import PastRuns
from workbench.history.latest import latest_runs
from workbench.history.listed_runs import list_all_runs, newest_runs
from workbench.history.run_events import read_run_events
from workbench.history.run_list import checked_summary, summary_for_opening
from workbench.history.summary import Summary
from workbench.store import Store

ALL_PASS = [*case_events(PASSED, "passed", [ANSWER_PASSED]), *case_events(FAILED, "passed", [ANSWER_PASSED])]
CASES = {FILE: [PASSED.eval_id, FAILED.eval_id]}


def _adk(root: Path, data: Any = RESULT) -> Path:
    path = root / "desk/.adk/eval_history/desk_refunds_1.5.evalset_result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_our_runs_and_adks_are_in_one_list(tmp_path: Path) -> None:
    keep_run(tmp_path, "2025-11-20T10-00-00-aaaa")
    _adk(tmp_path)
    keep_run(tmp_path, "2026-11-22T10-00-00-bbbb", ALL_PASS)
    runs, trouble = list_all_runs(tmp_path, tmp_path, [tmp_path / "desk"])
    assert [run.started[:10] for run in runs] == ["2026-11-22", "2025-11-21", "2025-11-20"]
    assert [run.adk for run in runs] == [False, True, False]
    assert [run.better for run in runs] == [1, None, None]
    assert runs[1].word == str(runs[1].file)
    assert not trouble


def test_unfinished_cases_do_not_count_as_fewer_passes(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", ALL_PASS)
    keep_run(tmp_path, "2026-11-21T10-00-00-aaaa", case_events(PASSED, "passed", [ANSWER_PASSED]), ended=False)
    keep_run(tmp_path, "2026-11-22T10-00-00-aaaa")
    runs, _ = list_all_runs(tmp_path, tmp_path, [])
    assert [run.better for run in runs] == [-1, None, None]
    assert [(run.counts["error"], run.counts["not_run"]) for run in runs] == [(0, 0), (0, 1), (0, 0)]


def test_unreadable_run_is_listed_at_its_place(tmp_path: Path) -> None:
    for day in (20, 21, 22):
        keep_run(tmp_path, f"2026-11-{day}T10-00-00-aaaa")
    folder = tmp_path / "runs"
    (folder / "index.jsonl").unlink()
    (folder / "2026-11-21T10-00-00-aaaa/summary.json").unlink()
    journal = folder / "2026-11-21T10-00-00-aaaa/events.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    newer = json.dumps({"schema": "agent-workbench/journal/9", "run_id": "x"})
    from workbench.agents.worker.checked import checked_line

    journal.write_bytes(checked_line(newer) + "".join(lines[1:]).encode())
    runs, trouble = list_all_runs(tmp_path, tmp_path, [])
    assert [bool(run.trouble) for run in runs] == [False, True, False]
    assert "later version" in runs[1].trouble
    assert not trouble


def test_newest_runs_need_only_the_end_of_the_index(tmp_path: Path) -> None:
    for day in range(10, 30):
        keep_run(tmp_path, f"2026-10-{day}T10-00-00-aaaa")
    runs, _ = list_all_runs(tmp_path, tmp_path, [])
    assert newest_runs(tmp_path) == runs
    index = tmp_path / "runs/index.jsonl"
    index.write_bytes(index.read_bytes()[40:])
    assert newest_runs(tmp_path) == [*runs[:-2], runs[-2].__class__(**{**_fields(runs[-2]), "better": None})]


def _fields(run: Any) -> dict[str, Any]:
    return {name: getattr(run, name) for name in run.__slots__}


def test_events_of_one_case_are_read_from_a_journal(tmp_path: Path) -> None:
    journal = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    started, *events = read_case(journal, {FAILED})
    assert started == RunStarted(
        "2026-11-20T10-00-00-aaaa", "/root", "2026-11-20T10:00:00Z", (PlannedCase(FAILED, None, "defaults"),)
    )
    assert [type(event).__name__ for event in events] == [
        type(event).__name__ for event in case_events(FAILED, "failed", [TRAJECTORY_FAILED, ANSWER_PASSED])
    ]
    unknown = CaseRef("desk", FILE, "refunds", "of another run")
    assert list(read_case(journal, {unknown})) == [
        RunStarted("2026-11-20T10-00-00-aaaa", "", "", (PlannedCase(unknown, None, "not known"),))
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, 10_000), st.binary(max_size=3))
def test_journal_with_any_damaged_byte_shows_the_rest(tmp_path: Path, place: int, bytes_: bytes) -> None:
    folder = tmp_path / "kept"
    journal = folder / "runs/2026-11-20T10-00-00-aaaa/events.jsonl"
    if not journal.exists():
        keep_run(folder, "2026-11-20T10-00-00-aaaa")
    content = journal.read_bytes()
    damaged = tmp_path / "events.jsonl"
    place %= len(content)
    damaged.write_bytes(content[:place] + bytes_ + content[place + 1 :])
    store = Store()
    for event in read_case(damaged, {PASSED, FAILED}):
        store.apply(event)
    assert set(store.records) == {PASSED, FAILED}


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


def test_past_runs_of_a_case_are_found_in_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-aaaa", ALL_PASS)
    name = ("desk", FILE, "refunds", FAILED.eval_id)
    earlier = PastRuns(tmp_path)
    found = earlier.of(name, 20)
    assert [(run.run_id[:10], run.rows[0]["status"]) for run in found] == [
        ("2026-11-21", "passed"),
        ("2026-11-20", "failed"),
    ]
    assert len(earlier.of(name, 1)) == 1
    assert not earlier.of(("desk", FILE, "refunds", "other"), 20)
    summary = tmp_path / "runs/2026-11-21T10-00-00-aaaa/summary.json"
    summary.write_bytes(summary.read_bytes().replace(b"passed", b"failed", 1))
    assert [run.run_id[:10] for run in earlier.of(name, 20)] == ["2026-11-20"]
    monkeypatch.setattr(case_rows, "list_runs", None)
    assert len(earlier.of(name, 20)) == 1


def test_newest_verdict_of_each_case_is_found(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb", case_events(PASSED, "failed", [TRAJECTORY_FAILED]), ended=False)
    runs = latest_runs(tmp_path, CASES)
    assert [(run.summary.run_id[-4:], run.refs) for run in runs] == [("bbbb", (PASSED,)), ("aaaa", (FAILED,))]
    assert not list(latest_runs(tmp_path, {"other.evalset.json": ["one"]}))


def test_lost_verdict_is_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", ALL_PASS)
    journal = keep_run(tmp_path, "2026-11-21T10-00-00-bbbb")
    lines = journal.read_bytes().splitlines(keepends=True)
    verdict = next(line for line in lines if b'"CaseFinished"' in line and b'"failed"' in line)
    (announcement,) = (line for line in lines if b'"RunStarted"' in line)
    for lost in ([verdict], [verdict, announcement]):
        journal.write_bytes(b"".join(line for line in lines if line not in lost))
        assert [run.refs for run in latest_runs(tmp_path, CASES)] == [(PASSED,)]


def test_newest_verdicts_are_read_without_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    monkeypatch.setattr("workbench.history.run_list.read_lines", None)
    (found,) = latest_runs(tmp_path, CASES)
    assert set(found.refs) == {PASSED, FAILED}


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
        return checked_summary(state, run_id)

    monkeypatch.setattr("workbench.history.latest.summary_for_opening", spied)
    assert [run.summary.run_id[-4:] for run in latest_runs(tmp_path, CASES)] == ["bbbb"]
    assert looked_at == ["bbbb"]


def test_journal_is_read_on_opening_only_if_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb")
    read: list[str] = []

    def checked(state: Path, run_id: str) -> tuple[Summary, list[str]]:
        read.append(run_id[-4:])
        return checked_summary(state, run_id)

    monkeypatch.setattr("workbench.history.run_list.checked_summary", checked)
    summary_for_opening(tmp_path, "2026-11-21T10-00-00-bbbb")
    assert read == []
    journal = tmp_path / "runs" / "2026-11-21T10-00-00-bbbb" / "events.jsonl"
    content = journal.read_bytes()
    place = content.index(b'"CaseFinished"')
    journal.write_bytes(content[:place] + content[place:].replace(b"passed", b"failed", 1))
    _, damage = summary_for_opening(tmp_path, "2026-11-21T10-00-00-bbbb")
    assert read == ["bbbb"]
    assert damage
