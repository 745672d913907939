"""The newest verdict of a case is the one that was made last, also if a resumed run made it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.stores import ANSWER_PASSED, FAILED, FILE, PASSED, TRAJECTORY_FAILED, case_events
from tests.store.history.test_stored_runs import keep_run
from tests.stored import sql
from workbench.events.event_json import as_line
from workbench.events.events import CaseStatus, Event, RunFinished, RunResumed
from workbench.files.settings import Limits
from workbench.store.history.latest import latest_runs, past_runs
from workbench.store.history.retention import deletable_runs, pin, tidy
from workbench.store.history.run_writer import RunWriter

CASES = {FILE: [PASSED.eval_id, FAILED.eval_id]}
BOTH_PASS = [*case_events(PASSED, "passed", [ANSWER_PASSED]), *case_events(FAILED, "passed", [ANSWER_PASSED])]
FAILS = case_events(FAILED, "failed", [TRAJECTORY_FAILED])
INTERRUPTED, ALONE, LATER = (f"2026-11-{day}T10-00-00-aaaa" for day in (20, 21, 23))


def resume(path: Path, *events: Event, day: int = 22) -> None:
    writer = RunWriter.reopen(path)
    assert writer is not None
    writer.write(map(as_line, [RunResumed(f"2026-11-{day}T09:00:00Z"), *events]), sync=False)
    writer.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Store an interrupted run that decided PASSED only, then a run of both cases, and resume the first run."""
    path = keep_run(tmp_path, INTERRUPTED, case_events(PASSED, "failed", [TRAJECTORY_FAILED]), ended=False)
    keep_run(tmp_path, ALONE, BOTH_PASS)
    resume(path, *FAILS, RunFinished(1.0))
    return path


def newest(state: Path) -> dict[str, tuple[str, CaseStatus]]:
    return {one.ref.eval_id: (one.run_id, one.status) for run in latest_runs(state, CASES) for one in run.executions}


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "UPDATE run SET listed = NULL, crc = 0 WHERE id = 1",
        "UPDATE run SET listed = replace(listed, '2026-11-22', '2026-11-19') WHERE id = 1",
        "UPDATE run SET listed = NULL, crc = 0, facts_crc = 1 WHERE id = 1",
        "UPDATE execution SET more = '{}' WHERE run = 1",
    ],
)
def test_verdict_of_a_resumed_run_replaces_one_made_before_the_resume(path: Path, tmp_path: Path, damage: str) -> None:
    if damage:
        sql(tmp_path, damage)
    expected = {FAILED.eval_id: (INTERRUPTED, "failed"), PASSED.eval_id: (ALONE, "passed")}
    assert newest(tmp_path) == expected
    assert newest(tmp_path) == expected, "nor once the damage is repaired"


def test_case_decided_after_the_resume_counts_while_the_run_goes_on(tmp_path: Path) -> None:
    path = keep_run(tmp_path, INTERRUPTED, [], ended=False)
    keep_run(tmp_path, ALONE, BOTH_PASS)
    resume(path, *FAILS)
    assert newest(tmp_path) == {FAILED.eval_id: (INTERRUPTED, "failed"), PASSED.eval_id: (ALONE, "passed")}
    resume(path, *case_events(PASSED, "failed", [TRAJECTORY_FAILED]), RunFinished(1.0), day=23)
    assert {run_id for run_id, _ in newest(tmp_path).values()} == {INTERRUPTED}, "a run can be resumed twice"


def test_run_that_began_after_the_resume_is_newer(path: Path, tmp_path: Path) -> None:
    keep_run(tmp_path, LATER, BOTH_PASS)
    assert newest(tmp_path) == {ref.eval_id: (LATER, "passed") for ref in (FAILED, PASSED)}
    assert [run.run_id for run in past_runs(tmp_path, FAILED, 20)] == [LATER, INTERRUPTED, ALONE]


def test_past_runs_of_a_case_are_in_the_order_of_its_verdicts(path: Path, tmp_path: Path) -> None:
    assert [run.run_id for run in past_runs(tmp_path, FAILED, 20)] == [INTERRUPTED, ALONE]
    assert [run.run_id for run in past_runs(tmp_path, PASSED, 20)] == [ALONE, INTERRUPTED]


def test_previous_verdict_of_a_resumed_run_is_the_one_made_before_the_resume(path: Path, tmp_path: Path) -> None:
    (before,) = latest_runs(tmp_path, {FILE: [FAILED.eval_id]}, before=INTERRUPTED)
    assert before.summary.run_id == ALONE


def test_resumed_run_is_one_entry_although_other_runs_lie_between(path: Path, tmp_path: Path) -> None:
    keep_run(tmp_path, "2026-11-21T10-00-00-bbbb", [], ended=False)
    sql(tmp_path, f"DELETE FROM run WHERE run_id = '{ALONE}'")
    (run,) = latest_runs(tmp_path, CASES)
    assert sorted(run.refs) == sorted((PASSED, FAILED))


def test_run_that_was_resumed_last_is_deleted_last(path: Path, tmp_path: Path) -> None:
    assert deletable_runs(tmp_path, 1) == [ALONE]
    assert tidy(tmp_path, Limits(runs=1)) == [ALONE]
    assert deletable_runs(tmp_path, 0) == [INTERRUPTED]


def test_limit_in_days_counts_from_the_last_resume(tmp_path: Path) -> None:
    old, resumed, newest_run = (f"2020-11-{day}T10-00-00-aaaa" for day in (20, 21, 22))
    keep_run(tmp_path, old)
    path = keep_run(tmp_path, resumed, [], ended=False)
    keep_run(tmp_path, newest_run)
    writer = RunWriter.reopen(path)
    assert writer is not None
    writer.write(map(as_line, [RunResumed(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"), *FAILS]), sync=False)
    writer.close()
    assert tidy(tmp_path, Limits(runs=0, megabytes=0, days=1)) == [newest_run, old]


def test_run_scored_by_a_kept_run_stays_although_it_was_resumed_afterwards(tmp_path: Path) -> None:
    path = keep_run(tmp_path, INTERRUPTED, [], ended=False)
    keep_run(tmp_path, ALONE, BOTH_PASS, scored_from=INTERRUPTED)
    resume(path, *FAILS, RunFinished(1.0))
    keep_run(tmp_path, LATER, BOTH_PASS)
    pin(tmp_path, ALONE)
    assert deletable_runs(tmp_path, 1) == []
