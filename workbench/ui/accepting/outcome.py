"""What the criteria that compare with a reference say of a transcript, before and after something is accepted."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.events import MetricResult
from workbench.metrics.base import ScoreRequest
from workbench.metrics.registry import score
from workbench.model.criteria import Criterion

TRAJECTORY, WORDS = "tool_trajectory_avg_score", "response_match_score"
_COMPARED_AT_ONCE = (TRAJECTORY, WORDS)
"""They are quick and ask nobody."""
_LONGEST = 200_000
"""Characters of a transcript, above which nothing is scored while somebody chooses."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A criterion's result before and after."""

    name: str
    before: MetricResult
    after: MetricResult


def outcomes(
    criteria: Sequence[Criterion], before: Mapping[str, Any], after: Mapping[str, Any], actual: Sequence[Any]
) -> list[Outcome]:
    """For each criterion that can be told at once: `before` and `after` are a case's JSON, `actual` its transcript. []
    where the transcript is not complete, or too large to be scored on the way; for a thread."""
    whole = [turn for turn in actual if turn is not None]
    if len(json.dumps(whole, default=str)) > _LONGEST:
        return []
    sides = [_turns(case) for case in (before, after)]
    if any(side is None or len(side) != len(whole) for side in sides):
        return []
    found = []
    for criterion in criteria:
        if criterion.name in _COMPARED_AT_ONCE:
            results = [score(ScoreRequest(criterion, side, tuple(whole))).result for side in sides]
            found.append(Outcome(criterion.name, *results))
    return found


def _turns(case: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    from workbench.model.validation import validate_case

    value, _ = validate_case(json.dumps(case).encode("ascii"))
    turns = value.get("conversation") if isinstance(value, dict) else None
    return None if turns is None else tuple(turns)


def concerns(kind: str, failed: Iterable[str]) -> list[str]:
    """Which of the failed criteria a hunk of this kind is about."""
    if kind == "answer":
        words = {WORDS, "final_response_match_v2", "response_evaluation_score"}
    elif kind in ("text", "text added", "text removed", "result"):
        words = set()
    else:
        words = {TRAJECTORY}
    return [name for name in failed if name in words]
