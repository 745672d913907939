"""Details of finished cases are dropped from memory and read again from the database."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli.stores import ANSWER_PASSED, CRASH, TRAJECTORY_FAILED, case_events, ref, started
from tests.stored import sql
from workbench.details import DetailCache
from workbench.engine.run.event_lines import as_line
from workbench.events import CaseError, CaseFinished, CaseRef, Event, MetricResult, RunFinished
from workbench.exporting.junit import junit_pieces
from workbench.exporting.report import report_pieces
from workbench.history.run_writer import RunWriter
from workbench.history.stored_runs import load_summary
from workbench.store import CaseRecord, Store
from workbench.stored_records import StoredDetails, brief_records, read_records, register_details

REFS = [ref(f"case_{number}") for number in range(6)]
FUNCTION = {"model": "python:desk.judge:decide", "kind": "python", "by": "function"}
JUDGED = MetricResult("m", "passed", 1.0, 0.5, "why", {"judge": FUNCTION})


def events_of(refs: Iterable[CaseRef] = REFS) -> list[Event]:
    found: list[Event] = []
    for number, case in enumerate(refs):
        if number % 3 == 2:
            found += case_events(case, "error", error=CRASH, text=f"text {number}")
        else:
            metrics = [TRAJECTORY_FAILED if number % 3 else ANSWER_PASSED, JUDGED]
            found += case_events(case, "failed" if number % 3 else "passed", metrics, text=f"text {number}")
    return [started(list(refs)), *found, RunFinished(1.5)]


def run_kept(state: Path, budget: int, events: list[Event] | None = None) -> tuple[Store, RunWriter]:
    """Return a store fed as in a run: each event is written before it is applied."""
    all_events = events_of() if events is None else events
    journal = RunWriter.open(state, "2026-11-21T10-30-00-3f2a")
    store = Store()
    store.detail_cache.budget = budget
    register_details(store.detail_sources, journal)
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


def is_folded(record: CaseRecord) -> bool:
    try:
        object.__getattribute__(record, "turns")
    except AttributeError:
        return True
    return False


def test_details_outside_memory_are_read_on_access(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path, 1)
    folded = [is_folded(store.records[case]) for case in REFS]
    assert folded == [True] * 5 + [False]
    whole = in_memory()
    for case in REFS:
        assert store.records[case] == whole.records[case]
    assert [is_folded(store.records[case]) for case in REFS] == folded


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases whose details were read, in turn."""
    found: list[str] = []
    read = StoredDetails.read

    def counted(source: StoredDetails, case: CaseRef) -> tuple[CaseRecord, str]:
        found.append(case.eval_id)
        return read(source, case)

    monkeypatch.setattr(StoredDetails, "read", counted)
    return found


def test_details_read_ahead_are_not_read_on_access(tmp_path: Path, reads: list[str]) -> None:
    store, _ = run_kept(tmp_path, 1)
    store.detail_cache.budget = 1_000_000
    record = store.records[REFS[1]]
    assert not record.has_details
    record.read_ahead()
    record.read_ahead()
    assert record.has_details
    assert record == in_memory().records[REFS[1]]
    assert reads == ["case_1"]


def test_details_that_another_thread_has_just_read_are_not_read_again(tmp_path: Path, reads: list[str]) -> None:
    store, _ = run_kept(tmp_path, 1)
    cache, record = store.detail_cache, store.records[REFS[1]]
    cache.budget = 1_000_000
    real = cache.lock

    class HeldByReader:
        """A lock that another thread releases after it has read the details."""

        def __enter__(self) -> None:
            cache.lock = real
            record.read_ahead()

        def __exit__(self, *_: object) -> None:
            pass

    cache.lock = HeldByReader()  # type: ignore[assignment]
    assert record.turns == in_memory().records[REFS[1]].turns
    assert reads == ["case_1"]


def test_large_case_is_not_read_ahead(tmp_path: Path, reads: list[str]) -> None:
    store, _ = run_kept(tmp_path, 1)
    store.records[REFS[1]].read_ahead()
    assert reads == []
    assert store.records[REFS[5]].has_details


