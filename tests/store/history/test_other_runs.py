"""Runs of other programs, followed in the database."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.store.history.other import Other, apart
from workbench.events.events import CaseRef, RepeatsDropped, RunFinished
from workbench.store.database.database import Database, run_path
from workbench.store.history.latest import OtherRun, OtherRuns
from workbench.store.history.retention import delete_runs
from workbench.store.history.run_list import list_runs
from workbench.store.history.run_writer import RunWriter

CASES = [CaseRef("desk", "desk/a.evalset.json", "a", name) for name in ("one", "two", "three")]


def names(run: OtherRun) -> list[str]:
    return [ref.eval_id for ref in run.latest.refs]


@pytest.fixture
def runs(tmp_path: Path) -> OtherRuns:
    found = OtherRuns(tmp_path, lambda run_id: run_id.endswith("-own"))
    found.begin()
    return found


def test_verdicts_appear_while_another_program_runs(tmp_path: Path, runs: OtherRuns) -> None:
    assert runs.look() == []
    assert not runs.active
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    (begun,) = runs.look()
    assert (begun.state, begun.done, begun.total, names(begun)) == ("running", 0, 3, [])
    other.end_case(1, "failed")
    (going_on,) = runs.look()
    assert (going_on.state, going_on.done, names(going_on)) == ("running", 1, ["two"])
    assert runs.look() == []
    assert runs.active
    other.end_case(0)
    other.end_case(2)
    other.finish()
    (ended,) = runs.look()
    assert (ended.state, ended.done, names(ended)) == ("ended", 3, ["one", "two", "three"])
    assert runs.look() == []
    assert not runs.active


def test_repeats_of_a_case_are_shown_together(tmp_path: Path, runs: OtherRuns) -> None:
    repeats = [CaseRef("desk", "desk/a.evalset.json", "a", "one", number) for number in (1, 2)]
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", repeats)
    other.start()
    other.end_case(0)
    assert names(runs.look()[0]) == []
    other.end_case(1, "failed")
    assert names(runs.look()[0]) == ["one", "one"]


def test_own_and_earlier_runs_are_not_reported_as_new(tmp_path: Path) -> None:
    earlier = Other(tmp_path, "2026-11-20T10-30-00-aaaa", CASES)
    earlier.start()
    earlier.finish()
    runs = OtherRuns(tmp_path, lambda run_id: run_id.endswith("-own"))
    runs.begin()
    own = Other(tmp_path, "2026-11-21T10-30-00-own", CASES)
    own.start()
    own.finish()
    assert runs.look() == []
    assert not runs.active


def test_run_in_progress_at_the_start_is_followed(tmp_path: Path) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    runs = OtherRuns(tmp_path, lambda run_id: False)
    runs.begin()
    assert runs.active
    other.finish()
    assert [run.state for run in runs.look()] == ["ended"]


def test_killed_run_is_reported_with_its_verdicts(tmp_path: Path, runs: OtherRuns) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    other.end_case(0)
    runs.look()
    other.writer.release()
    (stopped,) = runs.look()
    assert (stopped.state, stopped.done, names(stopped)) == ("stopped", 1, ["one"])
    assert not runs.active


def test_resumed_run_is_followed_again(tmp_path: Path, runs: OtherRuns) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    other.end_case(0)
    other.put(RunFinished(1.0, interrupted=True))
    other.writer.close()
    assert [run.state for run in runs.look()] == ["ended"]
    again = RunWriter.reopen(run_path(tmp_path, other.run_id))
    assert again is not None
    other.writer = apart(again, tmp_path)
    assert runs.look() == []
    other.end_case(1)
    assert [run.state for run in runs.look()] == ["running"]
    other.finish()
    (ended,) = runs.look()
    assert (ended.state, names(ended)) == ("ended", ["one", "two"])
    assert runs.look() == []


def test_deleted_run_is_no_longer_followed(tmp_path: Path, runs: OtherRuns) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    assert [run.state for run in runs.look()] == ["running"]
    other.writer.release()
    delete_runs(tmp_path, [other.run_id])
    assert runs.look() == []
    assert not runs.active


def failing(call: int) -> Callable[[Database, Any], Any]:
    """Return a `Database.read` that fails at one call, counted from 0."""
    read, numbers = Database.read, itertools.count()

    def fail(self: Database, ask: Any) -> Any:
        if next(numbers) == call:
            raise OSError(5, "the disk did not answer")
        return read(self, ask)

    return fail


@pytest.mark.parametrize("call", [0, 1])
def test_verdicts_that_could_not_be_read_appear_at_the_next_look(
    tmp_path: Path, runs: OtherRuns, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    runs.look()
    other.end_case(1, "failed")
    monkeypatch.setattr(Database, "read", failing(call))
    assert runs.look() == []
    assert runs.active
    (going_on,) = runs.look()
    assert (going_on.state, going_on.done, names(going_on)) == ("running", 1, ["two"])


def test_new_run_is_found_after_a_failed_look(tmp_path: Path, runs: OtherRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    other.finish()
    monkeypatch.setattr(Database, "read", failing(0))
    assert runs.look() == []
    assert [run.state for run in runs.look()] == ["ended"]


def test_earlier_runs_are_not_new_if_they_could_not_be_read_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = Other(tmp_path, "2026-11-20T10-30-00-aaaa", CASES)
    earlier.start()
    earlier.finish()
    monkeypatch.setattr(Database, "read", failing(0))
    runs = OtherRuns(tmp_path, lambda run_id: False)
    runs.begin()
    assert runs.look() == []
    assert runs.look() == []
    later = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    later.start()
    assert [run.run_id for run in runs.look()] == [later.run_id]


def test_no_run_is_read_while_nothing_changes(tmp_path: Path, runs: OtherRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    other.start()
    other.finish()
    runs.look()
    monkeypatch.setattr(OtherRuns, "_runs", None)
    assert runs.look() == []


def test_run_that_is_only_opened_to_be_resumed_is_not_reported_as_new(tmp_path: Path) -> None:
    earlier = Other(tmp_path, "2026-11-20T10-30-00-aaaa", CASES)
    earlier.start()
    earlier.end_case(0)
    earlier.finish()
    runs = OtherRuns(tmp_path, lambda run_id: False)
    runs.begin()
    journal = RunWriter.reopen(run_path(tmp_path, earlier.run_id))
    assert journal is not None
    assert runs.look() == []
    journal.release()
    assert runs.look() == []
    assert not runs.active
    list_runs(tmp_path)
    assert runs.look() == []
    runs = OtherRuns(tmp_path, lambda run_id: False)
    runs.begin()
    assert runs.look() == []


def test_dropped_repeats_of_another_run_neither_count_nor_delay_the_verdict(tmp_path: Path, runs: OtherRuns) -> None:
    repeats = [
        CaseRef("desk", "desk/a.evalset.json", "a", name, number) for name in ("one", "two") for number in (1, 2)
    ]
    other = Other(tmp_path, "2026-11-21T10-30-00-aaaa", repeats)
    other.start()
    other.end_case(0)
    assert [(run.done, run.total, names(run)) for run in runs.look()] == [(1, 4, [])]
    other.put(RepeatsDropped((repeats[1],)))
    assert [(run.done, run.total, names(run)) for run in runs.look()] == [(1, 3, ["one"])]
    other.end_case(2)
    other.end_case(3)
    assert [(run.done, run.total, names(run)) for run in runs.look()] == [(3, 3, ["two", "two"])]


def test_run_whose_database_was_removed_changes_no_run_in_the_new_one(tmp_path: Path) -> None:
    old = Other(tmp_path, "2026-11-21T10-30-00-aaaa", CASES)
    old.start()
    for file in tmp_path.glob("runs.db*"):
        file.unlink()
    new = Other(tmp_path, "2026-11-21T11-30-00-bbbb", CASES)
    new.start()
    with pytest.raises(OSError, match="deleted from the database"):
        old.end_case(0, "failed")
    old.writer.close()
    assert RunWriter.reopen(run_path(tmp_path, new.run_id)) is None, "it is still being written"
    for number in range(3):
        new.end_case(number)
    new.finish()
    assert [(run.run_id, run.counts["passed"]) for run in list_runs(tmp_path).runs] == [(new.run_id, 3)]
