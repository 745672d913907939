"""What every criterion is given and what it gives back."""

from dataclasses import dataclass
from typing import Any

from workbench.events import MetricResult, MetricStatus
from workbench.model.criteria import Criterion


class NotScorableError(ValueError):
    """The request makes no sense for any transcript, such as two conversations of different length."""


@dataclass(frozen=True)
class ScoreRequest:
    """One case to judge by one criterion: invocations are normalised ADK JSON, one a turn; `expected` is None for a
    scenario; `rubrics` are the case's own."""

    criterion: Criterion
    expected: tuple[dict[str, Any], ...] | None
    actual: tuple[dict[str, Any], ...]
    scenario: dict[str, Any] | None = None
    rubrics: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Scored:
    """The verdict over the case, and one for each turn (empty where single turns were not looked at)."""

    result: MetricResult
    turns: tuple[MetricResult, ...] = ()


def status_of(score: float | None, threshold: float) -> MetricStatus:
    """ADK's rule: nothing is rounded, score ≥ threshold passes; no score is an error, never a pass."""
    if score is None:
        return "error"
    return "passed" if score >= threshold else "failed"
