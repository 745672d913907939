"""Agreement between judges and the user: per criterion a confusion matrix and Cohen's kappa.

Every entry about the judge counts, each with the answer that it was made for. These are `agent bug`, `judge wrong`,
`right`, and every label that was overridden or confirmed. `expectation wrong`, `flaky` and `won't fix` do not count.
Nor do verdicts that the user gave to all cases of a cause, unseen.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.editing.triage.entry import BY_CAUSE, Entry, Part
from workbench.store.rates import PassRate, pass_rate
from workbench.text.counting import counted


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two raters on the same items.

    `counts` maps pairs of labels, one per rater, to their number. `kappa` is Cohen's kappa: 1 is full agreement, 0 is
    chance. It is None without items, or if both raters always gave the same single label.
    """

    counts: dict[tuple[str, str], int]
    kappa: float | None

    @property
    def items(self) -> int:
        """Number of rated items."""
        return sum(self.counts.values())

    @property
    def agreed(self) -> int:
        """Number of items with the same label from both raters."""
        return sum(count for (one, other), count in self.counts.items() if one == other)


def agreement(pairs: Iterable[tuple[str, str]]) -> Agreement:
    """Return the agreement of two raters, given a pair of labels per item.

    Source: J. Cohen, A Coefficient of Agreement for Nominal Scales, 1960.
    """
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
"""With fewer items, one more item can move kappa by 0.1 or more."""
_VERDICTS = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement of the user with one judge for one criterion.

    `criterion` is "" for the verdicts of cases. `part` is "" for verdicts, else the kind of label. `pairs.counts` has
    (user, judge) as keys. `share` is the rate of agreement with its 95% interval (Wilson).
    """

    criterion: str
    judge: str
    part: Part
    pairs: Agreement
    share: PassRate

    @property
    def labels(self) -> list[str]:
        """The labels that occur, with verdicts first in a fixed order."""
        found = {label for pair in self.pairs.counts for label in pair}
        return [*(name for name in _VERDICTS if name in found), *sorted(found.difference(_VERDICTS))]

    @property
    def false_passes(self) -> int:
        """Number of passes that the user judged as failed."""
        return self.pairs.counts.get(("failed", "passed"), 0)

    @property
    def few(self) -> bool:
        """Whether there are too few items for a meaningful kappa."""
        return self.pairs.items < FEW


def agreements(entries: Iterable[Entry]) -> list[JudgeAgreement]:
    """Return all agreements, by criterion, judge and kind of label.

    The user's verdict is compared with the judge's verdict on the same answer, so entries for old answers count too.
    """
    found: dict[tuple[str, str, Part], list[tuple[str, str]]] = {}
    for entry in {entry.key: entry for entry in entries}.values():
        if entry.by == BY_CAUSE or not _is_about_judge(entry):
            continue
        group = entry.about.criterion, entry.judged.judge, entry.about.part
        found.setdefault(group, []).append((entry.says, entry.judged.says))
    return [
        JudgeAgreement(*group, pairs := agreement(found[group]), pass_rate(pairs.agreed, pairs.items))
        for group in sorted(found)
    ]


def left_out(entries: Iterable[Entry]) -> int:
    """Return the number of entries that do not count because they were given by cause."""
    found = {entry.key: entry for entry in entries}.values()
    return sum(entry.by == BY_CAUSE and _is_about_judge(entry) for entry in found)


def left_out_text(number: int) -> str:
    """Return a sentence about a number of verdicts that do not count."""
    return f"Not counted: {counted(number, 'verdict')} given by cause, unseen."


def _is_about_judge(entry: Entry) -> bool:
    """Return whether the entry has a label of the user and one of the judge."""
    if not entry.says or not entry.judged.says:
        return False
    return bool(entry.about.part) or entry.judged.says in _VERDICTS
