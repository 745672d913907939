"""Outcome of a case over its repeats, and whether it differs from an earlier one by more than chance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.store.execution import Execution
from workbench.store.rates import PassRate, counts, never_ran, pass_rate


def rate_of(records: Iterable[Execution]) -> PassRate:
    """Return the pass rate of a case over its repeats."""
    counted = [record for record in records if counts(record.state, record.error)]
    return pass_rate(sum(record.state == "passed" for record in counted), len(counted))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a case's repeats in one run, at least one.

    `state` is set if all ended alike, else "". `mode` says how they were replayed, "" if they were live, or is None if
    none of them could run.
    """

    state: str
    times: int
    rate: PassRate
    mode: str | None = ""

    def text(self) -> str:
        """Return `passed`, or `2/3 passed` for several repeats."""
        if self.state and (self.times == 1 or not self.rate.total):
            return self.state
        return f"{self.rate.passed}/{self.rate.total} passed" if self.rate.total else "no verdict"


def outcome(records: Sequence[Execution]) -> Outcome:
    """Return the outcome of these repeats."""
    states = {record.state for record in records}
    return Outcome(states.pop() if len(states) == 1 else "", len(records), rate_of(records), mode_of(records))


def mode_of(records: Iterable[Execution]) -> str | None:
    """Return how repeats were replayed, "" if they were live, or None if none of them could run."""
    return max((record.mode for record in records if not never_ran(record.state, record.error)), default=None)


def are_alike(one: str | None, other: str | None) -> bool:
    """Return whether executions with these modes are comparable: frozen and live ones are not."""
    return one == other or one is None or other is None


def differs(before: Outcome, now: Outcome) -> bool:
    """Return whether two outcomes differ by more than chance. A frozen and a live one are not comparable.

    They do if each is uniform and they ended differently, or if each pass rate is outside the interval of the other. A
    flaky case that passes 2 of 3 times, and then 1 of 3, does not differ.
    """
    if not are_alike(before.mode, now.mode):
        return False
    if (before.rate.total == 0) != (now.rate.total == 0):
        return True
    if before.state and now.state:
        return before.state != now.state
    return _outside(before.rate, now.rate) and _outside(now.rate, before.rate)


def _outside(one: PassRate, other: PassRate) -> bool:
    return one.rate is not None and not other.low <= one.rate <= other.high
