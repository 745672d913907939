"""Criteria that Google's evaluation service rates: safety_v1, response_evaluation_score and multi_turn_….

For the first two, each turn is one call. The case scores the mean of its turns (a running sum, as in ADK). If the
service returns no score or an error for a turn, the criterion is an error.

For multi_turn_task_success_v1, multi_turn_trajectory_quality_v1 and multi_turn_tool_use_quality_v1, there is one call
per conversation, after its last turn, with what ADK sends: instructions and tools of each agent, and all recorded
events. The service generates rubrics and gives a verdict on each. Its score is shown at the last turn and is the score
of the case. Without a score, or with an error, the criterion is an error.

Details of a rated turn: `explanation`, `error`, `seconds`, `attempts`, `cached`, as returned by the service's child
process, and for conversations `rubrics` [{"rubric_id", "text", "origin", "score", "verdict", "rationale"}]. Details of
the case: `service`, its name for people, and for conversations `rubrics`.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from workbench.criteria.base import Bench, Scored, ScoreRequest, mean, same_length, turn_pairs
from workbench.criteria.judged.evidence import agents, answer_text, user_text
from workbench.criteria.judged.voting import MAX_TEXT, case_result, not_applicable_turn, turn_result
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation, recorded_events
from workbench.text.counting import amount

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


async def score_conversation(request: ScoreRequest, bench: Bench) -> Scored:
    """Return the service's score of the conversation.

    Raises:
        NotScorableError: The reference has a different length.
        NotAvailableError: The project or the credentials are missing.
    """
    criterion = request.criterion
    same_length(request)
    rating = await bench.service().rate(criterion.name, conversation_sent(request.actual))
    rubrics = list(_rubrics(rating.get("rubrics")))
    last = rated_turn(criterion, rating, {"rubrics": rubrics}, _rubric_summary(rubrics))
    unrated = [not_applicable_turn(criterion, "rated once, after the last turn")] * (len(request.actual) - 1)
    turns: list[MetricResult] = [*unrated, last]
    return case_result(criterion, turns, last.score, last.reason, {"service": SERVICE, "rubrics": rubrics})


def conversation_sent(turns: Sequence[Invocation]) -> dict[str, Any]:
    """Return a conversation in the shape of the client's `AgentData`, as ADK builds it.

    Random ids are replaced by numbers, so that the same conversation gives the same question in the next run.
    """
    ids: dict[str, str] = {}
    known: dict[str, dict[str, Any]] = {}
    for turn in turns:
        for name, agent in agents(turn).items():
            known.setdefault(name, agent)
    configs = {
        name: {
            "agent_id": agent.get("name") or name,
            "instruction": agent.get("instructions"),
            "tools": agent.get("tool_declarations"),
        }
        for name, agent in known.items()
    }
    return {"agents": configs, "turns": [_turn(number, turn, ids) for number, turn in enumerate(turns)]}


def _turn(number: int, turn: Invocation, ids: dict[str, str]) -> dict[str, Any]:
    events = [{"author": "user", "content": turn.get("user_content")}]
    events += [
        {"author": event.get("author"), "content": _with_ids(event["content"], ids)}
        for event in recorded_events(turn) or ()
        if event.get("content") is not None
    ]
    events.append({"author": "agent", "content": turn.get("final_response")})
    return {"turn_index": number, "turn_id": f"turn_{number + 1}", "events": events}


def _with_ids(content: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """Replace the random ids of calls and their results by numbers in their order."""
    return {**content, "parts": [_part(part, ids) for part in content.get("parts") or ()]}


def _part(part: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    changed = dict(part)
    for key in ("function_call", "function_response"):
        if isinstance(inner := part.get(key), dict) and inner.get("id"):
            changed[key] = {**inner, "id": ids.setdefault(inner["id"], f"call_{len(ids) + 1}")}
    return changed


def _rubrics(given: Any) -> Iterator[dict[str, Any]]:
    for number, rubric in enumerate(given if isinstance(given, list) else ()):
        name = str(rubric.get("text") or rubric.get("id") or f"rubric_{number}")[:MAX_TEXT]
        yield {
            "rubric_id": name,
            "text": name,
            "origin": "service",
            "score": 1.0 if rubric.get("met") else 0.0,
            "verdict": "yes" if rubric.get("met") else "no",
            "rationale": str(rubric.get("reasoning") or "")[:MAX_TEXT],
        }


def _rubric_summary(rubrics: Sequence[dict[str, Any]]) -> str:
    """Return how many rubrics of the service are met, and the first that is not."""
    if not rubrics:
        return ""
    missed = [rubric for rubric in rubrics if not rubric["score"]]
    summary = f"{len(rubrics) - len(missed)} of {len(rubrics)} rubrics of the service met"
    if not missed:
        return summary
    rationale = f" ({missed[0]['rationale']})" if missed[0]["rationale"] else ""
    return f"{summary}, not: {missed[0]['rubric_id']}{rationale}"
