"""Stored transcripts in which a secret was replaced: which criteria cannot judge them again.

A criterion would see other words than the agent said. Two headers that differ have become the same text, and of an
answer that gave a key away nobody could tell that it did.
"""

from collections.abc import Callable, Mapping, Sequence

from workbench.engine.plan.secrets import REPLACED
from workbench.engine.plan.transcripts import StoredCase
from workbench.events import MetricResult
from workbench.metrics.base import Scored
from workbench.metrics.description import Part
from workbench.metrics.registry import known
from workbench.model.criteria import CriteriaConfig
from workbench.model.invocation import Invocation, content_text, tool_calls

_PARTS: Mapping[Part, Callable[[Invocation], object]] = {
    "message": lambda turn: turn.get("user_content"),
    "answer": lambda turn: content_text(turn.get("final_response")),
    "calls": tool_calls,
}


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
    info = known().get(name)
    if info is None or info.asks is not None or not info.looks_at:
        return True  # It is shown the whole conversation, which is known to hold some.
    return holds_secrets([_PARTS[part](turn) for part in info.looks_at for turn in turns])
