"""What every criterion is given and what it gives back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.counting import counted
from workbench.events import MetricResult, MetricStatus
from workbench.judge.base import Judge, JudgeOptions
from workbench.model.criteria import Criterion


class NotScorableError(ValueError):
    """The request makes no sense for any transcript, such as two conversations of different length."""


@dataclass(frozen=True)
class ScoreRequest:
    """One case to judge by one criterion: invocations are normalised ADK JSON, one a turn; `expected` is None for a
    scenario; `rubrics` are the case's own; `custom` says that the config's `custom_metrics` define the criterion, which
    then replaces one of ADK's with the same name, and `custom_config` is what stands there."""

    criterion: Criterion
    expected: tuple[dict[str, Any], ...] | None
    actual: tuple[dict[str, Any], ...]
    scenario: dict[str, Any] | None = None
    rubrics: tuple[dict[str, Any], ...] = ()
    custom: bool = False
    custom_config: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Scored:
    """The verdict over the case, and one for each turn (empty where single turns were not looked at)."""

    result: MetricResult
    turns: tuple[MetricResult, ...] = ()


class Service(Protocol):
    """Google's evaluation service, for one criterion of one case."""

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> dict[str, Any]:
        """Return a rating: `{"score": float | None, "explanation": str, "rubrics": [{"id", "text", "met",
        "reasoning"}], "error": {"kind", "code", "message"} | None, "seconds", "attempts", "cached"}`. Never raises but
        when cancelled.
        `instance` is `{"prompt", "response", "reference"}` (texts), or for a whole conversation `{"agents": {…},
        "turns": […]}`."""
        ...


class Functions(Protocol):
    """The user's own Python functions, run in a child in the agent's interpreter."""

    async def call(self, kind: str, path: str, payload: Mapping[str, Any]) -> Any:
        """What `path` ("package.module.function") returns, as JSON data. `kind` is "judge" or "metric".

        Raises:
            workbench.agents.functions.FunctionFailedError: it could not be imported, raised, or took the child down.
        """
        ...


class Bench(Protocol):
    """What a criterion that asks somebody may use while it scores one case. Calls made through it are counted."""

    @property
    def all_votes(self) -> bool:
        """Ask every sample, also those that cannot change the verdict any more."""
        ...

    def judge(self, options: JudgeOptions) -> Judge:
        """Raises:
        workbench.judge.base.NotAvailableError: it cannot be asked here.
        """
        ...

    def service(self) -> Service:
        """Raises:
        workbench.judge.base.NotAvailableError: no project or no credentials.
        """
        ...

    def functions(self) -> Functions:
        """Those of the agent of this case."""
        ...


def status_of(score: float | None, threshold: float) -> MetricStatus:
    """ADK's rule: nothing is rounded, score ≥ threshold passes; no score is an error, never a pass."""
    if score is None:
        return "error"
    return "passed" if score >= threshold else "failed"


def turn_pairs(request: ScoreRequest) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(expected, actual) of each turn.

    Raises:
        NotScorableError: there is no reference, or its length is another one.
    """
    if request.expected is None:
        raise NotScorableError(f"{request.criterion.name} compares with a reference, and this case has none")
    same_length(request)
    return list(zip(request.expected, request.actual, strict=True))


def same_length(request: ScoreRequest) -> None:
    """Check that the reference, if there is one, has as many turns as were made.

    Raises:
        NotScorableError: it has more or fewer.
    """
    if request.expected is not None and len(request.expected) != len(request.actual):
        name = request.criterion.name
        raise NotScorableError(f"{name}: {counted(len(request.expected), 'turn')} expected, {len(request.actual)} made")


def mean(scores: Iterable[float | None]) -> float | None:
    """Return a running float sum divided by the count, which is how ADK adds up; None if there is no score. (The
    built-in `sum` is more exact than that from Python 3.12 on.)"""
    total, known = 0.0, [score for score in scores if score is not None]
    for score in known:
        total += score
    return total / len(known) if known else None
