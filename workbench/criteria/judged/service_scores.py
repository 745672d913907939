"""safety_v1 and response_evaluation_score: ratings of each final answer by Google's evaluation service.

Each turn is one call. The case scores the mean of its turns (a running sum, as in ADK). If the service returns no score
or an error for a turn, the criterion is an error.

Details of a turn: `explanation`, `error`, `seconds`, `attempts`, `cached`, as returned by the service's child process.
Details of the case: `service`, its name for people.
"""

import asyncio
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workbench.criteria.base import Bench, Scored, ScoreRequest, mean, same_length, turn_pairs
from workbench.criteria.judged.outcome import case_result, turn_result
from workbench.criteria.judged.turn_texts import answer_text, user_text
from workbench.criteria.judged.voting import MAX_TEXT
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation
from workbench.text.scores import amount

SERVICE = "Google's evaluation service (Vertex AI)"
_NO_MORE: Mapping[str, Any] = MappingProxyType({})


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Return the service's score of each turn, and their mean.

    Raises:
        NotScorableError: The conversations differ in length, or a required reference is missing.
        NotAvailableError: The project or the credentials are missing.
    """
    criterion = request.criterion
    instances = _instances(request)
    service = bench.service()
    rated = await asyncio.gather(*(service.rate(criterion.name, instance) for instance in instances))
    turns = [rated_turn(criterion, rating) for rating in rated]
    overall = mean(turn.score for turn in turns)
    scored = [turn for turn in turns if turn.score is not None]
    lowest = min(scored, key=lambda turn: turn.score or 0.0, default=turns[0])
    reason = f"turn {turns.index(lowest) + 1}: {lowest.reason}"
    return case_result(criterion, turns, overall, reason, {"service": SERVICE})


def _instances(request: ScoreRequest) -> list[dict[str, str | None]]:
    if request.criterion.name == "response_evaluation_score":
        return [_instance(actual, answer_text(expected)) for expected, actual in turn_pairs(request)]
    same_length(request)
    if request.expected is None:
        return [_instance(turn, None) for turn in request.actual]
    pairs = zip(request.expected, request.actual, strict=True)
    return [_instance(actual, answer_text(expected)) for expected, actual in pairs]


def _instance(turn: Invocation, reference: str | None) -> dict[str, str | None]:
    return {"prompt": user_text(turn), "response": answer_text(turn), "reference": reference}


def rated_turn(
    criterion: Criterion, rating: Mapping[str, Any], more: Mapping[str, Any] = _NO_MORE, prefix: str = ""
) -> MetricResult:
    """Return the verdict for a rating of the service.

    `more` holds further details. `prefix` comes before the service's explanation in the reason.
    """
    error = rating.get("error")
    value = None if error else _number(rating.get("score"))
    explanation = str(rating.get("explanation") or "")[:MAX_TEXT]
    details = {
        "explanation": explanation,
        "error": error,
        **{key: rating.get(key) for key in ("seconds", "attempts", "cached")},
        **more,
    }
    if error:
        reason = f"the service failed: {error.get('message') or error.get('code') or error.get('kind')}"
    elif value is None:
        reason = "the service returned no score"
    else:
        why = "; ".join(filter(None, (prefix, explanation)))
        reason = f"rated {amount(value)}" + (f": {why}" if why else "")
    return turn_result(criterion, value, reason, details)


def _number(value: Any) -> float | None:
    """Return a score as a float, or None for booleans, texts, NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
