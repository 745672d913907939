"""The watch, without a screen and without files."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.ui.fake_view import Bench
from workbench.events.events import CaseFinished, CaseStatus, RunFinished
from workbench.files.run_options import RunOptions
from workbench.freshness.watcher import Saved
from workbench.project.watch_queue import JobQueue
from workbench.project.watching import Watching
from workbench.store.inputs import Effect
from workbench.ui.freshness.screen_watch import ScreenWatch
from workbench.ui.running.run_thread import Ended

KEY = ("order_desk/refunds.evalset.json", "late_parcel")
PROJECT = cast(Any, SimpleNamespace(load_touched=lambda workspace: None, renew=lambda: None))


async def _nothing() -> None:
    pass


async def _no_saves() -> AsyncIterator[Saved]:
    nothing: tuple[Saved, ...] = ()
    for saved in nothing:
        yield saved


def arm(bench: Bench, depth: Effect = "run") -> ScreenWatch:
    """Arm a watch with one stale case."""
    snapshot = SimpleNamespace(workspace=bench.workspace)
    watcher = SimpleNamespace(
        contents=SimpleNamespace(moment={}),
        snapshot=snapshot,
        changes=SimpleNamespace(polling="", close=lambda: bench.view.shown.append("closed")),
        saves=_no_saves,
        update_files=lambda: None,
    )
    jobs = JobQueue(depths={KEY: depth})
    watching = Watching(bench.session.store, cast(Any, watcher), jobs, RunOptions)
    watch = ScreenWatch(PROJECT, watching, bench.run, bench.watch.take, _nothing)
    bench.watch.adopt(watch)
    return watch


def finish(bench: Bench, number: int, status: CaseStatus, run_id: str) -> None:
    (ref,) = bench.started(("refunds", "late_parcel"), run_id=run_id)
    bench.tell(CaseFinished(ref, status, None, 0.1), RunFinished(1.0, interrupted=False), Ended(number))


async def test_changed_verdict_is_marked_as_soon_as_its_case_ends(bench: Bench) -> None:
    finish(bench, 1, "passed", "run-1")
    (ref, _) = bench.started(("refunds", "late_parcel"), ("refunds", "on_time"), run_id="run-2")
    verdicts = bench.session.verdicts
    bench.tell(CaseFinished(ref, "failed", None, 0.1))
    place = verdicts.place(*KEY)
    assert place is not None
    assert verdicts.flips == {place: True}
    assert verdicts.just_flipped == {place}


async def test_time_from_a_save_to_its_verdict_is_known(bench: Bench) -> None:
    watching = arm(bench).watching
    started = watching.next(busy=False)
    assert started is not None
    watching.started(started.job)
    bench.started(("refunds", "late_parcel"), run_id="run-1")
    bench.tell(RunFinished(1.0, interrupted=False))
    assert watching.latency is not None


def test_watch_requested_before_the_folder_is_read_starts_later(bench: Bench) -> None:
    bench.session.workspace = None
    bench.watch.watch()
    assert bench.watch.arm_when_read
    assert bench.view.said == ["the watch starts once the folder is read"]


async def test_save_starts_a_job_of_the_watch(bench: Bench) -> None:
    watch = arm(bench)
    watch.run_ended()
    activity = bench.session.store.activity
    assert (activity.phase, activity.watch_job) == ("starting", "run")
    bench.started(("refunds", "late_parcel"))
    activity = bench.session.store.activity
    assert (activity.phase, activity.watch_job, activity.unfinished) == ("running", "run", 1)
    watch.run_ended()
    assert len(bench.thread.built) == 1
    bench.tell(RunFinished(1.0, interrupted=False), Ended(1))
    assert bench.session.store.activity.watch_job == ""
    await bench.view.settled()


async def test_run_of_the_user_is_not_a_watch_job(bench: Bench) -> None:
    watch = arm(bench)
    bench.session.store.request_run()
    watch.run_ended()
    assert bench.thread.built == []
    bench.started(("refunds", "late_parcel"))
    assert bench.session.store.activity.watch_job == ""


def test_second_w_turns_the_watch_off(bench: Bench) -> None:
    arm(bench)
    bench.watch.watch()
    assert bench.session.watching is None
    assert "closed" in bench.view.shown
    assert bench.view.said == ["the watch is off"]
    bench.watch.watch_off()
    assert bench.view.said == ["the watch is off", "the watch is already off"]


@pytest.mark.parametrize("times", range(1, 6))
async def test_each_w_toggles_the_watch_while_it_is_prepared(bench: Bench, times: int) -> None:
    watching = arm(bench).watching
    bench.watch.disarm()
    bench.engine.watch = lambda *given: (PROJECT, watching)  # type: ignore[method-assign]
    for _ in range(times):
        bench.watch.watch()
    await bench.view.settled()
    assert (bench.session.watching is watching) == bool(times % 2)


def test_pressing_w_twice_before_the_folder_is_read_starts_no_watch(bench: Bench) -> None:
    bench.session.workspace = None
    bench.watch.watch()
    bench.watch.watch()
    assert not bench.watch.arm_when_read
    assert bench.view.said[-1] == "the watch is off"


async def test_stepping_through_changed_verdicts_wraps_around_and_opens_their_pane(bench: Bench) -> None:
    bench.watch.changed(1)
    assert bench.view.said == ["nothing has run yet"]
    finish(bench, 1, "passed", "run-1")
    finish(bench, 2, "failed", "run-2")
    bench.watch.changed(1)
    assert bench.view.rows.cursor == bench.view.rows.row_of(0, 1)
    assert bench.view.shown[-1] == "History"
    change = bench.watch.change_of(bench.session.verdicts.record(0, 1))
    assert change is not None
    assert change.before.state == "passed"


async def test_first_verdict_is_not_a_change(bench: Bench) -> None:
    finish(bench, 1, "passed", "run-1")
    assert bench.watch.change_of(bench.session.verdicts.record(0, 1)) is None
    bench.watch.changed(-1)
    assert bench.view.said == ["no verdict has changed"]
