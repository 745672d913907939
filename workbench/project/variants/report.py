"""The results of a try by variant and case, with statistical tests. They can be computed while the try runs."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, TypeAlias

from workbench.events.events import CaseRef, CaseStatus
from workbench.files.prices import Prices, money, total
from workbench.project.variants.trial import Layout
from workbench.results.gate import compared_cases, p_text, unclear_text
from workbench.results.run_comparison import is_figure
from workbench.results.statistics import CasePair, PairedChange, case_pair, compare_rates, compare_scores, corrected
from workbench.store.execution import Execution
from workbench.text.counting import counted, counted_status
from workbench.text.safe_text import one_line

Direction: TypeAlias = Literal["better", "worse", "same", "left out"]
MARKS: Final[Mapping[Direction, str]] = {"better": "✗→✓", "worse": "✓→✗", "same": "=", "left out": "?"}
_SCORED = ("passed", "failed", "informational")


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case in the first variant and in another one.

    `pair` has the passed and judged executions in the first variant (`before`) and the other one (`after`). `cause` is
    the most frequent cause of failures in the first variant if the case fails more often there, else in the other one.
    It is safe text, or "".
    """

    case: CaseRef
    pair: CasePair
    cause: str = ""

    @property
    def direction(self) -> Direction:
        """Whether the case passes more often, less often, as often, or cannot be compared."""
        if not self.pair.is_compared:
            return "left out"
        return "better" if self.pair.change > 0 else "worse" if self.pair.change < 0 else "same"


@dataclass(frozen=True, slots=True)
class CriterionChange:
    """The mean score of a criterion, compared with that in the first variant."""

    name: str
    mean: float
    comparison: PairedChange


@dataclass(frozen=True, slots=True)
class VariantResult:
    """The results of a variant.

    `pass_rate` is the mean of its cases' rates, None if none was judged. `cost` is None if it is not known. `seconds`
    is the mean duration of a judged execution, None if there is none. `left_out` counts executions that ended without
    passing or failing, by status. `judged` counts the others. `ended` counts all executions that ended and were not
    cancelled. The first variant has no `comparison`, `cases` or `criteria`.
    """

    name: str
    pass_rate: float | None
    cost: float | None
    seconds: float | None
    left_out: Mapping[CaseStatus, int]
    judged: int
    ended: int
    comparison: PairedChange | None = None
    cases: tuple[CaseChange, ...] = ()
    criteria: tuple[CriterionChange, ...] = ()

    @property
    def changed(self) -> list[CaseChange]:
        """The cases that pass more or less often: first the better ones, or the worse ones if the variant is worse.

        Among the better ones and among the worse ones, the largest changes come first.
        """
        sign = -1 if self.comparison is not None and self.comparison.change < 0 else 1
        found = [case for case in self.cases if case.pair.change]
        return sorted(found, key=lambda case: (case.pair.change * sign < 0, -abs(case.pair.change)))


@dataclass(frozen=True, slots=True)
class TryReport:
    """The results of a try. `against` is the name of the first variant, with which the others are compared.

    `cases` is the number of cases. Each is planned `runs` times in each variant.
    """

    against: str
    cases: int
    runs: int
    variants: tuple[VariantResult, ...]

    @property
    def could_run(self) -> bool:
        """Whether each variant has a judged case."""
        return all(variant.judged for variant in self.variants)


def report(
    layout: Layout, records: Iterable[Execution], costs: Mapping[CaseRef, float | None] | None = None
) -> TryReport:
    """Return the results so far. `records` are the executions of the try, `costs` their costs as far as known.

    It takes a few hundredths of a second for 60 cases; with thousands of cases, call it in a thread.
    """
    sides: list[dict[CaseRef, list[Execution]]] = [{} for _ in layout.names]
    for record in records:
        variant, case = layout.place(record.ref)
        sides[variant].setdefault(case, []).append(record)
    known = {} if costs is None else costs
    cases = [_cases(layout, sides[0], side) for side in sides[1:]]
    comparisons = corrected([compare_rates(case.pair for case in own) for own in cases])
    criteria = _criteria(layout, sides)
    variants = [_variant(layout.names[0], sides[0], known)]
    for index, (comparison, own) in enumerate(zip(comparisons, cases, strict=True), 1):
        variants.append(_variant(layout.names[index], sides[index], known, comparison, own, criteria[index - 1]))
    return TryReport(layout.names[0], len(layout.cases), layout.runs, tuple(variants))


def _variant(
    name: str,
    side: Mapping[CaseRef, Sequence[Execution]],
    costs: Mapping[CaseRef, float | None],
    comparison: PairedChange | None = None,
    cases: Sequence[CaseChange] = (),
    criteria: Sequence[CriterionChange] = (),
) -> VariantResult:
    ended = [one for own in side.values() for one in own if one.finished]
    judged = [one for one in ended if one.status in ("passed", "failed")]
    rates = [
        fmean(one.status == "passed" for one in verdicts)
        for own in side.values()
        if (verdicts := [one for one in own if one.status in ("passed", "failed")])
    ]
    amounts = [costs[one.ref] for one in ended if one.ref in costs]
    return VariantResult(
        name,
        fmean(rates) if rates else None,
        total(amounts) if amounts else None,
        fmean(one.duration_seconds for one in judged) if judged else None,
        Counter(one.status for one in ended if one.status not in ("passed", "failed")),
        len(judged),
        sum(one.status != "cancelled" for one in ended),
        comparison,
        tuple(cases),
        tuple(criteria),
    )


