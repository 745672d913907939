"""Statistics of the same cases before and after a change: the size of the difference, and whether it may be chance.

Each case counts once, with its pass rate (or mean score) over its repeats. Cases are compared in pairs,
because differences between easy and hard cases would hide changes. Two tests decide:

- McNemar's test with mid-p, if no case has repeats (Fagerland, Lydersen and Laake, 2013).
- A sign-flip permutation test on the differences of the cases, if there are repeats, and for scores. If the change had
  no effect, each difference could as well have had the other sign.

Both are two-sided. All figures are shares of 1 (or units of the score), not percentages. Random flips are seeded, so
the same pairs always give the same figures, in any order.
"""

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import NormalDist, fmean
from typing import Literal, TypeAlias

Result: TypeAlias = Literal["better", "worse", "unclear"]

ALPHA = 0.05
"""Significance level: the probability of calling a change without effect better or worse."""
POWER = 0.8
"""Statistical power: the share of tries in which the difference `would_show` is found."""
FLIPS = 10_000
"""Number of random flips if there are too many to count all of them."""
_EXACT_STEPS = 300_000
"""Maximum number of additions for counting all flips, about 50 ms."""
_SCALE = 2**4 * 3**2 * 5**3 * 7 * 11 * 13
"""A factor that turns rates over up to 16 repeats, and scores with up to three decimals, into whole numbers."""


@dataclass(frozen=True, slots=True)
class CasePair:
    """One case before and after a change.

    `before` and `after` are the numbers of passed and judged executions. `left_out` has the status of each execution of
    either side that was not judged (error, not_evaluated, cancelled). A case is compared only if both sides have a
    judged execution.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    left_out: tuple[str, ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether both sides have a judged execution."""
        return bool(self.before[1] and self.after[1])

    @property
    def change(self) -> float:
        """Difference of the pass rates, from -1 to 1, or 0 if the case is not compared."""
        return _rate(self.after) - _rate(self.before) if self.is_compared else 0.0


def case_pair(before: Iterable[str], after: Iterable[str]) -> CasePair:
    """Return the pair of a case from the statuses of its executions: passed, failed, or why it was not judged."""
    sides = list(before), list(after)
    then, now = ((side.count("passed"), side.count("passed") + side.count("failed")) for side in sides)
    left_out = (status for side in sides for status in side if status not in ("passed", "failed"))
    return CasePair(then, now, tuple(left_out))


@dataclass(frozen=True, slots=True)
class PairedChange:
    """The same cases before and after a change.

    - `cases`: number of compared cases. Without any, nothing is known: `change` is 0, and `result` is unclear.
    - `before`, `after`: mean of the cases' pass rates (or scores). `change` is their difference.
    - `interval`: 95% interval of the change, not corrected for several variants.
    - `p`: probability of such a difference by chance alone. `result` is unclear if it is above the limit.
    - `would_show`: the smallest difference that these cases and repeats show in 8 of 10 tries, or None if they cannot
      show any.
    - `better`, `worse`: number of cases whose rate (or mean score) rose or fell. All others stayed the same.
    - `left_out`: number of executions that were not judged, by status. `cases_left_out`: number of cases that were not
      judged on one side.
    - `alpha`: the limit for `would_show` and `cases_needed`. If there are several variants, each has an equal share.
    - `spread`: the random variation of the cases, or None if it is unknown.
    """

    cases: int
    before: float
    after: float
    change: float
    interval: tuple[float, float]
    p: float
    result: Result
    would_show: float | None
    better: int
    worse: int
    left_out: dict[str, int] = field(default_factory=dict)
    cases_left_out: int = 0
    alpha: float = ALPHA
    spread: "Spread | None" = None

    def cases_needed(self, difference: float) -> int | None:
        """Return how many cases like these, with the same repeats, show a difference in 8 of 10 tries.

        Return None if the random variation is unknown: no case was compared, or no score differs.

        Raises: ValueError: The difference is not above 0.
        """
        if not difference > 0:
            raise ValueError("the difference must be above 0")
        return None if self.spread is None else self.spread.cases_needed(difference, self.alpha)


