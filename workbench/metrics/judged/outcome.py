"""From the verdicts of turns to the verdict of a case, as every judged criterion draws it.

What could not be judged makes the criterion an error: its score is that of the rest, shown and never passed.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.events import MetricResult
from workbench.metrics.base import Scored, status_of
from workbench.model.criteria import Criterion
from workbench.text import one_line

_REASON_LENGTH = 300


def turn_result(
    criterion: Criterion, score: float | None, reason: str, details: dict[str, Any], *, unjudged: bool = False
) -> MetricResult:
    """The verdict of a turn: an error if something in it is `unjudged`, or if there is no score."""
    status = "error" if unjudged else status_of(score, criterion.threshold)
    return MetricResult(criterion.name, status, score, criterion.threshold, short(reason), details)


def nothing_in_turn(criterion: Criterion, reason: str) -> MetricResult:
    """A turn that gives the criterion nothing to judge."""
    return MetricResult(criterion.name, "not_applicable", None, criterion.threshold, reason, {})


def over_case(
    criterion: Criterion,
    turns: Sequence[MetricResult],
    score: float | None,
    reason: str,
    details: dict[str, Any],
    *,
    unjudged: str = "",
) -> Scored:
    """The verdict of the case: not applicable if all turns are, an error if one is or if something else is
    `unjudged`. `reason` is for a case without errors."""
    faults = [f"turn {number}: {turn.reason}" for number, turn in enumerate(turns, 1) if turn.status == "error"]
    faults += [unjudged] if unjudged else []
    if faults:
        result = MetricResult(criterion.name, "error", score, criterion.threshold, short(faults[0]), details)
    elif turns and all(turn.status == "not_applicable" for turn in turns):
        result = MetricResult(criterion.name, "not_applicable", None, criterion.threshold, turns[0].reason, details)
    else:
        status = status_of(score, criterion.threshold)
        result = MetricResult(criterion.name, status, score, criterion.threshold, short(reason), details)
    return Scored(result, tuple(turns))


def first_below(turns: Sequence[MetricResult], otherwise: str) -> str:
    """The reason of the first turn that has not the full score, with its number; `otherwise` if all have."""
    return next(
        (
            f"turn {number}: {turn.reason}"
            for number, turn in enumerate(turns, 1)
            if turn.score is not None and turn.score < 1
        ),
        otherwise,
    )


def asked_of(asked: int, of: int) -> str:
    """`3 of 5 asked`, or `5 asked`."""
    return f"{asked} asked" if asked == of else f"{asked} of {of} asked"


def short(reason: str) -> str:
    """A reason on one line; foreign words in it are long at times."""
    return one_line(reason, limit=_REASON_LENGTH)


def exact_mean(scores: Iterable[float | None]) -> float | None:
    """Return the mean with one rounding at the end, as ADK's criteria about rubrics and hallucinations have it."""
    known = [score for score in scores if score is not None]
    return statistics.mean(known) if known else None
