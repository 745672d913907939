"""Stored events: they come back as written, and damaged or missing ones are named and skipped."""

import stat
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stored import change_event, drop_events, event_texts, forget_rows, number_of, sql
from workbench.events.event_json import as_line
from workbench.events.events import (
    AgentActed,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    Noticed,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files.folders import state_dir
from workbench.store.database.database import database, run_path
from workbench.store.history.reading import load_summary
from workbench.store.history.run_list import list_runs
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import UNREADABLE_CASES, is_reading_problem, read_run
from workbench.store.store import Store

REF = CaseRef("desk", "desk/refunds.evalset.json", "refunds", "late_parcel")
OTHER = CaseRef("desk", "desk/refunds.evalset.json", "refunds", "on_time", 2)
STARTED = RunStarted(
    "run-1",
    "/root",
    "2026-11-21T10:30:00Z",
    (PlannedCase(REF, None, "defaults"), PlannedCase(OTHER, "c.json", "beside")),
)
USER = {"role": "user", "parts": [{"text": "hallo \ud800 \x1b[31m é"}]}
EVENTS: list[Event] = [
    STARTED,
    CaseStarted(REF, 0.1, ({"user_content": USER},), {"tool_trajectory_avg_score": 1.0}),
    TurnStarted(REF, 0, USER),
    AgentActed(REF, 0, {"author": "desk", "content": {"parts": [{"text": "Grüße"}]}}),
    TurnFinished(REF, 0, {"user_content": USER, "final_response": None}),
    CaseFinished(REF, "passed", None, 0.5),
    CaseStarted(OTHER, 0.2, None, {}),
    TurnStarted(OTHER, 0, USER),
    TurnFinished(OTHER, 0, {"user_content": USER}),
    TurnStarted(OTHER, 1, USER),
    CaseFinished(OTHER, "failed", None, 0.5),
    RunFinished(1.0),
]


def _write(state: Path, events: list[Event]) -> Path:
    writer = RunWriter.open(state, "run-1")
    assert writer.path is not None
    for event in events:
        writer.write([as_line(event)], sync=isinstance(event, CaseFinished))
    writer.close()
    return writer.path


def problems(path: Path) -> list[str]:
    return [event.message for event in read_run(path) if isinstance(event, Noticed) and is_reading_problem(event, path)]


def test_events_are_read_as_written(tmp_path: Path) -> None:
    path = _write(tmp_path / "state", EVENTS)
    assert list(read_run(path)) == EVENTS
    assert path == run_path(tmp_path / "state", "run-1")


def test_events_of_one_batch_are_stored_together_or_not_at_all(tmp_path: Path) -> None:
    writer = RunWriter.open(tmp_path, "run-1")
    writer.write(map(as_line, EVENTS[:3]), sync=False)
    sql(
        tmp_path,
        "CREATE TRIGGER full BEFORE INSERT ON event WHEN new.name = 'CaseFinished'"
        " BEGIN SELECT RAISE(FAIL, 'full'); END",
    )
    with pytest.raises(OSError, match="full"):
        writer.write(map(as_line, EVENTS[3:]), sync=False)
    assert writer.path is not None
    assert list(read_run(writer.path)) == EVENTS[:3]
    assert sql(tmp_path, "SELECT status FROM execution") == [(None,), (None,)]
    assert sql(tmp_path, "SELECT events FROM run") == [(3,)]


def test_database_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    state = state_dir(tmp_path)
    _write(state, EVENTS)
    assert state == tmp_path / ".workbench"
    for file in state.glob("runs.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert (state / ".gitignore").read_text() == "*\n"
    database(state).close()
    assert sorted(file.name for file in state.iterdir()) == [".gitignore", "id", "runs.db"]


@pytest.mark.parametrize("number", range(1, len(EVENTS) + 1))
def test_damaged_event_does_not_stop_the_reader(tmp_path: Path, number: int) -> None:
    path = _write(tmp_path, EVENTS)
    change_event(path, number, '"event"', '"evemt"')
    store = Store()
    for event in read_run(path):
        store.apply(event)
    assert [notice.message for notice in store.notices if f"{path}: event {number} " in notice.message]
    assert set(store.records) - {UNREADABLE_CASES} == {REF, OTHER}
    assert store.records[REF].state == ("cancelled" if number == 6 else "passed")


@pytest.mark.parametrize("number", range(1, len(EVENTS) + 1))
def test_missing_and_moved_events_are_named(tmp_path: Path, number: int) -> None:
    path = _write(tmp_path, EVENTS)
    drop_events(path, number)
    (missing,) = problems(path)
    assert "1 event is missing" in missing
    sql(tmp_path, "UPDATE event SET id = id + 100 WHERE id % 256 = ?", (len(EVENTS) - (number == len(EVENTS)),))
    assert any("checksum" in problem for problem in problems(path))


def test_lost_announcement_is_rebuilt_from_the_cases(tmp_path: Path) -> None:
    path = _write(tmp_path, EVENTS)
    drop_events(path, 1)
    first = next(iter(read_run(path)))
    assert isinstance(first, RunStarted)
    assert first.run_id == "run-1"
    assert [planned.case for planned in first.cases] == [REF, OTHER, UNREADABLE_CASES]


def test_run_stays_in_memory_if_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    for run_id in ("run-1", "run-2"):
        writer = RunWriter.open(blocked / ".workbench", run_id)
        assert writer.notice is not None
        assert writer.notice.level == "warning"
        assert f"{blocked}/.workbench/runs.db cannot be written (Not a directory)" in writer.notice.message
        writer.write(map(as_line, EVENTS), sync=True)
        writer.close()
        assert list(read_run(writer.path)) == EVENTS
    assert len(list_runs(blocked / ".workbench").runs) == 2


def test_run_in_an_untrusted_folder_stays_in_memory(tmp_path: Path) -> None:
    (tmp_path / ".workbench/runs").mkdir(parents=True)
    writer = RunWriter.open(state_dir(tmp_path), "run-1")
    assert writer.notice is not None
    assert f"{tmp_path}/.workbench is neither read nor written" in writer.notice.message
    writer.write(map(as_line, EVENTS), sync=True)
    writer.close()
    assert list(read_run(writer.path)) == EVENTS
    assert [file.name for file in tmp_path.rglob("*")] == [".workbench", "runs"]


def test_run_that_cannot_begin_on_a_full_disk_is_not_stored(tmp_path: Path) -> None:
    RunWriter.open(tmp_path, "run-0").close()
    sql(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON run BEGIN SELECT RAISE(FAIL, 'No space'); END")
    writer = RunWriter.open(tmp_path, "run-1")
    assert writer.notice is not None
    assert "No space" in writer.notice.message
    writer.write(map(as_line, EVENTS), sync=True)
    assert writer.size(REF) == 0
    assert writer.keep_pieces({"a": "b"}) is None
    writer.close()
    sql(tmp_path, "DROP TRIGGER full")
    assert RunWriter.open(tmp_path, "run-2").notice is None, "the next run tries again"


def test_run_without_an_announcement_leaves_nothing(tmp_path: Path) -> None:
    writer = RunWriter.open(tmp_path, "run-1")
    writer.close()
    assert writer.path is not None
    with pytest.raises(FileNotFoundError):
        list(read_run(writer.path))


def test_removed_database_fails_the_next_write(tmp_path: Path) -> None:
    writer = RunWriter.open(tmp_path, "run-1")
    writer.write([as_line(STARTED)], sync=False)
    for file in tmp_path.glob("runs.db*"):
        file.unlink()
    for event in EVENTS[1:3]:
        with pytest.raises(FileNotFoundError, match=r"deleted.*runs\.db"):
            writer.write([as_line(event)], sync=False)
    writer.close()


def test_only_the_run_of_a_dead_process_can_be_reopened(tmp_path: Path) -> None:
    writer = RunWriter.open(tmp_path, "run-1")
    writer.write([as_line(STARTED)], sync=False)
    assert writer.path is not None
    assert RunWriter.reopen(writer.path) is None
    (name,) = sql(tmp_path, "SELECT writer FROM run")[0]
    machine, pid, began = name.rsplit(" ", 2)
    for dead in (f"{machine} {pid} {began}0", f"{machine} 4194305 1", f"other/ {pid} {began}"):
        sql(tmp_path, "UPDATE run SET writer = ?, seen = ?", (dead, time.time() - 1000))
        again = RunWriter.reopen(writer.path)
        assert again is not None
        again.release()
    sql(tmp_path, "UPDATE run SET writer = 'other/ 1 1', seen = ?", (time.time(),))
    assert RunWriter.reopen(writer.path) is None, "a process of another machine gave a sign"


def test_resumed_run_continues_its_numbers_and_rows(tmp_path: Path) -> None:
    path = _write(tmp_path, EVENTS[:7])
    again = RunWriter.reopen(path)
    assert again is not None
    again.write(map(as_line, EVENTS[7:]), sync=False)
    again.close()
    assert list(read_run(path)) == EVENTS
    assert sql(tmp_path, "SELECT eval_id, status FROM execution ORDER BY id") == [
        ("late_parcel", "passed"),
        ("on_time", "failed"),
    ]
    every = "SELECT id, status, scores, more, first, events, changed FROM execution"
    whole = sql(tmp_path, every)
    forget_rows(path)
    load_summary(tmp_path, "run-1")
    assert sql(tmp_path, every) == whole, "made again from the events, they are the same"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_undamaged_events_are_read_after_any_damage(tmp_path: Path, data: st.DataObject) -> None:
    path = run_path(tmp_path, "run-1")
    if not database(tmp_path).exists:
        _write(tmp_path, EVENTS)
        for number, text in enumerate(event_texts(path), 1):
            sql(tmp_path, "CREATE TABLE IF NOT EXISTS kept (id, data)")
            sql(tmp_path, "INSERT INTO kept VALUES (?, ?)", (number, text))
    base = number_of(path) << 32
    sql(tmp_path, "UPDATE event SET data = (SELECT data FROM kept WHERE kept.id = event.id - ?)", (base,))
    damaged = data.draw(st.lists(st.integers(1, len(EVENTS)), min_size=1, max_size=4))
    for number in damaged:
        (text,) = sql(tmp_path, "SELECT data FROM event WHERE id = ?", (base | number,))[0]
        place = data.draw(st.integers(0, len(text) - 1))
        letter = chr(data.draw(st.integers(32, 255)))
        cut = text[:place] + (letter + text[place + 1 :] if data.draw(st.booleans()) else "")
        sql(tmp_path, "UPDATE event SET data = ? WHERE id = ?", (cut or " ", base | number))
    events = list(read_run(path))
    store = Store()
    for event in events:
        store.apply(event)
    kept = [event for event in events if event in EVENTS]
    assert kept == [event for event in EVENTS if event in kept]
    assert all(event in kept for number, event in enumerate(EVENTS, 1) if number not in damaged)
    if len(kept) < len(EVENTS):
        assert any(isinstance(event, Noticed) for event in events)