@dataclass(frozen=True, slots=True)
class Spread:
    """The random variation of the cases.

    `variance` is the variance of a case's difference. `repeats` is the mean number of judged executions of a case on
    one side, or None for scores. `single` says whether McNemar's test decides.
    """

    variance: float
    repeats: float | None
    single: bool

    def cases_needed(self, difference: float, alpha: float) -> int:
        """Return the number of cases that show this difference in 8 of 10 tries (R. J. Connor, 1987)."""
        noise = self.variance
        if self.repeats is not None:
            # Cases that always failed and now pass sometimes are noisy from then on. A case that passes half of the
            # time has a variance of 1/2, divided by the repeats. The less noise there is, the more cases are steady.
            steady = max(1 - 2 * self.repeats * noise, 0.0)
            noise += steady * max(difference * (1 - difference), 0.0) / self.repeats
        wanted = _z(1 - alpha / 2) * math.sqrt(noise + difference * difference) + _z(POWER) * math.sqrt(noise)
        # With fewer cases, no result is below `alpha`, even if all change alike.
        fewest = math.ceil(-math.log2(alpha)) + (not self.single)
        return max(math.ceil((wanted / difference) ** 2), fewest)

    def would_show(self, cases: int, alpha: float) -> float | None:
        """Return the smallest difference that this number of cases shows in 8 of 10 tries, or None if there is none."""
        low, high = 0.0, 1.0 if self.repeats is not None else 1000 * math.sqrt(self.variance) or 1.0
        if self.cases_needed(high, alpha) > cases:
            return None
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.cases_needed(middle, alpha) <= cases else (middle, high)
        return high


def compare_rates(pairs: Iterable[CasePair], *, alpha: float = ALPHA) -> PairedChange:
    """Compare the pass rates of the same cases before and after a change."""
    given = list(pairs)
    found = [pair for pair in given if pair.is_compared]
    left_out = dict(Counter(status for pair in given for status in pair.left_out))
    if not found:
        return PairedChange(0, 0.0, 0.0, 0.0, (-1.0, 1.0), 1.0, "unclear", None, 0, 0, left_out, len(given))
    judged = [count for pair in found for count in (pair.before[1], pair.after[1])]
    single = max(judged) == 1
    differences = [pair.change for pair in found]
    rose, fell = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    compared = _compare(
        [_rate(pair.before) for pair in found],
        [_rate(pair.after) for pair in found],
        p=mcnemar_mid_p(rose, fell) if single else sign_flip_p(differences),
        repeats=fmean(judged),
        single=single,
        alpha=alpha,
    )
    low, high = compared.interval
    return replace(
        compared, interval=(max(low, -1.0), min(high, 1.0)), left_out=left_out, cases_left_out=len(given) - len(found)
    )


def compare_scores(pairs: Iterable[tuple[Sequence[float], Sequence[float]]], *, alpha: float = ALPHA) -> PairedChange:
    """Compare the scores of a criterion. Each pair has the scores of a case before and after, one per judged repeat.

    Pass only executions with a score. Cases without scores on one side are not compared. If no mean differs, the
    noise is unknown, so the interval is infinite, and `would_show` is None.
    """
    given = list(pairs)
    found = [(fmean(before), fmean(after)) for before, after in given if before and after]
    if not found:
        nothing = (-math.inf, math.inf)
        return PairedChange(0, 0.0, 0.0, 0.0, nothing, 1.0, "unclear", None, 0, 0, {}, len(given))
    before, after = [pair[0] for pair in found], [pair[1] for pair in found]
    p = sign_flip_p([now - then for then, now in found])
    compared = replace(
        _compare(before, after, p=p, repeats=None, single=False, alpha=alpha), cases_left_out=len(given) - len(found)
    )
    if before == after:  # Nothing shows how much the scores vary.
        return replace(compared, interval=(-math.inf, math.inf), would_show=None, spread=None)
    return compared


def _compare(
    before: Sequence[float], after: Sequence[float], *, p: float, repeats: float | None, single: bool, alpha: float
) -> PairedChange:
    differences = [now - then for then, now in zip(before, after, strict=True)]
    cases = len(differences)
    change = math.fsum(differences) / cases
    squares = math.fsum(one * one for one in differences)
    # One more case that rose and one that fell, by one execution each: without them, cases that all stayed the same
    # would prove that nothing ever changes (Bonett and Price, 2012, for single runs).
    extra = squares / cases if repeats is None else 1 / repeats**2
    shrunk = change * cases / (cases + 2)
    variance = max((squares + 2 * extra) / (cases + 2) - shrunk * shrunk, 0.0)
    half = _t(cases + 1) * math.sqrt(variance / (cases + 2))
    spread = Spread(variance, repeats, single)
    return PairedChange(
        cases,
        fmean(before),
        fmean(after),
        change,
        (shrunk - half, shrunk + half),
        p,
        _result(change, p, alpha),
        spread.would_show(cases, alpha),
        sum(one > 0 for one in differences),
        sum(one < 0 for one in differences),
        alpha=alpha,
        spread=spread,
    )


