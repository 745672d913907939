"""Whether a later run is worse than an earlier one by more than chance: lost cases, new errors, flaky cases."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.events.events import CaseError, CaseRef
from workbench.results import statistics
from workbench.results.compare.compare import Comparison, Repeats
from workbench.results.statistics import ALPHA, CasePair, Losses
from workbench.store.execution import Execution
from workbench.store.history.latest import past_runs
from workbench.store.rates import PassRate, counts, pass_rate

_LOOKED_UP = 50
"""Number of drops for which stored runs are searched for repeats."""
_PAST = 20
"""Number of past runs that are searched for them, the newest first."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A case that passes less often than before.

    `before` and `after` are its passed and its judged executions. `chance` is how likely chance alone makes it drop as
    far. `is_clear` is whether chance does not explain it, even among all compared cases. `flaky` says where the case
    both passed and failed (`2/3 passed in A`), or is empty.
    """

    ref: CaseRef
    before: tuple[int, int]
    after: tuple[int, int]
    chance: float
    is_clear: bool
    flaky: str

    @property
    def is_single(self) -> bool:
        """Whether both runs judged the case once, so that the drop says little."""
        return self.before[1] == self.after[1] == 1


@dataclass(frozen=True, slots=True)
class NewError:
    """A case that ended with an error, or failed with one, and did not before."""

    ref: CaseRef
    error: CaseError | None


@dataclass(frozen=True, slots=True)
class Gate:
    """What chance explains of the differences between two runs.

    `losses` compares the pass rates. `left_out` are the cases that were not judged in both runs. `drops` has clear
    drops first, then the least likely. `flaky` are the cases that are known as flaky, each with the reason. `alpha` is
    the limit.
    """

    losses: Losses
    left_out: tuple[CaseRef, ...]
    drops: tuple[Drop, ...]
    new_errors: tuple[NewError, ...]
    flaky: dict[CaseRef, str]
    alpha: float

    @property
    def rates(self) -> statistics.Comparison:
        """The comparison of the pass rates."""
        return self.losses.rates

    @property
    def is_comparable(self) -> bool:
        """Whether any case can be compared, or has a new error."""
        return bool(self.rates.cases or self.new_errors)

    @property
    def failed(self) -> bool:
        """Whether there is a loss that chance does not explain, or a new error."""
        return bool(self.new_errors) or self.losses.found


def gate(found: Comparison, state: Path, *, alpha: float = ALPHA) -> Gate:
    """Compare two runs as a gate does. `state` holds earlier runs, in whose repeats flaky cases are looked up."""
    pairs = [_pair(case) for case in found.repeats] if found.has_verdicts else []
    losses = statistics.losses(pairs, alpha=alpha)
    clear = set(losses.clear)
    mixed = {case.ref: words for case in found.repeats if (words := _mixed(case))}
    drops: list[Drop] = []
    fallen = [(at, chance) for at, pair in enumerate(pairs) if (chance := _chance(pair)) is not None]
    for at, chance in sorted(fallen, key=lambda one: (one[0] not in clear, one[1])):
        ref, pair = found.repeats[at].ref, pairs[at]
        if ref not in mixed and len(drops) < _LOOKED_UP and (words := _flaky_before(state, ref)):
            mixed[ref] = words
        drops.append(Drop(ref, pair.before, pair.after, chance, at in clear, mixed.get(ref, "")))
    left_out = tuple(case.ref for case, pair in zip(found.repeats, pairs, strict=False) if not pair.is_compared)
    return Gate(losses, left_out, tuple(drops), tuple(_new_errors(found)), mixed, alpha)


def _pair(case: Repeats) -> CasePair:
    return statistics.case_pair(*([one.status for one in side] for side in (case.before, case.after)))


def _chance(pair: CasePair) -> float | None:
    return statistics.chance_of_drop(pair) if pair.change < 0 else None


def _new_errors(found: Comparison) -> Iterator[NewError]:
    """Yield each case with an error that the earlier run did not have.

    That includes cases of evalsets that can no longer be opened, and cases that are only in the later run.
    """
    for case in found.repeats:
        broken = next(filter(_broke, case.after), None)
        if broken is not None and not any(map(_broke, case.before)):
            yield NewError(case.ref, broken.error)
    lost = {replace(case.ref, repeat=1): case.after for case in found.cases if case.is_lost and not _broke(case.before)}
    alone = {replace(one.ref, repeat=1): one for one in found.only_after if _broke(one)}
    known = {case.ref for case in found.repeats}
    yield from (NewError(ref, one.error) for ref, one in {**lost, **alone}.items() if ref not in known)


def _broke(execution: Execution) -> bool:
    return execution.state == "error" or execution.failed_with_errors


def _mixed(case: Repeats) -> str:
    for name, side in (("A", case.before), ("B", case.after)):
        rate = _rate(side)
        if rate.flaky:
            return f"{rate.passed}/{rate.total} passed in {name}"
    return ""


def _flaky_before(state: Path, ref: CaseRef) -> str:
    """Return `2/3 passed in RUN` if the case was flaky when a stored run repeated it last, else ""."""
    try:
        runs = past_runs(state, ref, _PAST)
    except OSError:
        return ""
    repeated = ((run.run_id, rate) for run in runs if (rate := _rate(run.executions)).total > 1)
    run_id, rate = next(repeated, ("", pass_rate(0, 0)))
    return f"{rate.passed}/{rate.total} passed in {run_id}" if rate.flaky else ""


def _rate(executions: Iterable[Execution]) -> PassRate:
    counted = [one.state == "passed" for one in executions if counts(one.state, one.error)]
    return pass_rate(sum(counted), len(counted))
