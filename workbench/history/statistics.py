"""Whether two raters agree, beyond what chance would give."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


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
