"""The list of runs: fast with its index, complete without it, and robust against damage."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.stores import ANSWER_PASSED, FAILED, PASSED, TRAJECTORY_FAILED, case_events
from workbench.cli import history_command
from workbench.config import Limits
from workbench.dependencies.record import digest
from workbench.engine.run.event_lines import as_line
from workbench.events import Event, PlannedCase, RunFinished, RunStarted
from workbench.history import run_list
from workbench.history.journal import Journal
from workbench.history.journal_lock import lock_journal
from workbench.history.latest import latest_runs
from workbench.history.listed_runs import list_all_runs, newest_runs
from workbench.history.objects import drop_objects, keep_objects, read_object
from workbench.history.retention import deletable_runs, delete_runs, pin, tidy, unpin
from workbench.history.run_list import list_runs, load_summary, summarize, summary_for_opening
from workbench.history.run_names import baseline, find_stored_run


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
    journal = Journal.open(state, run_id)
    for event in [started, *(cases if events is None else events), *([RunFinished(4.2)] if ended else [])]:
        journal.write([as_line(event)], sync=False)
    journal.close()
    assert journal.path is not None
    return journal.path


def test_runs_are_listed_newest_first_with_counts(tmp_path: Path) -> None:
    for day in ("2026-11-20", "2026-11-22", "2026-11-21"):
        keep_run(tmp_path, f"{day}T10-00-00-aaaa")
    found = list_runs(tmp_path)
    assert [run["started"][:10] for run in found.runs] == ["2026-11-22", "2026-11-21", "2026-11-20"]
    assert found.runs[0]["counts"] == {"passed": 1, "failed": 1, "error": 0, "not_evaluated": 0, "cancelled": 0}
    assert found.runs[0]["agents"] == ["desk"]
    assert not found.trouble


def test_run_from_the_future_is_not_the_newest(tmp_path: Path) -> None:
    wrong, right = "9026-11-20T10-00-00-aaaa", "2026-11-20T10-00-00-bbbb"
    for run_id in (wrong, right):
        keep_run(tmp_path, run_id)
    assert [run["run_id"] for run in list_runs(tmp_path).runs] == [right, wrong]
    assert [run.run_id for run in newest_runs(tmp_path)] == [right, wrong]
    assert [run.run_id for run in list_all_runs(tmp_path, tmp_path, ())[0]] == [right, wrong]
    assert find_stored_run("last", tmp_path).parent.name == right
    (latest,) = latest_runs(tmp_path, {PASSED.evalset_file: [PASSED.eval_id]})
    assert latest.summary.run_id == right
    assert deletable_runs(tmp_path, 1) == [wrong]


def test_indexed_runs_open_no_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    monkeypatch.setattr(run_list, "load_summary", None)
    assert len(list_runs(tmp_path).runs) == 1


@pytest.mark.parametrize("left", [None, 0, 40, 400])
def test_journal_with_changed_size_is_read_again(tmp_path: Path, left: int | None) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    assert [run.run_id for run in newest_runs(tmp_path)] == ["2026-11-20T10-00-00-aaaa"]
    if left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:left])
    found = list_runs(tmp_path)
    assert newest_runs(tmp_path) == []
    assert bool(found.trouble) == (left is not None), "what is deleted is no run"
    assert not any(run["counts"]["passed"] for run in found.runs)


def test_run_deleted_by_another_workbench_is_neither_listed_nor_baseline(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    with pytest.raises(FileNotFoundError):
        pin(tmp_path, "2026-11-21T10-00-00-bbbb")
    assert baseline(tmp_path) is None
    assert delete_runs(tmp_path, ["2026-11-21T10-00-00-bbbb"]) == []


def test_deleting_a_linked_run_deletes_only_the_link(tmp_path: Path) -> None:
    journal = keep_run(tmp_path / "elsewhere", "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb")
    link = tmp_path / "runs/2026-11-20T10-00-00-aaaa"
    link.symlink_to(journal.parent)
    assert delete_runs(tmp_path, [link.name]) == [link.name]
    assert not link.is_symlink()
    assert journal.is_file()


def test_damaged_baseline_file_pins_nothing(tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    for content in (b"", b"x" * 5000, b"../runs", b"\xff\x00"):
        (tmp_path / "baseline").write_bytes(content)
        assert baseline(tmp_path) is None


@pytest.mark.parametrize("lost", ["index.jsonl", "2026-11-20T10-00-00-aaaa/summary.json"])
def test_lost_or_damaged_index_and_summary_are_rebuilt(tmp_path: Path, lost: str) -> None:
    journal = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    before, summary = list_runs(tmp_path).runs, load_summary(tmp_path, journal.parent.name)
    file = tmp_path / "runs" / lost
    for content in (None, b"", b"\x00" * 40, file.read_bytes()[:-9]):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        assert list_runs(tmp_path).runs == before
        assert load_summary(tmp_path, journal.parent.name) == summary


def test_unfinished_cases_of_a_killed_run_count_as_cancelled(tmp_path: Path) -> None:
    events = case_events(PASSED, "passed", [ANSWER_PASSED])
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", events, ended=False)
    (path.parent / "summary.json").unlink()
    (path.parents[1] / "index.jsonl").unlink()
    (run,) = list_runs(tmp_path).runs
    assert run["seconds"] is None
    assert run["counts"] == {"passed": 1, "failed": 0, "error": 0, "not_evaluated": 0, "cancelled": 1}
    assert run["no_verdict"] == 1
    assert "1 passed, 1 without a verdict (did not end" in history_command._line(run, is_baseline=False)


def test_summary_of_a_killed_run_is_kept_unless_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", case_events(PASSED, "passed", [ANSWER_PASSED]), ended=False)
    summary = path.parent / "summary.json"
    summary.unlink()
    going_on = Journal.reopen(path)
    found = load_summary(tmp_path, path.parent.name)
    assert not summary.exists(), "the run will write it"
    assert going_on is not None
    going_on.release()
    assert summary_for_opening(tmp_path, path.parent.name) == found
    monkeypatch.setattr("workbench.history.run_list.read_lines", None)
    assert summary_for_opening(tmp_path, path.parent.name) == found, "a large journal is not parsed at each start"


def test_run_of_a_later_version_is_named_as_such(tmp_path: Path) -> None:
    from workbench.agents.worker.checked import checked_line

    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb")
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    path.write_bytes(checked_line('{"schema": "agent-workbench/journal/9", "run_id": "x"}'))
    (path.parents[1] / "index.jsonl").unlink()
    found = list_runs(tmp_path)
    assert [run["run_id"] for run in found.runs] == ["2026-11-21T10-00-00-bbbb"]
    assert "journal/9" in found.trouble[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damaged_byte_is_named_and_the_rest_is_read(tmp_path: Path, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa")
    whole, _ = summarize(path)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        del content[place:]
    path.write_bytes(content)
    (path.parent / "summary.json").unlink()
    if not content.startswith(b'{"crc32": "') and content.count(b"\n") < 2:
        with pytest.raises(ValueError, match="is not a journal"):
            summarize(path)
        return
    summary, trouble = summarize(path)
    lines = len(path.read_bytes().splitlines())
    assert trouble or lines < 14
    for ref, row in summary.rows.items():
        for name, metric in row["metrics"].items():
            assert whole.rows[ref]["metrics"][name] == metric
    list_runs(tmp_path)


def test_deleting_runs_spares_the_baseline(tmp_path: Path) -> None:
    ids = [f"2026-11-1{day}T10-00-00-aaaa" for day in range(5)]
    for run_id in ids:
        keep_run(tmp_path, run_id)
    pin(tmp_path, ids[0])
    assert baseline(tmp_path) == ids[0]
    assert deletable_runs(tmp_path, 2) == [ids[2], ids[1]]
    assert delete_runs(tmp_path, [ids[1], "no-such-run"]) == [ids[1]]
    assert [run["run_id"] for run in list_runs(tmp_path).runs] == [ids[4], ids[3], ids[2], ids[0]]
    unpin(tmp_path)
    assert baseline(tmp_path) is None
    pin(tmp_path, ids[2])
    delete_runs(tmp_path, [ids[2]])
    assert baseline(tmp_path) is None


def test_run_in_progress_stays_and_killed_run_can_be_deleted(tmp_path: Path) -> None:
    path = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", [], ended=False)
    writer = Journal.reopen(path)
    assert writer is not None
    assert Journal.reopen(path) is None
    assert deletable_runs(tmp_path, 0) == []
    assert delete_runs(tmp_path, [path.parent.name]) == []
    writer.release()
    assert deletable_runs(tmp_path, 0) == [path.parent.name]


def test_oldest_runs_beyond_a_limit_are_deleted_except_protected_ones(tmp_path: Path) -> None:
    ids = [f"2020-11-{day:02}T10-00-00-aaaa" for day in range(1, 31)]
    for run_id in ids:
        keep_run(tmp_path, run_id)
    keep_run(tmp_path, "2020-12-01T10-00-00-bbbb", scored_from=ids[2])
    pin(tmp_path, ids[0])
    assert tidy(tmp_path, Limits(runs=40, megabytes=10)) == []
    assert tidy(tmp_path, Limits(runs=30)) == [], "a little more than the limit is borne"
    with (tmp_path / "tidying").open("wb") as other:
        lock_journal(other.fileno())
        assert tidy(tmp_path, Limits(runs=20)) == [], "another workbench is at it"
    assert tidy(tmp_path, Limits(runs=20)) == [ids[10], *ids[9:2:-1], ids[1]]
    left = [run["run_id"] for run in list_runs(tmp_path).runs]
    assert left == ["2020-12-01T10-00-00-bbbb", *reversed(ids[11:]), ids[2], ids[0]]
    (tmp_path / "runs" / ids[12] / "large").write_bytes(bytes(2_000_000))
    assert tidy(tmp_path, Limits(runs=0, megabytes=1)) == [ids[12], ids[11]]
    assert len(tidy(tmp_path, Limits(runs=0, megabytes=0, days=1))) == len(left) - 2 - 3, (
        "all but newest, named, pinned"
    )


def test_file_contents_are_deleted_with_the_last_run_that_used_them(tmp_path: Path) -> None:
    keep_objects(tmp_path, {"ab" * 16: b"used", "cd" * 16: b"not", "ef" * 16: b"new", "../../evil": b"no"})
    for name in ("ab", "cd"):
        os.utime(tmp_path / "objects" / name / (name * 15), (0, 0))
    assert drop_objects(tmp_path, {"ab" * 16}) == 1
    assert read_object(tmp_path, "ab" * 16) == b"used"
    assert read_object(tmp_path, "cd" * 16) is None
    assert read_object(tmp_path, "ef" * 16) == b"new"
    assert not (tmp_path.parent / "evil").exists()


def test_digest_does_not_depend_on_key_order() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})
