"""How firmly a judge stood behind its verdict on one execution, read from what it left in the details.

Details come from journals and reports too, so nothing is taken for granted here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.events import MetricResult
from workbench.history.judge_details import judged_by
from workbench.json_values import mapping
from workbench.store import CaseRecord

_POSITIVE = ("valid", "yes")
_NEGATIVE = ("invalid", "no")


@dataclass(frozen=True, slots=True)
class Firmness:
    """`judged`: somebody was asked; `rules`: it was rules, which say the same each time. `least` is the smallest number
    of votes that one of its questions got, 0 where none was voted on. `split`: the votes on some question disagree;
    `near`: so narrowly that one vote the other way would have turned its answer."""

    judged: bool = False
    rules: bool = False
    least: int = 0
    split: bool = False
    near: bool = False

    @property
    def firm(self) -> bool:
        """Whether this verdict can be taken for the judge's opinion: at least two votes on each question, and none
        that hung on a single one."""
        return self.rules or not self.judged or (self.least >= 2 and not self.near)


def firmness(record: CaseRecord, criterion: str) -> Firmness:
    """How firm the verdict of `criterion` on this execution is."""
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
    """Whether the votes (for, against) disagree and one of them the other way would have turned the answer; a tie is
    against, as in ADK."""
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
    """Votes for and against on each question of a result; what could not be read is no vote."""
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