def test_scores_and_brief_errors_read_nothing(tmp_path: Path) -> None:
    store, journal = run_kept(tmp_path, 1)
    journal.close()
    remove(tmp_path)
    told = [
        {name: (one.status, one.score, one.details.get("judge")) for name, one in record.scores.items()}
        for record in store.current_records()
    ]
    assert told[0]["m"] == ("passed", 1.0, JUDGED.details["judge"])
    assert [record.brief_error and record.brief_error.kind for record in store.current_records()] == [
        *(None, None, "agent_raised", None, None, "agent_raised")
    ]
    assert not store.detail_cache.read_error


def test_reports_are_the_same_with_details_in_memory_or_database(tmp_path: Path) -> None:
    store, journal = run_kept(tmp_path, 1)
    journal.close()
    for pieces in (report_pieces, junit_pieces):
        assert b"".join(pieces(store)) == b"".join(pieces(in_memory()))
    assert json.loads(b"".join(report_pieces(store)))["summary"]["total"] == len(REFS)


def test_missing_database_loses_details_but_no_verdict(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path, 1)
    remove(tmp_path)
    record = store.records[REFS[1]]
    assert (record.state, list(record.metrics), record.turns) == ("failed", [TRAJECTORY_FAILED.name, "m"], [])
    assert "cannot be read" in record.read_error
    assert store.detail_cache.read_error == record.read_error


def test_damaged_events_are_noticed(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path, 1)
    sql(tmp_path, "UPDATE event SET data = replace(data, 'text 1\"', 'text 9\"')")
    assert store.records[REFS[0]] == in_memory().records[REFS[0]]
    assert not store.detail_cache.read_error
    assert store.records[REFS[1]].turns == []  # Its verdict is whole, but no word is taken from a damaged event.
    assert "is lost" in store.records[REFS[1]].read_error


def test_unwritten_end_of_a_case_stays_in_memory(tmp_path: Path) -> None:
    store, _ = run_kept(tmp_path, 1)
    gone = CaseError("internal", "the run could not be written")
    store.apply(CaseFinished(REFS[0], "error", gone, 0.0))
    assert store.records[REFS[0]].error == gone


def test_details_are_read_from_a_database_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    store, writer = run_kept(tmp_path / "file", 1)
    assert writer.notice is not None
    assert any(is_folded(record) for record in store.current_records())
    assert [record.turns for record in store.current_records()] == [
        record.turns for record in in_memory().records.values()
    ]
    assert not store.detail_cache.read_error


def test_list_needs_only_the_summary(tmp_path: Path) -> None:
    _, journal = run_kept(tmp_path, 1)
    journal.close()
    assert journal.path is not None
    whole = in_memory()
    kept, _ = load_summary(tmp_path, "2026-11-21T10-30-00-3f2a")
    records = brief_records(kept, journal.path, list(kept.rows.values()), DetailCache())
    for case, record in records.items():
        expected = whole.records[case]
        assert is_folded(record)
        assert (record.state, record.planned, record.usage) == (expected.state, expected.planned, expected.usage)
        assert [one.score for one in record.scores.values()] == [one.score for one in expected.metrics.values()]
        assert (record.turns, record.metrics, record.error) == (expected.turns, expected.metrics, expected.error)


def test_many_cases_are_read_together(tmp_path: Path) -> None:
    refs = [ref(f"case_{number}") for number in range(60)]
    _, journal = run_kept(tmp_path, 1, events_of(refs))
    assert journal.path is not None
    records = read_records(journal.path, refs)
    assert {case: record.state for case, record in records.items()} == {
        case: record.state for case, record in in_memory(events_of(refs)).records.items()
    }


def test_restored_verdicts_need_no_details(tmp_path: Path) -> None:
    from workbench.ui.tree.verdicts import Verdicts

    _, journal = run_kept(tmp_path, 1)
    journal.close()
    assert journal.path is not None
    kept, _ = load_summary(tmp_path, "2026-11-21T10-30-00-3f2a")
    store = Store()
    records = brief_records(kept, journal.path, list(kept.rows.values()), store.detail_cache)
    store.restore(store.run, list(records), records)
    Verdicts(store).recall(records)
    assert all(map(is_folded, records.values()))
