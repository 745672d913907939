"""Sums of what judges, services and simulated users cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.events import Usage
from workbench.metrics.base import Scored

_TALLY = {
    "calls": "judge_calls",
    "cached": "judge_calls_cached",
    "input_tokens": "judge_input_tokens",
    "output_tokens": "judge_output_tokens",
}


def judge_usage(scored: Sequence[Scored]) -> Usage:
    """Return what judges and services cost for these verdicts, by the tally in the details of each."""
    tallies = [tally for one in scored if (tally := one.result.details.get("tally"))]
    if not tallies:
        return Usage()
    return Usage(**{name: sum(tally.get(key) or 0 for tally in tallies) for key, name in _TALLY.items()})


def question_usage(question: Mapping[str, Any]) -> Usage:
    """Return what the replies to a question (`workbench.judge.base.record`) cost."""
    replies = [reply for reply in question.get("replies") or () if isinstance(reply, dict)]
    asked = [reply for reply in replies if not reply.get("cached")]
    return Usage(
        judge_calls=len(asked),
        judge_calls_cached=len(replies) - len(asked),
        judge_input_tokens=sum(reply.get("input_tokens") or 0 for reply in asked),
        judge_output_tokens=sum(reply.get("output_tokens") or 0 for reply in asked),
    )


def with_judges(usage: Usage, judges: Usage) -> Usage:
    """Return `usage` with what judges cost added to it."""
    if judges == Usage():
        return usage
    return replace(usage, **{name: getattr(usage, name) + getattr(judges, name) for name in _TALLY.values()})
