"""Executions that a save makes obsolete, whenever the file is saved."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseName,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.project.watch_queue import Job, JobQueue
from workbench.project.watching import Watching
from workbench.store.store import Store

CASE = PlannedCase(CaseRef("desk", "f.evalset.json", "s", "c"), None, "")
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


def watched() -> Watching:
    """Return a watch whose only case is stale and running."""
    snapshot = SimpleNamespace(workspace=SimpleNamespace(evalsets=(), case_names={KEY}))
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
    again, other = replace(CASE.case, repeat=2), replace(CASE.case, eval_id="other")
    both = (CASE, PlannedCase(again, None, ""))
    watching = watched()
    store = watching.store
    watching.jobs.depths[KEY] = "decide"
    for event in (RunStarted("r", "/", "", both), *ended(CASE.case), *ended(again), RunFinished(1.0)):
        store.apply(event)
    assert watching.next(busy=False) is None, "its run was refused"
    store.apply(RunStarted("s", "/", "", (*both, PlannedCase(other, None, ""))))
    # As many executions as before, but others.
    store.apply(RepeatsDropped((again,)))
    for event in (*ended(CASE.case), *ended(other), RunFinished(1.0)):
        store.apply(event)
    watching.jobs.held.clear()
    start = watching.next(busy=False)
    assert start is not None
    assert start.job == Job("decide", (KEY,))
