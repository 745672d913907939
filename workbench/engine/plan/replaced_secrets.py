"""Criteria that cannot judge a stored transcript again because a secret was replaced in it.

They would not see the agent's original words. Two different headers have become the same text, and an answer that gave
away a key looks harmless.
"""

from collections.abc import Callable, Mapping, Sequence

from workbench.engine.plan.transcripts import StoredCase
from workbench.events import MetricResult
from workbench.judge.secret_forms import REPLACED
from workbench.metrics.base import Scored
from workbench.metrics.description import Part
from workbench.metrics.registry import descriptions
from workbench.model.criteria import CriteriaConfig
from workbench.model.invocation import Invocation, content_text, tool_calls

_PARTS: Mapping[Part, Callable[[Invocation], object]] = {
    "message": lambda turn: turn.get("user_content"),
    "answer": lambda turn: content_text(turn.get("final_response")),
    "calls": tool_calls,
}


def holds_secrets(conversation: object) -> bool:
    """Return whether a secret was replaced anywhere in JSON data, or in dataclasses with such data."""
    return REPLACED in repr(conversation)


def not_scored_again(stored: StoredCase, config: CriteriaConfig) -> tuple[Scored, ...]:
    """Return `not_evaluated` for each criterion of `config` that would see a replaced secret.

    The transcript of the case must be complete.
    """
    started = stored.started
    assert started is not None  # The transcript is complete.
    actual = [turn.actual for turn in stored.turns]
    if not holds_secrets([started.expected, actual, started.scenario, started.rubrics]):
        return ()
    turns = [*(started.expected or ()), *actual]
    return tuple(
        Scored(MetricResult(item.name, "not_evaluated", None, item.threshold, _REASON))
        for item in config.criteria
        if item.name in config.custom_metrics or _is_shown_secrets(item.name, turns)
    )


_REASON = "a secret was removed from the stored transcript, so the agent's words are incomplete: run the case again"


def _is_shown_secrets(name: str, turns: Sequence[Invocation]) -> bool:
    info = descriptions().get(name)
    if info is None or info.asks is not None or not info.looks_at:
        return True  # The criterion sees the whole conversation, which has a replaced secret.
    return holds_secrets([_PARTS[part](turn) for part in info.looks_at for turn in turns])
