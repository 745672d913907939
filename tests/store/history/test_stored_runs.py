"""The list of runs: fast, complete, and robust against damage."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.stores import ANSWER_PASSED, FAILED, PASSED, TRAJECTORY_FAILED, case_events
from tests.stored import change_event, event_texts, forget_rows, sql
from workbench.cli import history_command
from workbench.events.event_json import as_line
from workbench.events.events import Event, Noticed, PlannedCase, RunFinished, RunStarted
from workbench.files.settings import Limits
from workbench.store.database.database import database
from workbench.store.database.opening import RUN_BITS
from workbench.store.database.runs import add_inputs, all_runs, save_run
from workbench.store.database.values import add_contents
from workbench.store.execution import Execution
from workbench.store.history import reading, run_list
from workbench.store.history.latest import latest_runs
from workbench.store.history.reading import load_summary
from workbench.store.history.retention import deletable_runs, delete_runs, pin, tidy, unpin
from workbench.store.history.run_list import list_all_runs, list_runs, newest_runs
from workbench.store.history.run_names import baseline, find_run
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import read_run
from workbench.store.history.summary import Summary
from workbench.store.inputs import digest
from workbench.store.store import Store


def keep_run(
    state: Path, run_id: str, events: list[Event] | None = None, *, ended: bool = True, scored_from: str = ""
) -> Path:
    """Store a run of two cases, as the engine does."""
    planned = tuple(PlannedCase(ref, None, "defaults") for ref in (PASSED, FAILED))
    sources = {"desk": {"a.py": "ab" * 16}}
    started = RunStarted(run_id, "/root", f"{run_id[:10]}T10:00:00Z", planned, scored_from, sources=sources)
    cases = [
        *case_events(PASSED, "passed", [ANSWER_PASSED]),
        *case_events(FAILED, "failed", [TRAJECTORY_FAILED, ANSWER_PASSED]),
    ]
    writer = RunWriter.open(state, run_id)
    every = [started, *(cases if events is None else events), *([RunFinished(4.2)] if ended else [])]
    writer.write(map(as_line, every), sync=False)
    writer.close()
    assert writer.path is not None
    return writer.path


def test_runs_are_listed_newest_first_with_counts(tmp_path: Path) -> None:
    for day in ("2026-11-20", "2026-11-22", "2026-11-21"):
        keep_run(tmp_path, f"{day}T10-00-00-aaaa")
    found = list_runs(tmp_path)
    assert [run.started[:10] for run in found.runs] == ["2026-11-22", "2026-11-21", "2026-11-20"]
    assert found.runs[0].counts == {"passed": 1, "failed": 1, "error": 0, "not_evaluated": 0, "cancelled": 0}
    assert found.runs[0].agents == ("desk",)
    assert not found.trouble


def test_inputs_are_read_in_pieces_and_missing_inputs_are_key_errors(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    stored = database(tmp_path)
    stored.write(lambda connection: add_inputs(connection, 1, 0, [f"{number}" for number in range(450)]))
    stored.write(lambda connection: add_inputs(connection, 2, 0, ["of another run"]))
    texts = reading.StoredTexts(stored, 1)
    assert [texts[number] for number in (449, 230, 229, 0)] == ["449", "230", "229", "0"]
    assert len(texts) < 450, "what nobody asked for is not read"
    for number in (450, (1 << RUN_BITS) - 1):
        with pytest.raises(KeyError):
            texts[number]


def test_run_from_the_future_is_not_the_newest(tmp_path: Path) -> None:
    wrong, right = "9026-11-20T10-00-00-aaaa", "2026-11-20T10-00-00-bbbb"
    for run_id in (wrong, right):
        keep_run(tmp_path, run_id)
    assert [run.run_id for run in list_runs(tmp_path).runs] == [right, wrong]
    assert [run.run_id for run in newest_runs(tmp_path)] == [right, wrong]
    assert [run.run_id for run in list_all_runs(tmp_path, tmp_path, ())[0]] == [right, wrong]
    assert find_run("last", tmp_path).name == right
    (latest,) = latest_runs(tmp_path, {PASSED.evalset_file: [PASSED.eval_id]})
    assert latest.summary.run_id == right
    assert deletable_runs(tmp_path, 1) == [wrong]


def test_ended_runs_are_listed_without_their_executions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    monkeypatch.setattr(run_list, "load_summary", None)
    assert len(list_runs(tmp_path).runs) == 1


def test_run_that_does_not_exist_can_be_neither_pinned_nor_deleted(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    with pytest.raises(FileNotFoundError):
        pin(tmp_path, "2026-11-21T10-00-00-bbbb")
    assert baseline(tmp_path) is None
    assert delete_runs(tmp_path, ["2026-11-21T10-00-00-bbbb"]) == []


def test_invalid_stored_baseline_is_ignored(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    for content in ("", "x" * 5000, "../runs"):
        sql(tmp_path, "INSERT OR REPLACE INTO meta VALUES ('baseline', ?)", (content,))
        assert baseline(tmp_path) is None


def without_inputs(found: Summary) -> list[Execution]:
    return [replace(one, inputs=(), given=()) for one in found.executions.values()]


DAMAGE = (
    "UPDATE execution SET status = 'passed'",
    "UPDATE execution SET scores = '{'",
    "UPDATE execution SET more = '[]', crc = 0",
    "UPDATE execution SET seconds = 1e9 WHERE eval_id = 'on_time'",
    "DELETE FROM execution",
    "DELETE FROM execution WHERE eval_id = 'late_parcel'",
    "UPDATE run SET seconds = NULL",
    "UPDATE run SET facts = '{}'",
    "UPDATE run SET listed = '{'",
    "UPDATE run SET listed = NULL, crc = 0, executions = 9",
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_rows_are_rebuilt_from_the_events(tmp_path: Path, damage: str) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    before, (summary, _) = list_runs(tmp_path).runs, load_summary(tmp_path, path.name)
    sql(tmp_path, damage)
    for _ in range(2):
        again, trouble = load_summary(tmp_path, path.name)
        assert (list_runs(tmp_path).runs, trouble) == (before, [])
        inputs = [[found.record(one).bundles for one in found.executions.values()] for found in (again, summary)]
        assert inputs[0] == inputs[1]
        assert without_inputs(again) == without_inputs(summary)


def test_unfinished_cases_of_a_killed_run_count_as_cancelled(tmp_path: Path) -> None:
    events = case_events(PASSED, "passed", [ANSWER_PASSED])
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", events, ended=False)
    (run,) = list_runs(tmp_path).runs
    assert run.seconds is None
    assert run.counts == {"passed": 1, "failed": 0, "error": 0, "not_evaluated": 0, "cancelled": 1}
    assert run.no_verdict == 1
    assert "1 passed, 1 without a verdict (did not end" in history_command._line(run, tmp_path, "", is_baseline=False)


def test_run_without_events_is_not_listed(tmp_path: Path) -> None:
    writer = RunWriter.open(tmp_path, "2026-11-20T10-00-00-aaaa")
    assert list_runs(tmp_path).runs == []
    writer.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_any_damaged_event_is_named_and_no_verdict_is_better(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "runs.db" / "2026-11-20T10-00-00-aaaa"
    if not path.parent.exists():
        keep_run(tmp_path, path.name)
        sql(tmp_path, "CREATE TABLE kept AS SELECT id, data FROM event")
        sql(tmp_path, "CREATE TABLE kept_rows AS SELECT * FROM execution")
        sql(tmp_path, "CREATE TABLE kept_run AS SELECT * FROM run")
    for table, kept in (("execution", "kept_rows"), ("run", "kept_run")):
        sql(tmp_path, f"DELETE FROM {table}")
        sql(tmp_path, f"INSERT INTO {table} SELECT * FROM {kept}")
    sql(tmp_path, "UPDATE event SET data = (SELECT data FROM kept WHERE kept.id = event.id)")
    whole, _ = load_summary(tmp_path, path.name)
    number = data.draw(st.integers(1, len(event_texts(path))))
    change_event(path, number, "e", data.draw(st.sampled_from(["E", "", "ee"])))
    if data.draw(st.booleans()):
        forget_rows(path)
    summary, trouble = load_summary(tmp_path, path.name)
    assert any("checksum" in event.message for event in read_run(path) if isinstance(event, Noticed))
    for ref, one in summary.executions.items():
        assert not one.finished or one.state == whole.executions[ref].state
        for name, result in one.scores.items():
            assert whole.executions[ref].scores[name] == result
    assert trouble or without_inputs(summary) == without_inputs(whole)
    list_runs(tmp_path)


def test_deleting_runs_spares_the_baseline(tmp_path: Path) -> None:
    ids = [f"2026-11-1{day}T10-00-00-aaaa" for day in range(5)]
    for run_id in ids:
        keep_run(tmp_path, run_id)
    pin(tmp_path, ids[0])
    assert baseline(tmp_path) == ids[0]
    assert deletable_runs(tmp_path, 2) == [ids[2], ids[1]]
    assert delete_runs(tmp_path, [ids[1], "no-such-run"]) == [ids[1]]
    assert [run.run_id for run in list_runs(tmp_path).runs] == [ids[4], ids[3], ids[2], ids[0]]
    unpin(tmp_path)
    assert baseline(tmp_path) is None
    pin(tmp_path, ids[2])
    delete_runs(tmp_path, [ids[2]])
    assert baseline(tmp_path) is None


def test_run_in_progress_stays_and_killed_run_can_be_deleted(tmp_path: Path) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", [], ended=False)
    writer = RunWriter.reopen(path)
    assert writer is not None
    assert RunWriter.reopen(path) is None
    assert deletable_runs(tmp_path, 0) == []
    assert delete_runs(tmp_path, [path.name]) == []
    writer.release()
    assert deletable_runs(tmp_path, 0) == [path.name]


def test_oldest_runs_beyond_a_limit_are_deleted_except_protected_ones(tmp_path: Path) -> None:
    ids = [f"2020-11-{day:02}T10-00-00-aaaa" for day in range(1, 31)]
    for run_id in ids:
        keep_run(tmp_path, run_id)
    keep_run(tmp_path, "2020-12-01T10-00-00-bbbb", scored_from=ids[2])
    pin(tmp_path, ids[0])
    assert tidy(tmp_path, Limits(runs=40, megabytes=10)) == []
    assert tidy(tmp_path, Limits(runs=30)) == [], "a little more than the limit is borne"
    assert tidy(tmp_path, Limits(runs=20)) == [ids[10], *ids[9:2:-1], ids[1]]
    left = [run.run_id for run in list_runs(tmp_path).runs]
    assert left == ["2020-12-01T10-00-00-bbbb", *reversed(ids[11:]), ids[2], ids[0]]
    (large,) = [run for run in database(tmp_path).read(all_runs) or () if run.run_id == ids[12]]
    database(tmp_path).write(lambda connection: save_run(connection, large._replace(bytes=2_000_000), time.time()))
    assert tidy(tmp_path, Limits(runs=0, megabytes=1)) == [ids[12], ids[11]]
    assert len(tidy(tmp_path, Limits(runs=0, megabytes=0, days=1))) == len(left) - 2 - 3, (
        "all but newest, named, pinned"
    )


def test_executions_of_a_run_that_was_scored_again_say_so(tmp_path: Path) -> None:
    first, again = "2026-11-20T10-00-00-aaaa", "2026-11-21T10-00-00-bbbb"
    paths = {first: keep_run(tmp_path, first), again: keep_run(tmp_path, again, scored_from=first)}
    for run_id, path in paths.items():
        summary, _ = load_summary(tmp_path, run_id)
        assert {one.rescored for one in summary.executions.values()} == {run_id == again}
        store = Store()
        for event in read_run(path):
            store.apply(event)
        assert {one.rescored for one in store.records.values()} == {run_id == again}


def test_run_that_a_protected_run_scored_again_is_not_deleted(tmp_path: Path) -> None:
    ids = [f"2026-11-1{day}T10-00-00-aaaa" for day in range(5)]
    for run_id, scored_from in zip(ids, ["", ids[0], "", "", ""], strict=True):
        keep_run(tmp_path, run_id, scored_from=scored_from)
    pin(tmp_path, ids[1])
    assert deletable_runs(tmp_path, 1) == [ids[3], ids[2]]
    assert tidy(tmp_path, Limits(runs=1)) == [ids[3], ids[2]]


def test_file_contents_are_deleted_with_the_last_run_that_used_them(tmp_path: Path) -> None:
    contents = {"ab" * 16: b"used", "cd" * 16: b"not", "ef" * 16: b"new"}
    for day in (20, 21, 22):
        keep_run(tmp_path, f"2026-11-{day}T10-00-00-aaaa")
    stored = database(tmp_path)
    stored.write(lambda connection: add_contents(connection, contents, time.time()))
    sql(tmp_path, "UPDATE content SET used = 0 WHERE digest NOT LIKE 'ef%'")

    def kept() -> list[bytes]:
        return [row[0] for row in sql(tmp_path, "SELECT data FROM content ORDER BY digest")]

    delete_runs(tmp_path, ["2026-11-20T10-00-00-aaaa"])
    assert kept() == [b"used", b"new"]
    delete_runs(tmp_path, ["2026-11-21T10-00-00-aaaa", "2026-11-22T10-00-00-aaaa"])
    assert kept() == [b"new"], "what was used within the last hour stays"
    assert sql(tmp_path, "SELECT count(*) FROM event") == [(0,)]


def test_digest_does_not_depend_on_key_order() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})
