"""Statistics over executions: pass rates over repeats, one vote per case to compare runs, and the time that is left.

The vote of a case is the share of its executions that passed, of those that count. So 44 repeats of one case weigh as
much as 3 of another. A case has no vote if none of its executions passed or failed. An error counts only if the agent
caused it. Executions with injected faults do not count.

Two runs, or a run and a set of cases, are comparable if at least half of the wanted cases have a vote in both. A frozen
execution says nothing about a live one, so each way of running a case has its own vote.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseName,
    CaseRef,
    CaseStarted,
    ErrorKind,
    Event,
    Frozen,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)
from workbench.store.execution import Execution

_Z = 1.959963984540054
"""Two-sided 95% point of the normal distribution."""
_DOUBT = 0.01 * (1 - 1e-9)
"""Error probability below which a pass rate counts as sure: 1%, minus a margin for rounding."""
_FAR = 100
_OF_THE_AGENT: frozenset[ErrorKind] = frozenset(
    {"agent_raised", "timeout", "crashed", "too_large", "output_flood", "turn_count"}
)
_BEFORE_THE_AGENT: frozenset[ErrorKind] = frozenset(
    {"broken_file", "no_agent", "no_framework", "import_failed", "config"}
)


@dataclass(frozen=True, slots=True)
class PassRate:
    """Pass rate over repeats.

    `passed` of `total` repeats with a verdict passed. `low` and `high` are the 95% interval of the rate (Wilson).
    """

    passed: int
    total: int
    low: float
    high: float

    @property
    def rate(self) -> float | None:
        """Share that passed; None if no repeat had a verdict."""
        return self.passed / self.total if self.total else None

    @property
    def flaky(self) -> bool:
        """Whether some repeats passed and others did not."""
        return 0 < self.passed < self.total


@lru_cache(4096)
def pass_rate(passed: int, total: int) -> PassRate:
    """Return the rate with its interval by E. B. Wilson, Probable Inference, 1927.

    Unlike the textbook interval, this one is right for few repeats and for rates near 0 and 1. Without repeats, the
    interval is 0 to 1.

    Raises:
        ValueError: `passed` is negative or above `total`.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} cannot have passed")
    if total == 0:
        return PassRate(0, 0, 0.0, 1.0)
    share, square = passed / total, _Z * _Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = _Z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    # Rounding must not exclude the rates 0 and 1.
    low = 0.0 if passed == 0 else max(middle - half, 0.0)
    high = 1.0 if passed == total else min(middle + half, 1.0)
    return PassRate(passed, total, low, high)


def rate_of(executions: Iterable[Execution]) -> PassRate:
    """Return the pass rate of a case over its repeats that count."""
    counted = [one.state == "passed" for one in executions if counts(one.state, one.error)]
    return pass_rate(sum(counted), len(counted))


def pass_hat_k(passed: int, total: int, k: int) -> float | None:
    """Return pass^k: the probability that k runs in a row all pass.

    The unbiased estimate from `total` runs, of which `passed` passed, is the share of all choices of k among them that
    contain only passes (Yao et al., tau-bench, 2024). None if there are fewer than k runs.

    Raises:
        ValueError: `k` is below 1, or `passed` is negative or above `total`.
    """
    if k < 1 or not 0 <= passed <= total:
        raise ValueError(f"pass^{k} needs k ≥ 1 and 0 to {total} passes, not {passed}")
    return math.comb(passed, k) / math.comb(total, k) if total >= k else None


def counts(status: str, error: CaseError | None) -> bool:
    """Return whether an execution counts for a pass rate: it passed, it failed, or its agent ended it with an error."""
    return status in ("passed", "failed") or broke_off(status, error)


def never_ran(status: str, error: CaseError | None) -> bool:
    """Return whether a case ended with an error before its agent could run, live or replayed."""
    return status == "error" and error is not None and error.kind in _BEFORE_THE_AGENT


def broke_off(status: str, error: CaseError | None) -> bool:
    """Return whether an error of the agent itself ended the execution."""
    return status == "error" and error is not None and error.kind in _OF_THE_AGENT


Sure: TypeAlias = Literal["above", "below"] | None


def sure(rate: PassRate, threshold: float) -> Sure:
    """Return whether the repeats prove that the true pass rate is at least `threshold` (`above`) or less (`below`).

    None means that neither is proven. `above`: if the true rate were below the threshold, so many passes would occur in
    less than 1% of cases (exact binomial tail, C. J. Clopper and E. S. Pearson, 1934); `below` likewise. This is
    stricter than a 95% interval clearing the threshold, because the test is repeated after each repeat. A 95%
    interval that is checked 50 times ends on the wrong side up to 31% of the time, this rule at most 4% (7% in 200).
    """
    if rate.total == 0:
        return None
    if _at_least(rate.passed, rate.total, threshold) < _DOUBT:
        return "above"
    # Probability of at least as many failures if the failure rate is at most 1 - threshold.
    return "below" if _at_least(rate.total - rate.passed, rate.total, 1 - threshold) < _DOUBT else None


def fewest_for_sure(threshold: float) -> int | None:
    """Return how many passes in a row prove that the rate is at least `threshold` (above 0); None if no number does."""
    return None if threshold >= 1 else math.floor(math.log(_DOUBT) / math.log(threshold)) + 1


@lru_cache(4096)
def fewest_to_decide(passed: int, total: int, threshold: float) -> int:
    """Return the fewest further repeats (at most 100) that could prove something if all pass or all fail."""
    for more in range(1, _FAR):
        for extra in (more, 0):
            if sure(pass_rate(passed + extra, total + more), threshold):
                return more
    return _FAR