def corrected(comparisons: Sequence[PairedChange]) -> list[PairedChange]:
    """Return the comparisons of several variants with Holm's correction of `p` and `result`.

    `would_show` and `cases_needed` are corrected for the number of variants, too.
    """
    ps = holm([one.p for one in comparisons])
    share = ALPHA / max(len(comparisons), 1)
    return [
        replace(
            one,
            p=p,
            result=_result(one.change, p, ALPHA),
            would_show=one.spread.would_show(one.cases, share) if one.spread else None,
            alpha=share,
        )
        for one, p in zip(comparisons, ps, strict=True)
    ]


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values of several tests, raised for a comparison of each with the same limit (S. Holm, 1979)."""
    raised = [0.0] * len(ps)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        largest = max(largest, min((len(ps) - rank) * ps[index], 1.0))
        raised[index] = largest
    return raised


def mcnemar_mid_p(rose: int, fell: int) -> float:
    """Return McNemar's mid-p. `rose` cases passed only after the change, `fell` cases only before.

    It is the exact two-sided probability, less half of the probability of exactly this result on each side. The exact
    test is too strict: with a limit of 5%, it is wrong in only 3.6%.
    """
    changed, fewer = rose + fell, min(rose, fell)
    ways = own = 1
    for count in range(1, fewer + 1):
        own = own * (changed - count + 1) // count
        ways += own
    return min((2 * ways - own) / (1 << changed), 1.0)


def sign_flip_p(differences: Iterable[float]) -> float:
    """Return the probability that random signs give a sum of differences at least as far from 0.

    If few sums are possible, all flips are counted. Otherwise, 10,000 random flips are drawn, and the result itself is
    counted as one more.
    """
    signed = _whole(differences)
    sizes = sorted(abs(one) for one in signed)
    total, seen = sum(sizes), abs(sum(signed))
    if not sizes:
        return 1.0
    if len(sizes) * min(2.0 ** min(len(sizes), 1000), total + 1) <= _EXACT_STEPS:
        ways = {0: 1}
        for size in sizes:
            more = dict(ways)
            for positive, count in ways.items():
                more[positive + size] = more.get(positive + size, 0) + count
            ways = more
        return sum(count for positive, count in ways.items() if abs(2 * positive - total) >= seen) / (1 << len(sizes))
    # The random signs of all differences are the bits of one number, and so are the n-th bits of all sizes. This counts
    # 10,000 flips of 10,000 differences in a second.
    planes = [
        (2 << bit, int("".join("1" if size >> bit & 1 else "0" for size in sizes), 2))
        for bit in range(sizes[-1].bit_length())
    ]
    draw = random.Random(FLIPS).getrandbits
    hits = 0
    for _ in range(FLIPS):
        positive = draw(len(sizes))
        hits += abs(sum(weight * (plane & positive).bit_count() for weight, plane in planes) - total) >= seen
    return (hits + 1) / (FLIPS + 1)


def _whole(differences: Iterable[float]) -> list[int]:
    """Return the differences other than 0, scaled to the smallest possible whole numbers."""
    given = [one for one in differences if one]
    largest = max(map(abs, given), default=1.0)
    scale = _SCALE << max(-math.frexp(largest)[1], 0)
    whole = [found for one in given if (found := round(one * scale))]
    shared = math.gcd(*whole) or 1
    return [one // shared for one in whole]


def chance_of_drop(pair: CasePair) -> float:
    """Return the probability that chance alone causes a drop at least as large as that of this case.

    It is Fisher's exact test (one-sided; R. A. Fisher, 1935): the probability that at most this many of all passes are
    among the later executions. A single execution on each side gives 0.5 for a drop, which proves little.
    """
    (passed, judged), (later, of_later) = pair.before, pair.after
    both = passed + later
    ways = sum(math.comb(of_later, count) * math.comb(judged, both - count) for count in range(later + 1))
    return ways / math.comb(judged + of_later, both)


def clear_drops(pairs: Sequence[CasePair], *, alpha: float = ALPHA) -> list[int]:
    """Return the positions of cases with a drop that chance does not explain, corrected for the number of cases.

    The limit is divided by the number of cases that can reach it at all (R. E. Tarone, 1990). Cases that always pass,
    or never pass, cannot.
    """
    smallest = sorted(chance_of_drop(_worst(pair)) for pair in pairs)
    candidates = next(count for count in range(1, len(pairs) + 2) if bisect_right(smallest, alpha / count) <= count)
    return [at for at, pair in enumerate(pairs) if pair.change < 0 and chance_of_drop(pair) <= alpha / candidates]


def chance_of_drops(pairs: Iterable[CasePair]) -> float:
    """Return the probability that chance alone causes a total drop at least as large. Gains do not count.

    If a case did not change, its executions before and after are interchangeable, which gives the distribution of its
    drop. The distribution of the total is exact if few sums are possible, else its normal approximation.
    """
    cases = [pair for pair in pairs if pair.is_compared]
    seen = sum(max(round(-pair.change * _SCALE), 0) for pair in cases)
    found = Counter((pair.before[0] + pair.after[0], pair.before[1], pair.after[1]) for pair in cases)
    drops = {case: drop for case in found if len(drop := _drops(*case)) > 1}
    if not seen:
        return 1.0
    unit = math.gcd(*(size for drop in drops.values() for size in drop))
    most = sum(found[case] * max(drop) for case, drop in drops.items()) // unit
    if most * sum(found[case] * len(drop) for case, drop in drops.items()) > _EXACT_STEPS:
        means = {case: math.fsum(size * p for size, p in drop.items()) for case, drop in drops.items()}
        squares = {case: math.fsum(size * size * p for size, p in drop.items()) for case, drop in drops.items()}
        variance = math.fsum(found[case] * (squares[case] - means[case] ** 2) for case in drops)
        mean = math.fsum(found[case] * means[case] for case in drops)
        return 1 - NormalDist(mean, math.sqrt(variance)).cdf(seen - unit / 2)
    sums = {0: 1.0}
    for case, drop in drops.items():
        for _ in range(found[case]):
            more = dict[int, float]()
            for so_far, p in sums.items():
                for size, q in drop.items():
                    more[so_far + size] = more.get(so_far + size, 0.0) + p * q
            sums = more
    return min(math.fsum(p for so_far, p in sums.items() if so_far >= seen), 1.0)


def _drops(passed: int, before: int, after: int) -> dict[int, float]:
    """Return the probability of each drop of a pass rate (times `_SCALE`) of a case. A gain is a drop of 0."""
    drops = dict[int, float]()
    for later in range(max(passed - before, 0), min(passed, after) + 1):
        drop = max(round(((passed - later) / before - later / after) * _SCALE), 0)
        ways = math.comb(after, later) * math.comb(before, passed - later)
        drops[drop] = drops.get(drop, 0.0) + ways / math.comb(before + after, passed)
    return drops


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of a later run, as a gate judges them.

    `rates` compares the pass rates. `drops_p` is the probability of the total drop by chance alone, and `are_clear`
    says whether that is too unlikely. `clear` are the positions of cases whose own drop is too unlikely.
    """

    rates: PairedChange
    drops_p: float
    are_clear: bool
    clear: list[int]

    @property
    def found(self) -> bool:
        """Whether there is a loss that chance does not explain."""
        return self.rates.result == "worse" or self.are_clear or bool(self.clear)