def _cases(
    layout: Layout, before: Mapping[CaseRef, Sequence[Execution]], after: Mapping[CaseRef, Sequence[Execution]]
) -> list[CaseChange]:
    found = []
    for case in layout.cases:
        then, now = ([one for one in side.get(case, ()) if one.finished] for side in (before, after))
        pair = case_pair([one.status for one in then], [one.status for one in now])
        found.append(CaseChange(case, pair, _cause(then if pair.change > 0 else now)))
    return found


def _cause(executions: Iterable[Execution]) -> str:
    causes = Counter(one.cause.text for one in executions if one.cause is not None)
    return causes.most_common(1)[0][0] if causes else ""


def _criteria(layout: Layout, sides: Sequence[Mapping[CaseRef, Sequence[Execution]]]) -> list[list[CriterionChange]]:
    """Return the changes of criteria for each variant but the first, corrected for the number of variants.

    Informational figures are no criteria: more tokens or seconds are not better.
    """
    names = dict.fromkeys(name for side in sides for own in side.values() for one in own for name in one.scores)
    found: list[list[CriterionChange]] = [[] for _ in sides[1:]]
    for name in (name for name in names if not is_figure(name)):
        scores = [{case: _scores(own, name) for case, own in side.items()} for side in sides]
        pairs = [[(scores[0].get(case, []), side.get(case, [])) for case in layout.cases] for side in scores[1:]]
        for index, comparison in enumerate(corrected(list(map(compare_scores, pairs)))):
            if comparison.cases:
                found[index].append(CriterionChange(name, comparison.after, comparison))
    return found


def _scores(executions: Iterable[Execution], name: str) -> list[float]:
    results = (one.scores.get(name) for one in executions if one.finished)
    return [one.score for one in results if one is not None and one.score is not None and one.status in _SCORED]


# Words, for the command line and the screen


def cost_words(cost: float | None, currency: str) -> str:
    """Return the cost, or `–` if it is not known."""
    return "–" if cost is None else money(cost, currency)


def latency_words(seconds: float | None) -> str:
    """Return a duration such as `2.1 s`, or `–` if it is not known."""
    return "–" if seconds is None else f"{seconds:.1f} s"


def case_names(result: VariantResult) -> dict[CaseRef, str]:
    """Return a safe name for each case: its ID, or its whole label if several cases have the same ID."""
    refs = [case.case for case in result.cases]
    ids = Counter(ref.eval_id for ref in refs)
    return {ref: one_line(ref.eval_id if ids[ref.eval_id] == 1 else ref.label) for ref in refs}


def pair_words(pair: CasePair) -> str:
    """Return `0/3 → 3/3`: passed of judged executions before and after."""
    return " → ".join(f"{passed}/{judged}" for passed, judged in (pair.before, pair.after))


def left_out_words(result: VariantResult) -> str:
    """Return the numbers of executions that were not judged, such as `2 errors, 1 not evaluated`, or ""."""
    states: tuple[CaseStatus, ...] = ("error", "not_evaluated", "cancelled")
    return ", ".join(counted_status(state, count) for state in states if (count := result.left_out.get(state, 0)))


def conclusion(result: VariantResult, against: str) -> str:
    """Return the conclusion about a variant, in one or two sentences, or "" for the first variant."""
    found = result.comparison
    if found is None:
        return ""
    if not found.cases:
        return f"unclear: no case was judged both in {against} and in {result.name}."
    these = compared_cases(found)
    lost = sum(bool(case.pair.left_out) and not case.pair.is_compared for case in result.cases)
    more = f" {counted(lost, 'more case')} could not be compared." if lost else ""
    if found.result != "unclear":
        # Rounded outwards, as in `change_text`.
        low, high = sorted(abs(value) * 100 for value in found.interval)
        size = f"probably by {math.floor(low + 1e-9)} to {math.ceil(high - 1e-9)} points"
        sure = found.interval[0] > 0 or found.interval[1] < 0
        return f"{found.result}: {these} show it ({p_text(found.p)}){f', {size}' if sure else ''}.{more}"
    return f"unclear: {unclear_text(found)}{more}"


def title_words(variants: int, cases: int, runs: int) -> str:
    """Return `3 variants × 60 cases × 3 runs`."""
    return f"{counted(variants, 'variant')} × {counted(cases, 'case')} × {counted(runs, 'run')}"


def total_cost(result: TryReport, prices: Prices) -> str:
    """Return the cost of all variants as text, or "" without prices or if the cost is not known."""
    if not prices:
        return ""
    cost = total(variant.cost for variant in result.variants)
    return "" if cost is None else money(cost, prices.currency)
