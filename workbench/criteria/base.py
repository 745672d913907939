"""Input and result types shared by all criteria."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.events.events import InnerCalls, MetricResult, MetricStatus, Usage
from workbench.files.criteria import Criterion
from workbench.files.prices import Prices
from workbench.judges.base import Judge, JudgeOptions
from workbench.text.counting import counted

WHOLE = "whole_conversation"
"""Key of a custom metric's details. It is true if its verdict has no results per turn."""


class NotScorableError(ValueError):
    """A request that cannot be scored, for example because the two conversations differ in length."""


@dataclass(frozen=True)
class ScoreRequest:
    """One case to judge by one criterion."""

    criterion: Criterion
    expected: tuple[dict[str, Any], ...] | None
    """The expected ADK invocations, normalised, as JSON, one per turn. None for a scenario.

    In a turn of a dataset, a part without an expectation is null.
    """
    actual: tuple[dict[str, Any], ...]
    """The agent's ADK invocations, normalised, as JSON, one per turn."""
    scenario: dict[str, Any] | None = None
    """The plan of a simulated user, or None for a case with fixed messages."""
    rubrics: tuple[dict[str, Any], ...] = ()
    """The rubrics of the case."""
    custom: bool = False
    """Whether the config's `custom_metrics` define the criterion. It then replaces ADK's criterion of the same name."""
    custom_config: Mapping[str, Any] | None = None
    """The entry of the criterion in `custom_metrics`, or None."""
    final_session_state: dict[str, Any] | None = None
    """The session state expected at the end, or None if the case expects none."""
    end_state: dict[str, Any] | None = None
    """The real session state at the end, or None if it is not known."""
    prices: Prices = field(default_factory=Prices)
    """The prices of models."""
    dataset_case: dict[str, Any] | None = None
    """The case as in its google-agents-cli dataset, or None if it is not from one."""
    inner_calls: tuple[InnerCalls, ...] = ()
    """The calls inside agents that are used as tools, one item per turn. () if they are not known."""
    usage: Usage | None = None
    """The usage of the agent and of the agents that it uses as tools. None if it is not known."""


@dataclass(frozen=True)
class Scored:
    """The verdict on the case and one verdict per turn (empty if turns are not judged one by one)."""

    result: MetricResult
    turns: tuple[MetricResult, ...] = ()


class Service(Protocol):
    """Google's evaluation service, for one criterion of one case."""

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> dict[str, Any]:
        """Rate one criterion of one case.

        `instance` is `{"prompt", "response", "reference"}` (texts), or `{"agents": {…}, "turns": […]}` for a whole
        conversation. The result is `{"score": float | None, "explanation": str, "rubrics": [{"id", "text", "met",
        "reasoning"}], "error": {"kind", "code", "message"} | None, "seconds", "attempts", "cached"}`. Failures are
        reported in `error`; only cancellation raises.
        """


class Functions(Protocol):
    """Calls of the user's own Python functions, in a child process that uses the agent's interpreter."""

    async def call(self, kind: str, path: str, payload: Mapping[str, Any]) -> Any:
        """Call the function at `path` ("package.module.function") and return its result as JSON data.

        `kind` is "judge", "metric" or "evaluate".

        Raises:
            FunctionFailedError: The import failed, the function raised or took too long, or the child ended.
        """


class Bench(Protocol):
    """The judges, services and functions that a criterion may use while it scores one case. All calls are counted."""

    @property
    def all_votes(self) -> bool:
        """Whether to request every sample, even if the verdict is already decided."""

    def judge(self, options: JudgeOptions) -> Judge:
        """Return a judge with these options.

        Raises:
            workbench.judges.base.NotAvailableError: The judge cannot be used here.
        """

    def service(self) -> Service:
        """Return Google's evaluation service.

        Raises:
            workbench.judges.base.NotAvailableError: The project, the credentials or the extra is missing.
        """

    def functions(self) -> Functions:
        """Return the functions of this case's agent."""


def status_of(score: float | None, threshold: float) -> MetricStatus:
    """Return `passed` if the unrounded score is at or above the threshold, else `failed`. No score is an `error`."""
    if score is None:
        return "error"
    return "passed" if score >= threshold else "failed"


def scored_result(
    criterion: Criterion, score: float | None, reason: str = "", details: dict[str, Any] | None = None
) -> MetricResult:
    """Return a result whose status follows from its score (see `status_of`)."""
    status = status_of(score, criterion.threshold)
    return MetricResult(criterion.name, status, score, criterion.threshold, reason, details or {})


def unscored_result(
    criterion: Criterion, status: MetricStatus, reason: str, details: dict[str, Any] | None = None
) -> MetricResult:
    """Return a result without a score."""
    return MetricResult(criterion.name, status, None, criterion.threshold, reason, details or {})


def turn_pairs(request: ScoreRequest) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the pair (expected, actual) of each turn.

    Raises:
        NotScorableError: There is no reference, or it has a different number of turns.
    """
    if request.expected is None:
        raise NotScorableError(f"{request.criterion.name} needs a reference, and this case has none")
    require_same_length(request)
    return list(zip(request.expected, request.actual, strict=True))


def require_same_length(request: ScoreRequest) -> None:
    """Check that the reference, if there is one, has as many turns as the transcript.

    Raises:
        NotScorableError: The numbers differ.
    """
    if request.expected is not None and len(request.expected) != len(request.actual):
        name = request.criterion.name
        raise NotScorableError(f"{name}: expected {counted(len(request.expected), 'turn')}, got {len(request.actual)}")


def finite(value: Any) -> float | None:
    """Return a score as a float, or None if it is not a finite number. Booleans are not numbers here."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if number and math.isfinite(value) else None
    except OverflowError:
        return None


def mean(scores: Iterable[float | None]) -> float | None:
    """Return the mean as ADK computes it: a running float sum divided by the count, or None without any score.

    Scores that are None are left out. The built-in `sum` is more exact from Python 3.12 on, so its results could differ
    from ADK's.
    """
    total, known = 0.0, [score for score in scores if score is not None]
    for score in known:
        total += score
    return total / len(known) if known else None
