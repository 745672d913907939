"""Stored transcripts in which a secret was replaced: which criteria cannot judge them again.

A criterion would see other words than the agent said. Two headers that differ have become the same text, and of an
answer that gave a key away nobody could tell that it did.
"""

from collections.abc import Callable, Mapping, Sequence

from workbench.engine.plan.secrets import REPLACED
from workbench.engine.plan.transcripts import StoredCase
from workbench.events import MetricResult
from workbench.metrics.base import Scored
from workbench.model.criteria import CriteriaConfig
from workbench.model.invocation import Invocation, content_text, tool_calls

_LOOKS_AT: Mapping[str, Callable[[Invocation], object]] = {
    "tool_trajectory_avg_score": tool_calls,
    "response_match_score": lambda turn: content_text(turn.get("final_response")),
}
"""What is looked at of a turn by the criteria that compute; any other is shown the whole conversation."""


def holds_secrets(conversation: object) -> bool:
    """Whether a secret was replaced anywhere in it: JSON data, or dataclasses that hold some."""
    return REPLACED in repr(conversation)


def not_scored_again(stored: StoredCase, config: CriteriaConfig) -> tuple[Scored, ...]:
    """`not_evaluated` for each criterion of `config` that would look at a replaced secret. The case's transcript is
    complete."""
    started = stored.started
    assert started is not None  # Its transcript is complete.
    actual = [turn.actual for turn in stored.turns]
    if not holds_secrets([started.expected, actual, started.scenario, started.rubrics]):
        return ()
    turns = [*(started.expected or ()), *actual]
    return tuple(
        Scored(MetricResult(item.name, "not_evaluated", None, item.threshold, _REASON))
        for item in config.criteria
        if item.name in config.custom_metrics or _is_shown_secrets(item.name, turns)
    )


_REASON = "a secret was replaced in the stored transcript, so the agent's own words are not known: run the case again"


def _is_shown_secrets(name: str, turns: Sequence[Invocation]) -> bool:
    looks_at = _LOOKS_AT.get(name)
    return looks_at is None or holds_secrets([looks_at(turn) for turn in turns])
