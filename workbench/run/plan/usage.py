"""Sums of the usage of judges, services and simulated users."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.criteria.base import Scored
from workbench.events.events import Usage

_TALLY = {
    "calls": "judge_calls",
    "cached": "judge_calls_cached",
    "input_tokens": "judge_input_tokens",
    "output_tokens": "judge_output_tokens",
}


def judge_usage(scored: Sequence[Scored]) -> Usage:
    """Return the usage of judges and services for these verdicts, from the tally in their details."""
    tallies = [tally for one in scored if (tally := one.result.details.get("tally"))]
    if not tallies:
        return Usage()
    return Usage(**{name: sum(tally.get(key) or 0 for tally in tallies) for key, name in _TALLY.items()})


def question_usage(question: Mapping[str, Any]) -> Usage:
    """Return the usage of the replies to a question (`workbench.judges.base.record`)."""
    replies = [reply for reply in question.get("replies") or () if isinstance(reply, dict)]
    uncached = [reply for reply in replies if not reply.get("cached")]
    return Usage(
        judge_calls=len(uncached),
        judge_calls_cached=len(replies) - len(uncached),
        judge_input_tokens=sum(reply.get("input_tokens") or 0 for reply in uncached),
        judge_output_tokens=sum(reply.get("output_tokens") or 0 for reply in uncached),
    )


def with_judges(usage: Usage, judges: Usage) -> Usage:
    """Return `usage` plus the judge calls and tokens of `judges`."""
    if judges == Usage():
        return usage
    return replace(usage, **{name: getattr(usage, name) + getattr(judges, name) for name in _TALLY.values()})
