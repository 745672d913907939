"""Results of turns and cases, as every judged criterion builds them.

Anything that could not be judged makes the criterion an error. The score of the rest is shown but never passes.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.criteria.base import Scored, status_of
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

_REASON_LENGTH = 300


def turn_result(
    criterion: Criterion, score: float | None, reason: str, details: dict[str, Any], *, unjudged: bool = False
) -> MetricResult:
    """Return the result of a turn: an error if part of it is `unjudged`, or if there is no score."""
    status = "error" if unjudged else status_of(score, criterion.threshold)
    return MetricResult(criterion.name, status, score, criterion.threshold, short(reason), details)


def not_applicable_turn(criterion: Criterion, reason: str) -> MetricResult:
    """Return the result of a turn that has nothing to judge."""
    return MetricResult(criterion.name, "not_applicable", None, criterion.threshold, reason, {})


def case_result(
    criterion: Criterion,
    turns: Sequence[MetricResult],
    score: float | None,
    reason: str,
    details: dict[str, Any],
    *,
    unjudged: str = "",
) -> Scored:
    """Return the result of the case.

    It is not applicable if all turns are, and an error if one turn is or if `unjudged` names something else that could
    not be judged. `reason` is used if there is no error.
    """
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


def first_failure(turns: Sequence[MetricResult], otherwise: str) -> str:
    """Return the reason of the first turn without the full score, with its number; `otherwise` if there is none."""
    return next(
        (
            f"turn {number}: {turn.reason}"
            for number, turn in enumerate(turns, 1)
            if turn.score is not None and turn.score < 1
        ),
        otherwise,
    )


def samples_text(count: int, of: int) -> str:
    """Return `3 of 5 samples`, or `5 samples` if all were requested."""
    return counted(of, "sample") if count == of else f"{count} of {counted(of, 'sample')}"


def short(reason: str) -> str:
    """Return a reason on one line, cut: text from models can be long."""
    return one_line(reason, limit=_REASON_LENGTH)


def exact_mean(scores: Iterable[float | None]) -> float | None:
    """Return the mean, rounded once at the end, as ADK's rubric and hallucination criteria compute it."""
    known = [score for score in scores if score is not None]
    return statistics.mean(known) if known else None
