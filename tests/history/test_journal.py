"""The journal: events come back as written, and damaged lines are named and skipped."""

import json
import os
import stat
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.engine.run.event_lines import as_line
from workbench.events import (
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
from workbench.history.journal import UNREADABLE_CASES, Journal, read_journal
from workbench.state_folder import state_dir
from workbench.store import Store

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
    journal = Journal.open(state, "run-1")
    assert journal.path is not None
    for event in events:
        journal.write([as_line(event)], sync=isinstance(event, CaseFinished))
    journal.close()
    return journal.path


def test_events_are_read_as_written(tmp_path: Path) -> None:
    path = _write(tmp_path / "state", EVENTS)
    assert list(read_journal(path)) == EVENTS
    assert path == tmp_path / "state" / "runs" / "run-1" / "events.jsonl"
    for line in path.read_text("ascii").splitlines():
        assert set(json.loads(line)) == {"crc32", "data"}


def test_journal_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    state = state_dir(tmp_path)
    path = _write(state, EVENTS)
    assert state == tmp_path / ".workbench"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (state, path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (state / ".gitignore").read_text() == "*\n"


def test_line_cut_by_a_kill_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = _write(tmp_path, EVENTS[:6])
    path.write_bytes(path.read_bytes()[:-7])
    *whole, last = read_journal(path)
    assert whole == EVENTS[:5]
    assert isinstance(last, Noticed)
    assert f"{path}:7" in last.message
    assert "incomplete" in last.message


@pytest.mark.parametrize("line", range(1, len(EVENTS) + 1))
def test_damaged_line_does_not_stop_the_reader(tmp_path: Path, line: int) -> None:
    path = _write(tmp_path, EVENTS)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"event"', b'"evemt"')
    path.write_bytes(b"".join(lines))
    store = Store()
    for event in read_journal(path):
        store.apply(event)
    assert [notice.message for notice in store.notices if f"{path}:{line + 1}:" in notice.message]
    assert set(store.records) - {UNREADABLE_CASES} == {REF, OTHER}
    assert store.records[REF].state == ("cancelled" if line == 6 else "passed")


def test_damaged_header_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path, EVENTS)
    path.write_bytes(path.read_bytes().replace(b"journal/2", b"journal/9", 1))
    first, notice, *rest = read_journal(path)
    assert isinstance(notice, Noticed)
    assert f"{path}:1:" in notice.message
    assert [first, *rest] == EVENTS


def test_lost_announcement_is_rebuilt_from_the_cases(tmp_path: Path) -> None:
    path = _write(tmp_path, EVENTS[1:])
    first = next(iter(read_journal(path)))
    assert isinstance(first, RunStarted)
    assert first.run_id == "run-1"
    assert [planned.case for planned in first.cases] == [REF, OTHER, UNREADABLE_CASES]


def test_other_schemas_and_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    header = b'{"schema": "agent-workbench/journal/9"}'
    path.write_bytes(b'{"crc32": "%08x", "data": %s}\n' % (zlib.crc32(header), header))
    with pytest.raises(ValueError, match="journal/9"):
        list(read_journal(path))
    path.write_text("shopping\n")
    with pytest.raises(ValueError, match="not a journal"):
        list(read_journal(path))


def test_run_stays_in_memory_if_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    journal = Journal.open(blocked / ".workbench", "run-1")
    assert journal.path is None
    assert journal.notice is not None
    assert journal.notice.level == "warning"
    assert str(blocked) in journal.notice.message
    journal.write([as_line(STARTED)], sync=True)
    journal.close()


def test_full_disk_is_an_error_and_leaves_complete_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(tmp_path, "run-1")
    assert journal.path is not None
    journal.write([as_line(EVENTS[0])], sync=True)
    real = os.write
    calls = iter([True, False])

    def full(descriptor: int, data: bytes) -> int:
        if next(calls):
            return real(descriptor, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        journal.write([as_line(EVENTS[1])], sync=False)
    assert list(read_journal(journal.path)) == EVENTS[:1]


def test_run_without_an_announcement_leaves_no_file(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, "run-1")
    assert journal.path is not None
    journal.close()
    assert not journal.path.parent.exists()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rest_is_read_after_any_damage(tmp_path: Path, data: st.DataObject) -> None:
    original = tmp_path / "runs" / "run-1" / "events.jsonl"
    if not original.exists():
        _write(tmp_path, EVENTS)
    content = bytearray(original.read_bytes())
    start = content.index(b"\n") + 1
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            place = data.draw(st.integers(start, len(content) - 1))
            content[place] ^= data.draw(st.integers(1, 255))
        else:
            del content[max(start, data.draw(st.integers(start, len(content)))) :]
        if len(content) <= start:
            break
    damaged = tmp_path / "runs" / "run-1" / "damaged.jsonl"
    damaged.write_bytes(content)
    events = list(read_journal(damaged))
    store = Store()
    for event in events:
        store.apply(event)
    kept = [event for event in events if event in EVENTS]
    assert kept == [event for event in EVENTS if event in kept]
    cut_between_lines = content.endswith(b"\n") and original.read_bytes().startswith(content)
    if len(kept) < len(EVENTS) and not cut_between_lines:
        assert any(isinstance(event, Noticed) for event in events)