def losses(pairs: Sequence[CasePair], *, alpha: float = ALPHA) -> Losses:
    """Find the losses of a later run. Without a real change, any are found with a probability of at most about `alpha`.

    The pass rate alone would miss a few broken cases: if 3 of 60 cases no longer pass, the rate moves no farther than
    noise moves it. The repeats of these cases show a real change. So all drops together get a quarter of `alpha`, and
    single cases get a quarter. The pass rate has half, because its two-sided test spends the other half on gains.
    """
    drops_p = chance_of_drops(pairs)
    clear = clear_drops(pairs, alpha=alpha / 4)
    return Losses(compare_rates(pairs, alpha=alpha), drops_p, drops_p <= alpha / 4, clear)


def _worst(pair: CasePair) -> CasePair:
    """Return the pair with the same total of passes and as few of them as possible after the change."""
    (passed, judged), (later, of_later) = pair.before, pair.after
    first = min(passed + later, judged)
    return CasePair((first, judged), (passed + later - first, of_later))


def _result(change: float, p: float, alpha: float) -> Result:
    if p > alpha or not change:
        return "unclear"
    return "better" if change > 0 else "worse"


def _rate(side: tuple[int, int]) -> float:
    passed, judged = side
    return passed / judged


@cache
def _z(share: float) -> float:
    return NormalDist().inv_cdf(share)


def _t(freedom: int) -> float:
    """Return the two-sided 95% point of Student's t (Cornish and Fisher). From 2 degrees on, the error is below 1%."""
    z = _z(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
