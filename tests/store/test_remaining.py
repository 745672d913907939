"""The remaining time of a run, with simulated clocks and runs."""

import heapq
import itertools

import pytest

from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    PlannedCase,
    RepeatsDropped,
    RunResumed,
    RunStarted,
)
from workbench.store.rates import RemainingTime, latency_words, left_words


class Simulated:
    """A run of cases with given durations, `at_once` of them at the same time."""

    def __init__(self, durations: list[float], at_once: int, start: float = 0.0) -> None:
        self.now = 0.0
        self.refs = [CaseRef("a", "a.evalset.json", "a", str(number)) for number in range(len(durations))]
        self.remaining = RemainingTime(lambda: self.now)
        planned = tuple(PlannedCase(ref, None, "") for ref in self.refs)
        self.remaining.apply(RunStarted("run", "", "", planned))
        self._durations, self._at_once, self._start = durations, at_once, start

    def estimates(self) -> list[tuple[float, float]]:
        """Run, and return the estimated and the true remaining time after each end of a case."""
        todo = iter(zip(self.refs, self._durations, strict=True))
        running: list[tuple[float, CaseRef, float]] = []
        found: list[tuple[float, float | None]] = []
        self.now = self._start
        for ref, seconds in itertools.islice(todo, self._at_once):
            self._begin(running, ref, seconds)
        while running:
            self.now, ref, seconds = heapq.heappop(running)
            self.remaining.apply(CaseFinished(ref, "passed", None, seconds))
            for ref, seconds in itertools.islice(todo, 1):
                self._begin(running, ref, seconds)
            found.append((self.now, self.remaining.seconds()))
        return [(left, self.now - at) for at, left in found if left is not None]

    def _begin(self, running: list[tuple[float, CaseRef, float]], ref: CaseRef, seconds: float) -> None:
        self.remaining.apply(CaseStarted(ref, self.now, None, {}))
        heapq.heappush(running, (self.now + seconds, ref, seconds))


@pytest.mark.parametrize("at_once", [1, 4, 8])
@pytest.mark.parametrize("start", [0.0, 30.0])
def test_estimate_of_equal_cases_is_near_the_truth_from_the_third_on(at_once: int, start: float) -> None:
    found = Simulated([10.0] * 40, at_once, start).estimates()
    assert len(found) == 37
    for left, truth in found:
        assert left == pytest.approx(truth, rel=0.4, abs=11)
    halfway = found[15]
    assert halfway[0] == pytest.approx(halfway[1], rel=0.2)


def test_estimate_of_different_cases_is_near_the_truth() -> None:
    durations = [2.0, 30.0, 5.0, 8.0, 12.0, 3.0] * 20
    found = Simulated(durations, 8).estimates()
    for left, truth in found[5:90]:
        assert truth / 2 < left < truth * 2


def test_nothing_is_estimated_before_three_cases_have_ended() -> None:
    run = Simulated([1.0] * 5, 1)
    for ref in run.refs[:2]:
        run.remaining.apply(CaseStarted(ref, run.now, None, {}))
        run.now += 1
        run.remaining.apply(CaseFinished(ref, "passed", None, 1.0))
    assert run.remaining.seconds() is None


def test_stored_results_of_a_resumed_run_do_not_count() -> None:
    run = Simulated([10.0] * 10, 1)
    run.remaining.apply(RunResumed(""))
    for ref in run.refs[:5]:
        run.remaining.apply(CaseStarted(ref, 100.0, None, {}))
        run.remaining.apply(CaseFinished(ref, "passed", None, 50.0))
    assert run.remaining.seconds() is None
    for ref in run.refs[5:8]:
        run.remaining.apply(CaseStarted(ref, run.now, None, {}))
        run.now += 10
        run.remaining.apply(CaseFinished(ref, "passed", None, 10.0))
    assert run.remaining.seconds() == pytest.approx(20)
    run.remaining.apply(RepeatsDropped((run.refs[9],)))
    assert run.remaining.seconds() == pytest.approx(10)


def test_remaining_time_is_rounded_up() -> None:
    said = {seconds: left_words(seconds)[0] for seconds in (2.0, 4.0, 31.0, 89.0, 91.0, 3599.0, 3601.0, 7300.0)}
    assert said == {
        2.0: "",
        4.0: "under 10 s left",
        31.0: "about 40 s left",
        89.0: "about 90 s left",
        91.0: "about 2 min left",
        3599.0: "about 60 min left",
        3601.0: "about 1 h 10 min left",
        7300.0: "about 2 h 10 min left",
    }
    assert left_words(None) == ("", "")
    assert latency_words(0.29) == "saved → verdict 0.2 s"
