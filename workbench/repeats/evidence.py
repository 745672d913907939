"""What a criterion looks at in an execution, as a value that is equal where it saw the same.

Ids of calls and times are left out: they differ between any two executions and no criterion looks at them.
"""

import json
from typing import Any, TypeAlias

from workbench.model.invocation import content_text, intermediate_texts, tool_calls, tool_responses
from workbench.store import CaseRecord

Evidence: TypeAlias = str
Call: TypeAlias = tuple[str, str]
"""The name of a tool and its arguments as JSON; both are foreign text."""


def evidence(record: CaseRecord, criterion: str) -> Evidence:
    """What `criterion` looks at: the calls of tools, the answers, or for all others the whole conversation with what
    tools returned. The user's words are in it, because a simulated user says others each time."""
    # A usage error that loads this module does not wait for the descriptions.
    from workbench.metrics.registry import known

    info = known().get(criterion)
    if info is not None and info.compares_calls:
        # As they were written: for this criterion no arguments are not the same as {}.
        return _json([[(call.name, call.args) for call in tool_calls(turn)] for turn in _actual(record)])
    if info is not None and info.compares_answers:
        return _json([[_said(turn), content_text(turn.get("final_response"))] for turn in _actual(record)])
    return _json([_whole(turn) for turn in _actual(record)])


def trajectories(record: CaseRecord) -> tuple[tuple[Call, ...], ...]:
    """The calls of an execution, turn by turn."""
    return tuple(trajectory(turn) for turn in _actual(record))


def answers(record: CaseRecord) -> tuple[str, ...]:
    """The final answer of each turn."""
    return tuple(content_text(turn.get("final_response")) for turn in _actual(record))


def trajectory(invocation: dict[str, Any]) -> tuple[Call, ...]:
    """The calls of one turn in order."""
    return tuple((call.name, _json(call.args or {})) for call in tool_calls(invocation))


def _whole(invocation: dict[str, Any]) -> list[Any]:
    returned = [(result.get("name"), result.get("response")) for result in tool_responses(invocation)]
    said = [_said(invocation), intermediate_texts(invocation), content_text(invocation.get("final_response"))]
    return [*said, trajectory(invocation), returned]


def _said(invocation: dict[str, Any]) -> str:
    return content_text(invocation.get("user_content"))


def _actual(record: CaseRecord) -> list[dict[str, Any]]:
    """The invocations that came to their end."""
    return [turn.actual for turn in record.turns if isinstance(turn.actual, dict)]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
