"""The next job of the watch."""

from collections.abc import Collection

import pytest

from workbench.events.events import CaseName
from workbench.freshness.impact import Impact
from workbench.freshness.rereading import Snapshot
from workbench.freshness.watcher import Saved
from workbench.project.cost_estimate import Estimate, Limit
from workbench.project.watch_queue import JobQueue
from workbench.store.inputs import Change, Effect

A, B, C = (("desk/talk.evalset.json", name) for name in "abc")


def saved(
    depths: dict[CaseName, Effect], *, blocked: Collection[CaseName] = (), edited: Collection[CaseName] = ()
) -> Saved:
    found = Impact({key: (Change("agent_file", "a file", None, depth),) for key, depth in depths.items()}, set(edited))
    snapshot: Snapshot = None  # type: ignore[assignment]
    return Saved(snapshot, frozenset(), found, frozenset(blocked))


def cost(keys: Collection[CaseName], depth: Effect) -> Estimate:
    return Estimate(len(keys), 5 * len(keys))


def test_failing_and_edited_cases_come_first() -> None:
    jobs = JobQueue()
    jobs.take(saved(dict.fromkeys((A, B, C), "run"), edited=[C]))
    job = jobs.next_job(lambda key: key == B, cost)
    assert job is not None
    assert job.keys == (B, C, A)


def test_cheapest_work_comes_first() -> None:
    jobs = JobQueue()
    jobs.take(saved({A: "run", B: "decide", C: "score"}))
    order = []
    while job := jobs.next_job(lambda key: False, cost):
        order.append((job.depth, job.keys))
        jobs.started(job.keys, job.depth)
        for key in job.keys:
            jobs.decided(key)
    assert order == [("decide", (B,)), ("score", (C,)), ("run", (A,))]
    assert jobs.depths == {}


def test_save_makes_only_its_running_cases_obsolete() -> None:
    jobs = JobQueue()
    jobs.take(saved({A: "run", B: "run"}))
    jobs.started([A, B], "run")
    assert jobs.take(saved({A: "run"})) == {A}
    jobs.decided(A)  # Its verdict is obsolete.
    jobs.decided(B)
    assert jobs.depths == {A: "run"}
    jobs.ended()
    job = jobs.next_job(lambda key: False, cost)
    assert job is not None
    assert job.keys == (A,)


def test_cheaper_save_does_not_reduce_a_deeper_job() -> None:
    jobs = JobQueue()
    jobs.take(saved({A: "run"}))
    jobs.started([A], "run")
    assert jobs.take(saved({A: "decide"})) == {A}
    assert jobs.depths == {A: "run"}


def test_job_above_the_limit_waits() -> None:
    jobs = JobQueue(limit=Limit(9))
    jobs.take(saved({A: "run", B: "run"}))
    assert jobs.next_job(lambda key: False, cost) is None
    assert jobs.waiting is not None
    assert jobs.waiting.text(40) == "2 of 40 stale, about 10 calls"
    jobs.allowed = True
    assert jobs.next_job(lambda key: False, cost) is not None
    jobs.take(saved({C: "run"}))
    assert jobs.next_job(lambda key: False, cost) is None, "a new save is asked for again"


def test_job_that_only_decides_again_never_waits() -> None:
    jobs = JobQueue(limit=Limit(0, 0.0))
    jobs.take(saved({A: "decide"}))
    assert jobs.next_job(lambda key: False, cost) is not None


def test_blocked_cases_stay_stale() -> None:
    jobs = JobQueue()
    jobs.take(saved({A: "run", B: "run"}, blocked=[A]))
    job = jobs.next_job(lambda key: False, cost)
    assert job is not None
    assert job.keys == (B,)
    assert A in jobs.depths


def test_only_watched_cases_run_after_a_save() -> None:
    jobs = JobQueue(frozenset([B]))
    jobs.take(saved({A: "run", B: "run"}))
    job = jobs.next_job(lambda key: False, cost)
    assert job is not None
    assert job.keys == (B,)


def test_job_with_unknown_cost_waits() -> None:
    jobs = JobQueue(limit=Limit(1000))
    jobs.take(saved({A: "run"}))
    assert jobs.next_job(lambda key: False, lambda keys, depth: Estimate(len(keys), None)) is None
    assert jobs.waiting is not None
    assert jobs.waiting.text(3) == "1 of 3 stale, cost unknown until they have run"
    jobs.limit = Limit()
    assert jobs.next_job(lambda key: False, lambda keys, depth: Estimate(len(keys), None)) is not None


@pytest.mark.parametrize(
    ("estimate", "limit", "above"),
    [
        (Estimate(1, 9, amount=0.5), Limit(), False),
        (Estimate(1, 9, amount=0.5), Limit(money=0.5), False),
        (Estimate(1, 9, amount=0.51), Limit(money=0.5), True),
        (Estimate(1, 9, amount=0.1), Limit(8, 0.5), True),
        (Estimate(1, 9, amount=0.51), Limit(100, 0.5), True),
        (Estimate(1, 9), Limit(8, 0.5), True),
        (Estimate(1, 9), Limit(9, 0.5), False),
        (Estimate(1, 9), Limit(money=0.5), True),
        (Estimate(1, None), Limit(money=0.5), True),
        (Estimate(1, 0), Limit(money=0.0), False),
    ],
)
def test_money_limit_applies_with_and_without_known_prices(estimate: Estimate, limit: Limit, above: bool) -> None:
    assert estimate.above(limit) is above


def test_cost_is_shown_as_text() -> None:
    assert Estimate(7, 35, "about $0.06").text(40) == "7 of 40 stale, about 35 calls, about $0.06"
    assert Estimate(7, 1, "cost unknown").text(40) == "7 of 40 stale, about 1 call, cost unknown"
    assert Estimate(1000, 0).text(2000) == "1,000 of 2,000 stale"


def test_cases_on_hold_wait_for_another_save() -> None:
    jobs = JobQueue()
    jobs.take(saved({A: "run", B: "run"}))
    jobs.started([A, B], "run")
    jobs.hold([A])
    jobs.ended()
    job = jobs.next_job(lambda key: False, cost)
    assert job is not None
    assert job.keys == (B,)
    jobs.started(job.keys, job.depth)
    jobs.hold()
    jobs.ended()
    jobs.take(saved({C: "run"}))
    job = jobs.next_job(lambda key: False, cost)
    assert job is not None
    assert job.keys == (C,)
    assert set(jobs.depths) == {A, B, C}, "stale they are all the same"
    jobs.take(saved({A: "run"}))
    job = jobs.next_job(lambda key: False, cost)
    assert job is not None
    assert set(job.keys) == {A, C}
