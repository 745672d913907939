"""What repeats say: how often a case passes, how sure that is, and whether two raters agree."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

_Z = 1.959963984540054
"""The two-sided 95 % point of the normal distribution."""


@dataclass(frozen=True, slots=True)
class PassRate:
    """`passed` of `total` repeats that had a verdict; `low` and `high` the 95 % interval of the rate (Wilson)."""

    passed: int
    total: int
    low: float
    high: float

    @property
    def rate(self) -> float | None:
        """The share that passed, None where nothing had a verdict."""
        return self.passed / self.total if self.total else None

    @property
    def flaky(self) -> bool:
        """Whether some passed and some did not."""
        return 0 < self.passed < self.total


def pass_rate(passed: int, total: int) -> PassRate:
    """The rate with its interval: E. B. Wilson, Probable Inference, 1927. Unlike the textbook's, it is right for few
    repeats and for rates near 0 and 1; of nothing it is 0 to 1.

    Raises:
        ValueError: more passed than there were.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} cannot have passed")
    if total == 0:
        return PassRate(0, 0, 0.0, 1.0)
    share, square = passed / total, _Z * _Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = _Z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    # Rounding must not keep "always" from being possible.
    low = 0.0 if passed == 0 else max(middle - half, 0.0)
    high = 1.0 if passed == total else min(middle + half, 1.0)
    return PassRate(passed, total, low, high)


def pass_hat_k(passed: int, total: int, k: int) -> float | None:
    """pass^k: how likely k executions in a row all pass, estimated without bias from `total` of which `passed` did, as
    the share of all choices of k among them that hold passes only (Yao et al., tau-bench, 2024). None where there are
    fewer than k.

    Raises:
        ValueError: k is below 1, or more passed than there were.
    """
    if k < 1 or not 0 <= passed <= total:
        raise ValueError(f"pass^{k} of {passed} in {total} does not exist")
    return math.comb(passed, k) / math.comb(total, k) if total >= k else None


Sure: TypeAlias = Literal["above", "below"] | None


def sure(rate: PassRate, threshold: float) -> Sure:
    """Whether the whole interval lies on one side of a pass rate: `above` (at it, or over it) or `below`; None while
    it holds the threshold, so that more repeats could decide it."""
    if rate.low >= threshold:
        return "above"
    return "below" if rate.high < threshold else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two raters judged the same items: `counts[(one, other)]`, and Cohen's kappa: 1 is full agreement, 0 what
    chance would give. `kappa` is None where both gave one and the same answer throughout, or nothing was rated."""

    counts: dict[tuple[str, str], int]
    kappa: float | None

    @property
    def items(self) -> int:
        return sum(self.counts.values())

    @property
    def agreed(self) -> int:
        return sum(count for (one, other), count in self.counts.items() if one == other)


def agreement(pairs: Iterable[tuple[str, str]]) -> Agreement:
    """The agreement of two raters; a pair an item, in the same order each time. J. Cohen, A Coefficient of Agreement
    for Nominal Scales, 1960."""
    counts = Counter(pairs)
    total = counts.total()
    if total == 0:
        return Agreement({}, None)
    ones: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for (one, other), count in counts.items():
        ones[one] += count
        others[other] += count
    observed = sum(count for (one, other), count in counts.items() if one == other) / total
    by_chance = sum(ones[label] * others[label] for label in ones) / (total * total)
    kappa = None if by_chance >= 1 else (observed - by_chance) / (1 - by_chance)
    return Agreement(dict(counts), kappa)
