"""Executions that a save makes obsolete, whenever the file is saved."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseName,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    MetricResult,
    MetricScored,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files.run_options import UsageFaultError
from workbench.project.watch_queue import Job, JobQueue
from workbench.project.watching import Watching
from workbench.store.details import known_details
from workbench.store.execution import CaseRecord
from workbench.store.store import Store

CASE = PlannedCase(CaseRef("desk", "f.evalset.json", "s", "c"), None, "")
OTHER = PlannedCase(replace(CASE.case, eval_id="other"), None, "")
KEY = ("f.evalset.json", "c")


class SavedNow(JobQueue):
    """A queue of jobs in which each save affects the only case."""

    def take(self, saved: Any) -> set[CaseName]:
        return {KEY} if self.under_way.pop(KEY, None) else set()


def test_save_waits_until_the_cases_of_a_started_run_are_known() -> None:
    store = Store()
    watcher = SimpleNamespace(contents=SimpleNamespace(moment={}), snapshot=None, ignored=set())
    saved = cast(Any, SimpleNamespace(changed=frozenset(), impact=SimpleNamespace(idle=set(), depths={})))
    watching = Watching(store, cast(Any, watcher), SavedNow())
    assert watching.announced.is_set()
    watching.started(Job("run", (KEY,)))
    assert not watching.announced.is_set()
    assert watching.take(saved) == [], "too early: nothing could be cancelled"
    watching.started(Job("run", (KEY,)))
    event = watching.admit(RunStarted("r", "/", "", (CASE,)))
    assert event is not None
    store.apply(event)
    assert watching.announced.is_set()
    assert watching.take(saved) == [CASE.case]
    assert watching.superseded
    ended = watching.admit(RunFinished(1.0, interrupted=True))
    assert isinstance(ended, RunFinished)
    assert not ended.interrupted, "by nobody"


def test_save_during_a_run_of_the_user_runs_the_cases_that_it_had_not_reached() -> None:
    watcher = SimpleNamespace(contents=SimpleNamespace(moment={}), snapshot=None, ignored=set())
    saved = cast(Any, SimpleNamespace(changed=frozenset(), impact=SimpleNamespace(idle=set(), depths={})))
    watching = Watching(Store(), cast(Any, watcher), SavedNow())
    done = PlannedCase(replace(CASE.case, eval_id="done"), None, "")
    for event in (RunStarted("r", "/", "", (done, CASE, OTHER)), *ended(done.case)):
        admitted = watching.admit(event)
        assert admitted is not None
        watching.store.apply(admitted)
    assert watching.take(saved) == [CASE.case]
    watching.admit(RunFinished(1.0, interrupted=True))
    assert watching.jobs.depths == {OTHER.case.name: "run"}


def watched() -> Watching:
    """Return a watch whose only case is stale and running."""
    snapshot = SimpleNamespace(workspace=SimpleNamespace(root=Path("/"), agents=(), evalsets=(), case_names={KEY}))
    watcher = SimpleNamespace(contents=SimpleNamespace(moment={}), snapshot=snapshot)
    watching = Watching(Store(), cast(Any, watcher), JobQueue(depths={KEY: "run"}))
    start = watching.next(busy=False)
    assert start is not None
    watching.started(start.job)
    return watching


def ended(ref: CaseRef, status: CaseStatus = "passed", error: CaseError | None = None) -> tuple[Event, ...]:
    """Return the events of a case with one turn."""
    started = CaseStarted(ref, 0.0, ({"user_content": {}},), {})
    return (started, TurnStarted(ref, 0, {}), TurnFinished(ref, 0, {}), CaseFinished(ref, status, error, 1.0))


def test_cancelled_cases_do_not_start_again_at_once() -> None:
    watching = watched()
    watching.admit(RunStarted("r", "/", "", (CASE,)))
    watching.admit(CaseFinished(CASE.case, "error", CaseError("cancelled", "cancelled"), 1.0))
    watching.admit(RunFinished(1.0))
    assert watching.next(busy=False) is None
    assert set(watching.jobs.depths) == {KEY}


def test_stopped_run_does_not_start_again_at_once() -> None:
    watching = watched()
    watching.admit(RunStarted("r", "/", "", (CASE,)))
    watching.admit(RunFinished(1.0, interrupted=True))
    assert watching.next(busy=False) is None
    assert set(watching.jobs.depths) == {KEY}


def test_refused_run_does_not_start_again_at_once() -> None:
    watching = watched()
    assert watching.next(busy=False) is None
    assert watching.announced.is_set()
    assert set(watching.jobs.depths) == {KEY}


def test_store_keeps_the_job_of_a_watch_until_it_is_refused() -> None:
    watching = watched()
    assert watching.store.activity.watch_job == "run"
    watching.next(busy=False)
    assert not watching.store.activity.busy


def test_case_whose_repeats_were_dropped_can_be_scored_again() -> None:
    again = replace(CASE.case, repeat=2)
    both = (CASE, PlannedCase(again, None, ""))
    watching = watched()
    store = watching.store
    watching.jobs.depths[KEY] = "decide"
    for event in (RunStarted("r", "/", "", both), *ended(CASE.case), *ended(again), RunFinished(1.0)):
        store.apply(event)
    assert watching.next(busy=False) is None, "its run was refused"
    store.apply(RunStarted("s", "/", "", (*both, OTHER)))
    # As many executions as before, but others.
    store.apply(RepeatsDropped((again,)))
    for event in (*ended(CASE.case), *ended(OTHER.case), RunFinished(1.0)):
        store.apply(event)
    watching.jobs.held.clear()
    start = watching.next(busy=False)
    assert start is not None
    assert start.job == Job("decide", (KEY,))


def watched_scoring(*events: Event) -> Watching:
    """Return a watch whose two cases ended with these events. A saved threshold has made both stale."""
    watching = watched()
    watching.next(busy=False)
    watching.jobs.held.clear()
    watching.jobs.depths |= {KEY: "decide", OTHER.case.name: "decide"}
    for event in (RunStarted("r", "/", "", (CASE, OTHER)), *events, RunFinished(1.0)):
        watching.store.apply(event)
    return watching


def test_stale_cases_are_found_without_reading_their_conversations(tmp_path: Path) -> None:
    watching = watched_scoring(*ended(CASE.case), *ended(OTHER.case))
    records = watching.store.records
    for ref, record in records.items():
        assert isinstance(record, CaseRecord)
        records[ref] = record.without_details(tmp_path / "run", 1)
    start = watching.next(busy=False)
    assert start is not None
    assert start.job.keys == (KEY, OTHER.case.name)
    assert [known_details(record) for record in records.values()] == [None, None]


@pytest.mark.parametrize("kind", ["agent_raised", "quota", "not started"])
def test_case_without_a_conversation_is_not_scored(kind: Any) -> None:
    events: tuple[Event, ...] = ()
    if kind != "not started":
        events = (CaseStarted(OTHER.case, 0.0, ({},), {}), CaseFinished(OTHER.case, "error", CaseError(kind, ""), 1.0))
    watching = watched_scoring(*ended(CASE.case), *events)
    start = watching.next(busy=False)
    assert start is not None
    assert start.job.keys == (KEY,)
    assert set(watching.jobs.depths) == {KEY}


def test_case_whose_judge_had_no_quota_is_scored_again() -> None:
    started, *turns, _ = ended(OTHER.case)
    score = MetricScored(OTHER.case, MetricResult("judged", "error"), ())
    end = CaseFinished(OTHER.case, "error", CaseError("quota", "429"), 1.0)
    start = watched_scoring(*ended(CASE.case), started, *turns, score, end).next(busy=False)
    assert start is not None
    assert set(start.job.keys) == {KEY, OTHER.case.name}


def test_case_cancelled_in_its_conversation_is_not_scored() -> None:
    cancelled = CaseFinished(OTHER.case, "cancelled", CaseError("cancelled", "cancelled"), 1.0)
    watching = watched_scoring(*ended(CASE.case), CaseStarted(OTHER.case, 0.0, ({},), {}), cancelled)
    start = watching.next(busy=False)
    assert start is not None
    watching.started(start.job)
    plan = watching.plan(start.job)
    assert [entry.ref for entry in plan.entries] == [CASE.case]
    watching.admit(RunStarted("s", "/", "", (CASE,), scored_from="r"))
    assert set(watching.jobs.depths) == {KEY}
    watching.admit(RunFinished(1.0))
    with pytest.raises(UsageFaultError, match="no stale case has a complete transcript"):
        watching.plan(Job("decide", (OTHER.case.name,)))


def test_repeats_that_only_an_older_run_had_are_not_scored_with_the_newer_run() -> None:
    repeats = tuple(PlannedCase(replace(CASE.case, repeat=number), None, "") for number in (2, 3))
    watching = watched()
    watching.next(busy=False)
    watching.jobs.held.clear()
    watching.jobs.depths[KEY] = "decide"
    every = [event for one in (CASE, *repeats) for event in ended(one.case)]
    for event in (RunStarted("old", "/", "", (CASE, *repeats)), *every, RunFinished(1.0)):
        watching.store.apply(event)
    for event in (RunStarted("new", "/", "", (CASE,)), *ended(CASE.case), RunFinished(1.0)):
        watching.store.apply(event)
    start = watching.next(busy=False)
    assert start is not None
    assert [entry.ref.repeat for entry in watching.plan(start.job).entries] == [1]
