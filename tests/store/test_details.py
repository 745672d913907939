"""Details of finished cases leave memory and are read again from the database."""

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stores import ANSWER_PASSED, CRASH, TRAJECTORY_FAILED, case_events, ref, started
from tests.stored import sql
from workbench.events.event_json import as_line
from workbench.events.events import CaseError, CaseFinished, CaseRef, Event, MetricResult, RunFinished
from workbench.exporting.junit import junit_pieces
from workbench.exporting.report import report_pieces
from workbench.store import details
from workbench.store.database.runs import ExecutionRow, executions_of_case
from workbench.store.details import keep_details, known_details, read_details, read_records
from workbench.store.execution import CaseRecord, Execution
from workbench.store.history.reading import load_summary
from workbench.store.history.run_writer import RunWriter
from workbench.store.store import Store

RUN = "2026-11-21T10-30-00-3f2a"
REFS = [ref(f"case_{number}") for number in range(6)]
FUNCTION = {"model": "python:desk.judge:decide", "kind": "python", "by": "function"}
SPLIT = {"judge": FUNCTION, "split": True}
JUDGED = MetricResult("m", "passed", 1.0, 0.5, "why", {"judge": FUNCTION})


@pytest.fixture(autouse=True)
def _nothing_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without details of other tests, and keep none beyond what is always kept."""
    monkeypatch.setattr(details, "_BUDGET", 0)
    monkeypatch.setattr(details, "_recent", OrderedDict())
    monkeypatch.setattr(details, "_bytes", 0)


def events_of(refs: Iterable[CaseRef] = REFS) -> list[Event]:
    found: list[Event] = []
    for number, case in enumerate(refs):
        if number % 3 == 2:
            found += case_events(case, "error", error=CRASH, text=f"text {number}")
        else:
            judged = JUDGED if number else replace(JUDGED, details=SPLIT)
            metrics = [TRAJECTORY_FAILED if number % 3 else ANSWER_PASSED, judged]
            found += case_events(case, "failed" if number % 3 else "passed", metrics, text=f"text {number}")
    return [started(list(refs)), *found, RunFinished(1.5)]


def run_kept(state: Path, events: list[Event] | None = None) -> tuple[Store, RunWriter]:
    """Return a store fed as in a run: each event is written before it is applied."""
    all_events = events_of() if events is None else events
    journal = RunWriter.open(state, RUN)
    store = Store()
    store.writers[RUN] = journal
    for event in all_events:
        journal.write([as_line(event)], sync=False)
        store.apply(event)
    return store, journal


def in_memory(events: list[Event] | None = None) -> Store:
    store = Store()
    for event in events_of() if events is None else events:
        store.apply(event)
    return store


def remove(state: Path) -> None:
    for file in state.glob("runs.db*"):
        file.unlink()


def test_finished_executions_have_no_details_until_they_are_read(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path)
    assert not any(isinstance(record, CaseRecord) for record in store.records.values())
    whole = in_memory()
    for case in REFS:
        execution, expected = store.records[case], whole.records[case]
        assert read_details(execution) == expected
        for field in fields(Execution):
            if field.compare and field.name not in ("scores", "error"):
                assert getattr(execution, field.name) == getattr(expected, field.name), field.name
    assert store.records[REFS[0]].split
    assert not store.records[REFS[1]].split


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases whose details were read, in turn."""
    found: list[str] = []

    def counted(file: Path, refs: set[CaseRef]) -> dict[CaseRef, CaseRecord]:
        found.extend(case.eval_id for case in refs)
        return read_records(file, refs)

    monkeypatch.setattr(details, "read_records", counted)
    return found


def test_details_used_last_stay_in_memory_within_the_budget(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = run_kept(tmp_path)
    records = [store.records[case] for case in REFS]
    assert [known_details(record) is not None for record in records] == [False] * 3 + [True] * 3
    read_details(records[3])
    read_details(records[0])
    assert [known_details(record) is not None for record in records] == [True, False, False, True, False, True]
    assert reads == ["case_0"]
    monkeypatch.setattr(details, "_BUDGET", 1_000_000)
    assert [read_details(record).ref for record in (*records, *records)] == REFS * 2
    assert sorted(reads) == ["case_0", "case_1", "case_2", "case_4"]


def test_budget_counts_the_size_that_details_had_when_they_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "_BUDGET", 20_000)
    store = in_memory()
    kept = []
    for case in REFS:
        record = store.records[case]
        assert isinstance(record, CaseRecord)
        kept.append((record.without_details(None, 4_000), record))
        keep_details(*kept[-1])
        kept[-1][0].size = 1_000_000
    assert details._bytes == 4_000 * len(details._recent) == 20_000
    keep_details(*kept[-1])
    assert details._bytes == sum(size for _, _, size in details._recent.values())


