"""How far judges agree with the user: per criterion a confusion matrix and Cohen's kappa.

What counts is every entry that says something about the judge, each for the answer it was made for: `agent bug`, `judge
wrong`, `right` and every label overridden or confirmed. `expectation wrong`, `flaky` and `won't fix` do not.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.authoring.triage.entry import Entry, Part
from workbench.rates import PassRate, pass_rate


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


FEW = 20
"""Below so many items kappa moves by a tenth and more with each further one."""
_VERDICTS = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The user against one judge for one criterion ("": the verdicts of cases), over verdicts (`part` "") or single
    labels. `pairs.counts` is keyed (user, judge). `share` is how often they agree, with its 95 % interval (Wilson)."""

    criterion: str
    judge: str
    part: Part
    pairs: Agreement
    share: PassRate

    @property
    def labels(self) -> list[str]:
        """The labels that occur, verdicts in a fixed order."""
        found = {label for pair in self.pairs.counts for label in pair}
        return [*(name for name in _VERDICTS if name in found), *sorted(found.difference(_VERDICTS))]

    @property
    def false_passes(self) -> int:
        """How many passed that the user says should not have."""
        return self.pairs.counts.get(("failed", "passed"), 0)

    @property
    def few(self) -> bool:
        """Whether there are too few items for kappa to mean much."""
        return self.pairs.items < FEW


def agreements(entries: Iterable[Entry]) -> list[JudgeAgreement]:
    """All there is, by criterion, judge and kind of label. The user's word is compared with what was judged of the same
    answer, so an entry for an earlier answer counts as well."""
    found: dict[tuple[str, str, Part], list[tuple[str, str]]] = {}
    for entry in {entry.key: entry for entry in entries}.values():
        if not entry.says or not entry.judged.says:
            continue
        if not entry.about.part and entry.judged.says not in _VERDICTS:
            continue
        group = entry.about.criterion, entry.judged.judge, entry.about.part
        found.setdefault(group, []).append((entry.says, entry.judged.says))
    return [
        JudgeAgreement(*group, pairs := agreement(found[group]), pass_rate(pairs.agreed, pairs.items))
        for group in sorted(found)
    ]
