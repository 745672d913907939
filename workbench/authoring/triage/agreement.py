"""How far judges agree with the user: per criterion a confusion matrix and Cohen's kappa.

What counts is every entry that says something about the judge, each for the answer it was made for: `agent bug`, `judge
wrong`, `right` and every label overridden or confirmed. `expectation wrong`, `flaky` and `won't fix` do not.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.authoring.triage.entry import Entry, Part
from workbench.history.statistics import Agreement, agreement
from workbench.rates import PassRate, pass_rate

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