def test_verdicts_are_available_without_reading_details(tmp_path: Path, reads: list[str]) -> None:
    store, journal = run_kept(tmp_path)
    journal.close()
    remove(tmp_path)
    told = [
        {name: (one.status, one.score, one.details.get("judge")) for name, one in record.scores.items()}
        for record in store.current_records()
    ]
    assert told[0]["m"] == ("passed", 1.0, JUDGED.details["judge"])
    assert [record.error and (record.error.kind, record.error.message) for record in store.current_records()] == [
        *(None, None, (CRASH.kind, CRASH.message), None, None, (CRASH.kind, CRASH.message))
    ]
    assert reads == []


def test_reports_are_the_same_with_details_in_memory_or_database(tmp_path: Path) -> None:
    store, journal = run_kept(tmp_path)
    journal.close()
    for pieces in (report_pieces, junit_pieces):
        assert b"".join(pieces(store)) == b"".join(pieces(in_memory()))
    assert json.loads(b"".join(report_pieces(store)))["summary"]["total"] == len(REFS)


def test_missing_database_loses_details_but_no_verdict(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path)
    remove(tmp_path)
    record = read_details(store.records[REFS[1]])
    assert (record.state, list(record.metrics), record.turns) == ("failed", [TRAJECTORY_FAILED.name, "m"], [])
    assert "cannot be read" in record.read_error
    assert store.records[REFS[1]].read_error == record.read_error


def test_damaged_events_are_noticed(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path)
    sql(tmp_path, "UPDATE event SET data = replace(data, 'text 1\"', 'text 9\"')")
    assert read_details(store.records[REFS[0]]) == in_memory().records[REFS[0]]
    assert not store.records[REFS[0]].read_error
    lost = read_details(store.records[REFS[1]])
    assert lost.turns == []  # Its verdict is whole, but no word is taken from a damaged event.
    assert "is lost" in lost.read_error


def test_unwritten_end_of_a_case_stays_in_memory(tmp_path: Path) -> None:
    store, journal = run_kept(tmp_path)
    journal._failure = OSError(28, "full")  # The disk is full: what follows is not stored.
    gone = CaseError("internal", "the run could not be written")
    store.apply(CaseFinished(REFS[0], "error", gone, 0.0))
    record = store.records[REFS[0]]
    assert isinstance(record, CaseRecord)
    assert (record.state, record.error) == ("error", gone)
    assert record.turns


def test_details_are_read_from_a_database_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    store, writer = run_kept(tmp_path / "file")
    assert writer.notice is not None
    assert not any(isinstance(record, CaseRecord) for record in store.current_records())
    told = [(record.turns, record.read_error) for record in store.read_current()]
    assert told == [(record.turns, "") for record in in_memory().records.values() if isinstance(record, CaseRecord)]


def test_stored_executions_are_those_of_the_run(tmp_path: Path) -> None:
    store, journal = run_kept(tmp_path)
    journal.close()
    kept, _ = load_summary(tmp_path, RUN)
    records = kept.executions
    for case, record in records.items():
        expected = store.records[case]
        unlike: dict[str, Any] = {"started_at": None, "inputs": (), "given": (), "steps": None, "scores": {}}
        assert replace(record, **unlike) == replace(expected, **unlike)
        assert [(one.name, one.score) for one in record.scores.values()] == [
            (one.name, one.score) for one in expected.scores.values()
        ]
        assert read_details(record).turns == read_details(expected).turns
    # Two broke off in the same way before any answer. The other answers differ.
    assert len({record.answer for record in records.values()}) == len(REFS) - 1


def test_records_of_many_cases_are_read_in_one_call(tmp_path: Path) -> None:
    refs = [ref(f"case_{number}") for number in range(60)]
    _, journal = run_kept(tmp_path, events_of(refs))
    records = read_records(journal.path, refs)
    assert {case: record.state for case, record in records.items()} == {
        case: record.state for case, record in in_memory(events_of(refs)).records.items()
    }


def test_rows_with_the_same_ref_do_not_attach_events_of_another_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def repeated(*asked: Any) -> list[ExecutionRow]:
        first, second, third = executions_of_case(*asked)
        return [first, second._replace(repeat=first.repeat).sealed(), third]

    refs = [ref("late", repeat=repeat) for repeat in (1, 2, 3)]
    store, journal = run_kept(tmp_path, events_of(refs))
    monkeypatch.setattr("workbench.store.history.reading.executions_of_case", repeated)
    records = read_records(journal.path, refs[2:])
    assert {case: record.state for case, record in records.items()} == {refs[2]: store.records[refs[2]].state}
    with pytest.raises(ValueError, match="belongs to another case than late"):
        read_records(journal.path, refs[:1])


def test_restored_verdicts_need_no_details(tmp_path: Path, reads: list[str]) -> None:
    from workbench.ui.tree.verdicts import Verdicts

    _, journal = run_kept(tmp_path)
    journal.close()
    kept, _ = load_summary(tmp_path, RUN)
    store = Store()
    records = kept.executions
    store.restore(store.run, list(records), records)
    Verdicts(store).add(records)
    assert reads == []
