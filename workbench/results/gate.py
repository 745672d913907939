"""The decision whether a later run is worse than an earlier one by more than chance, as data and as safe text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.events.events import CaseError, CaseRef
from workbench.results import statistics
from workbench.results.run_comparison import Comparison, Repeats
from workbench.results.statistics import ALPHA, Losses, PairedChange
from workbench.store.execution import Execution
from workbench.store.history.latest import past_runs
from workbench.store.rates import pass_rate, rate_of
from workbench.text.counting import counted, counted_status
from workbench.text.safe_text import one_line

_SMALL = 0.05
"""The difference for which an unclear comparison states the number of cases needed."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A case that passes less often than before.

    `before` and `after` are the numbers of passed and judged executions. `chance` is the probability that chance alone
    causes such a drop. `is_clear` says whether that is too unlikely, corrected for the number of cases.
    `flaky` says where the case both passed and failed (`2/3 passed in A`), or is "".
    """

    ref: CaseRef
    before: tuple[int, int]
    after: tuple[int, int]
    chance: float
    is_clear: bool
    flaky: str

    @property
    def is_single(self) -> bool:
        """Whether both runs judged the case only once. Such a drop proves little."""
        return self.before[1] == self.after[1] == 1


@dataclass(frozen=True, slots=True)
class NewError:
    """A case with an error that it did not have in the earlier run."""

    ref: CaseRef
    error: CaseError | None


@dataclass(frozen=True, slots=True)
class Gate:
    """The losses between two runs, and whether chance explains them.

    `losses` compares the pass rates. `left_out` are the cases that were not judged in both runs. `drops` has clear
    drops first, then the least likely. `flaky` has the known flaky cases with the reason. `alpha` is the significance
    level.
    """

    losses: Losses
    left_out: tuple[CaseRef, ...]
    drops: tuple[Drop, ...]
    new_errors: tuple[NewError, ...]
    flaky: dict[CaseRef, str]
    alpha: float

    @property
    def rates(self) -> PairedChange:
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

    @property
    def passed(self) -> bool | None:
        """The opposite of `failed`, or None if no case could be compared."""
        return not self.failed if self.is_comparable else None


def gate(found: Comparison, state: Path, *, alpha: float = ALPHA) -> Gate:
    """Return the gate of two compared runs. The stored runs in the folder `state` show which cases are flaky."""
    cases = found.repeats if found.has_verdicts else ()
    pairs = [
        statistics.case_pair(*([one.status for one in side] for side in (case.before, case.after))) for case in cases
    ]
    losses = statistics.losses(pairs, alpha=alpha)
    clear = set(losses.clear)
    mixed = {case.ref: words for case in found.repeats if (words := _mixed(case))}
    drops: list[Drop] = []
    fallen = [(at, statistics.chance_of_drop(pair)) for at, pair in enumerate(pairs) if pair.change < 0]
    for at, chance in sorted(fallen, key=lambda one: (one[0] not in clear, one[1])):
        ref, pair = found.repeats[at].ref, pairs[at]
        if ref not in mixed and len(drops) < 50 and (words := _flaky_before(state, ref)):
            mixed[ref] = words
        drops.append(Drop(ref, pair.before, pair.after, chance, at in clear, mixed.get(ref, "")))
    left_out = tuple(case.ref for case, pair in zip(found.repeats, pairs, strict=False) if not pair.is_compared)
    return Gate(losses, left_out, tuple(drops), tuple(_new_errors(found)), mixed, alpha)


def _new_errors(found: Comparison) -> Iterator[NewError]:
    """Yield each case with an error that the earlier run did not have, also in lost evalsets and new cases."""
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
        rate = rate_of(side)
        if rate.flaky:
            return f"{rate.passed}/{rate.total} passed in {name}"
    return ""


def _flaky_before(state: Path, ref: CaseRef) -> str:
    """Return `2/3 passed in RUN` if the case was flaky in the last stored run that repeated it, else ""."""
    try:
        runs = past_runs(state, ref, 20)
    except OSError:
        return ""
    repeated = ((run.run_id, rate) for run in runs if (rate := rate_of(run.executions)).total > 1)
    run_id, rate = next(repeated, ("", pass_rate(0, 0)))
    return f"{rate.passed}/{rate.total} passed in {run_id}" if rate.flaky else ""


def rate_text(rate: float | None) -> str:
    """Return a pass rate as `71.1%`, cut and not rounded, or `–` if it is None."""
    return "–" if rate is None else f"{math.floor(rate * 1000 + 1e-6) / 10:.1f}%"


def change_text(found: PairedChange) -> str:
    """Return the change with its interval, rounded outwards: `+7.2 points [+2.8,+11.9]`, or "" without a case."""
    if not found.cases:
        return ""
    low, high = math.floor(found.interval[0] * 1000 + 1e-9) / 10, math.ceil(found.interval[1] * 1000 - 1e-9) / 10
    return f"{_signed(found.change * 100)} points [{_signed(low)},{_signed(high)}]"


def p_text(p: float) -> str:
    """Return a p-value as text: `p = 0.004`. It is rounded up, because a value above a limit must not look below it."""
    return "p < 0.001" if p < 0.001 else f"p = {math.ceil(p * 1000 - 1e-9) / 1000:.3f}"


def chance_text(chance: float) -> str:
    """Return the probability of a drop by chance: `chance alone: 5%`, or `chance alone: under 1%`."""
    return f"chance alone: {'under 1%' if chance < 0.01 else f'{round(chance * 100)}%'}"


def compared_cases(found: PairedChange) -> str:
    """Return `this case` or `these 60 cases`."""
    return "this case" if found.cases == 1 else f"these {counted(found.cases, 'case')}"


def unclear_text(found: PairedChange) -> str:
    """Return what an unclear comparison shows, and the number of cases that a small difference needs."""
    cases = compared_cases(found)
    text = f"{cases} show no difference."
    if found.p < 0.2:
        text = f"chance may explain what {cases} show ({p_text(found.p)})."
    if found.would_show is None:
        text += " They are too few to show any."
    else:
        text += f" They would show a difference of {_whole(found.would_show)} points or more in 8 of 10 tries"
        needed = found.cases_needed(_SMALL) if found.would_show > _SMALL else None
        if needed is not None:
            # Two digits, rounded up: more would promise too much.
            step = int(10 ** max(0, len(str(needed)) - 2))
            about = counted(math.ceil(needed / step) * step, "case")
            text += f"; for {_whole(_SMALL)} points you need about {about}"
        text += "."
    if found.cases == 1:
        text = text.replace(" show ", " shows ", 1).replace("They are", "It is").replace("They ", "It ")
    return text


def gate_text(gate: Gate) -> str:
    """Return the reasons for the decision of a gate, without the decision."""
    rates, reasons = gate.rates, []
    if gate.new_errors:
        reasons.append(f"{counted(len(gate.new_errors), 'case')} with new errors")
    if rates.result == "worse":
        fell = f"{-rates.change * 100:.1f} points"
        reasons.append(f"the pass rate fell by {fell}, and chance does not explain it ({p_text(rates.p)})")
    elif gate.losses.found:
        reasons.append(_lost_text(gate))
    if reasons:
        return "; ".join(reasons)
    if not rates.cases:
        return "no case was judged in both runs"
    if rates.result == "better":
        return f"the pass rate rose by {rates.change * 100:.1f} points ({p_text(rates.p)})"
    if not rates.better and not rates.worse:
        return f"{counted(rates.cases, 'case')} passed as often as before"
    return f"chance explains the difference of {_signed(rates.change * 100)} points ({p_text(rates.p)})"


def notes(gate: Gate) -> list[str]:
    """Return remarks on the change of the pass rate: clear drops or why it is unclear, and what was left out."""
    rates, found = gate.rates, []
    if gate.losses.found and rates.result != "worse":
        found.append(_lost_text(gate))
    elif rates.result == "unclear" and (rates.better or rates.worse):
        found.append(f"unclear: {unclear_text(rates)}")
    return [*found, *filter(None, [left_out_text(rates)])]


def _lost_text(gate: Gate) -> str:
    p = gate.losses.drops_p if gate.losses.are_clear else min(drop.chance for drop in gate.drops)
    lost = len(gate.drops) if gate.losses.are_clear else len(gate.losses.clear)
    return f"{counted(lost, 'case')} dropped farther than chance explains ({p_text(p)})"


def drop_text(drop: Drop, arrow: str = "->") -> str:
    """Return a drop as `3/3 -> 1/3 passed (chance alone: 20%)`, followed by where the case was flaky, if anywhere."""
    (passed, judged), (later, of_later) = drop.before, drop.after
    words = f"{passed}/{judged} {arrow} {later}/{of_later} passed ({chance_text(drop.chance)})"
    return f"{words}, flaky: {one_line(drop.flaky)}" if drop.flaky else words


def left_out_text(found: PairedChange) -> str:
    """Return `left out: 3 errors, 1 cancelled; 2 cases have no verdict on one side`, or "" if nothing was left out."""
    parts = []
    if found.left_out:
        parts.append(", ".join(counted_status(status, number) for status, number in found.left_out.items()))
    if found.cases_left_out:
        have = "has" if found.cases_left_out == 1 else "have"
        parts.append(f"{counted(found.cases_left_out, 'case')} {have} no verdict on one side")
    return f"left out: {'; '.join(parts)}" if parts else ""


def _signed(value: float) -> str:
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _whole(share: float) -> str:
    """Return a share in points, rounded up, because a smaller difference may not show."""
    return f"{math.ceil(share * 100 - 1e-9)}"
