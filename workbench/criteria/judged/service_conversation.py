"""Multi-turn criteria rated by Google's evaluation service over a whole conversation.

These are multi_turn_task_success_v1, multi_turn_trajectory_quality_v1 and multi_turn_tool_use_quality_v1. There is one
call per conversation, after its last turn, with what ADK sends: instructions and tools of each agent, and all recorded
events. The service generates rubrics and gives a verdict on each. Its score is shown at the last turn and is the score
of the case. Without a score, or with an error, the criterion is an error.

Details of the last turn: `rubrics` [{"rubric_id", "text", "origin", "score", "verdict", "rationale"}], `explanation`,
`error`, `seconds`, `attempts`, `cached`. Details of the case: `service`, its name for people, and `rubrics`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from workbench.criteria.base import Bench, Scored, ScoreRequest, same_length
from workbench.criteria.judged.outcome import case_result, not_applicable_turn
from workbench.criteria.judged.service_scores import SERVICE, rated_turn
from workbench.criteria.judged.turn_evidence import agents
from workbench.criteria.judged.voting import MAX_TEXT
from workbench.events.events import MetricResult
from workbench.files.invocation import Invocation, recorded_events


async def score(request: ScoreRequest, bench: Bench) -> Scored:
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