def _at_least(hits: int, total: int, chance: float) -> float:
    """Return the probability of at least `hits` of `total` events, each with the same chance."""
    if hits <= 0 or chance >= 1:
        return 1.0
    if chance <= 0:
        return 0.0
    # Logarithms, because the number of choices exceeds a float from about a thousand repeats on.
    of_one, of_none, choices = math.log(chance), math.log1p(-chance), math.lgamma(total + 1)
    return math.fsum(
        math.exp(
            choices
            - math.lgamma(count + 1)
            - math.lgamma(total - count + 1)
            + count * of_one
            + (total - count) * of_none
        )
        for count in range(hits, total + 1)
    )


Case: TypeAlias = tuple[str, ...]
"""A case: its evalset's path relative to the root, and its ID. If it was replayed, the mode follows: `tools` or `all`.

ADK's results do not name the path; the evalset's ID is used instead.
"""


def case_key(file: str, eval_id: str, frozen: Frozen | None) -> Case:
    """Return the key of a case's executions that were replayed in the same way."""
    return (file, eval_id) if frozen is None else (file, eval_id, frozen.mode)


def case_votes(executions: Iterable[Execution]) -> dict[Case, float]:
    """Return the vote of each case that has one, from 0 (never passed) to 1 (always passed)."""
    passed: dict[Case, int] = {}
    counted: dict[Case, int] = {}
    decided: set[Case] = set()
    for one in executions:
        if one.decides_case and counts(one.state, one.error):
            case = case_key(one.ref.evalset_file or one.ref.eval_set_id, one.ref.eval_id, one.frozen)
            counted[case] = counted.get(case, 0) + 1
            passed[case] = passed.get(case, 0) + (one.state == "passed")
            if one.state in ("passed", "failed"):
                decided.add(case)
    return {case: passed[case] / total for case, total in counted.items() if case in decided}


def are_enough(shared: Collection[Case], wanted: Collection[Case]) -> bool:
    """Return whether there are shared cases, and they are at least half as many as the wanted ones."""
    return bool(shared) and 2 * len(shared) >= len(wanted)


def case_keys(names: Iterable[CaseName], records: Iterable[Execution]) -> set[Case]:
    """Return the keys under which past runs have comparable votes for these cases.

    A case whose verdict among `records` is frozen is compared with frozen ones. Others are compared with live ones.
    """
    frozen = {record.ref.name: record.frozen for record in records if record.frozen is not None}
    return {case_key(*name, frozen.get(name)) for name in names}


_FEWEST = 3
"""Number of ended cases from which on there is an estimate."""
_SLACK = 0.5
"""Seconds by which the end of a case may seem to lie in the future, because events are shown late."""
_SHORTEST = 3.0
"""Seconds below which no remaining time is shown."""
_MOST_DONE = 0.75
"""Maximum share of a running case that counts as done, however long it runs already."""


class RemainingTime:
    """An estimate of a run's remaining time, from the pace of its ended cases. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = 0.0
        self._unfinished = 0
        self._running: dict[CaseRef, float] = {}
        self._first = math.inf
        """When the first of the ended cases started."""
        self._ended, self._total = 0, 0.0
        """The number of ended cases, and the seconds that they took together."""

    def apply(self, event: Event) -> None:
        """Update the estimate with an event of the run."""
        match event:
            case RunStarted():
                self._began, self._unfinished = self._clock(), len(event.cases)
                self._running, self._first, self._ended, self._total = {}, math.inf, 0, 0.0
            case RunResumed():
                self._began = self._clock()
            case CaseStarted():
                self._running[event.case] = event.at
            case CaseFinished():
                self._unfinished -= 1
                start, seconds = self._running.pop(event.case, None), event.duration_seconds
                # A case that ended in an earlier session of a resumed run has the time of another clock.
                is_of_now = start is not None and start + seconds <= self._clock() - self._began + _SLACK
                if start is not None and is_of_now and event.status != "cancelled":
                    self._first, self._ended, self._total = (
                        min(self._first, start),
                        self._ended + 1,
                        self._total + seconds,
                    )
            case RepeatsDropped():
                self._unfinished -= len(event.cases)
            case RunFinished():
                self._unfinished, self._running = 0, {}

    def seconds(self) -> float | None:
        """Return the seconds that the run probably still takes, or None if that is not known."""
        if self._ended < _FEWEST or self._unfinished <= 0:
            return None
        now, mean = self._clock() - self._began, max(self._total / self._ended, 1e-6)
        begun = sum(min(max(now - at, 0.0) / mean, _MOST_DONE) for at in self._running.values())
        pace = (self._ended + begun) / max(now - self._first, 1e-6)
        return max(self._unfinished - begun, 0.0) / pace


def left_words(seconds: float | None) -> tuple[str, str]:
    """Return `about 2 min left` and `2 min left`, or `("", "")` if the time is unknown or too short to show."""
    if seconds is None or seconds < _SHORTEST:
        return "", ""
    if seconds < 10:
        return "under 10 s left", "<10 s left"
    if seconds < 90:
        short = f"{math.ceil(seconds / 10) * 10} s left"
    elif seconds < 3600:
        short = f"{math.ceil(seconds / 60)} min left"
    else:
        hours, minutes = divmod(math.ceil(seconds / 600) * 10, 60)
        short = f"{hours} h {minutes} min left" if minutes else f"{hours} h left"
    return f"about {short}", short


def latency_words(seconds: float) -> str:
    """Return `saved → verdict 0.2 s`, the time from a save to the last verdict that it led to."""
    return f"saved → verdict {math.floor(seconds * 10) / 10:,.1f} s"


def is_waiting_for_agents(running: int, queued: int) -> bool:
    """Return whether no case runs and some wait, because their agents are starting."""
    return queued > 0 and running == 0


STARTING_AGENTS = "starting agents"
