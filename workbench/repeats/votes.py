"""Firmness of a judge's verdict in one repeat, read from the stored details.

Details also come from stored runs and reports, so their shape is checked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.events import MetricResult
from workbench.execution import CaseRecord
from workbench.json_values import mapping
from workbench.judge.judge_details import judged_by

_POSITIVE = ("valid", "yes")
_NEGATIVE = ("invalid", "no")


@dataclass(frozen=True, slots=True)
class Firmness:
    """Firmness of a verdict.

    - `judged`: a judge or service was used
    - `rules`: the judge was rules, which always give the same result
    - `least`: smallest number of votes on any question; 0 if there was no vote
    - `split`: votes on a question disagree
    - `near`: they disagree so narrowly that one different vote would have changed the answer
    """

    judged: bool = False
    rules: bool = False
    least: int = 0
    split: bool = False
    near: bool = False

    @property
    def firm(self) -> bool:
        """Whether the verdict can be taken for the judge's opinion.

        Each question has at least two votes, and none depends on a single vote.
        """
        return self.rules or not self.judged or (self.least >= 2 and not self.near)


def firmness(record: CaseRecord, criterion: str) -> Firmness:
    """Return the firmness of the verdict of `criterion` in this repeat."""
    results = list(_results(record, criterion))
    judges = [judged_by({"judge": result.details.get("judge")}) for result in results]
    judged = any(judges) or any(result.details.get("questions") or "attempts" in result.details for result in results)
    counts = [votes for result in results for votes in _votes(result.details)]
    return Firmness(
        judged=judged,
        rules="rules" in judges,
        least=min((yes + no for yes, no in counts), default=0),
        split=any(yes and no for yes, no in counts),
        near=any(map(hangs_on_one, counts)),
    )


def hangs_on_one(votes: tuple[int, int]) -> bool:
    """Return whether the votes (for, against) disagree and one different vote would have changed the answer.

    A tie counts as a vote against, as in ADK.
    """
    yes, no = votes
    if not yes or not no:
        return False
    return yes - 1 <= no + 1 if yes > no else yes + 1 > no - 1


def _results(record: CaseRecord, criterion: str) -> Iterator[MetricResult]:
    if criterion in record.metrics:
        yield record.metrics[criterion]
    for turn in record.turns:
        if criterion in turn.metrics:
            yield turn.metrics[criterion]


def _votes(details: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield the votes for and against on each question of a result. Unreadable replies do not count."""
    rubrics = details.get("rubrics")
    items = [details, mapping(details.get("stop")), *(rubrics if isinstance(rubrics, list) else [])]
    for item in items:
        votes = mapping(item).get("votes")
        if isinstance(votes, dict):
            yes, no = _sum(votes, _POSITIVE), _sum(votes, _NEGATIVE)
            if yes or no:
                yield yes, no


def _sum(votes: Mapping[str, Any], names: tuple[str, ...]) -> int:
    found = (votes.get(name) for name in names)
    return sum(count for count in found if isinstance(count, int) and not isinstance(count, bool) and count > 0)
