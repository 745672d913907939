"""ADK's four figures on the cost of a turn: tool calls, model calls, tokens, seconds. They never decide a verdict.

The score of a case is the average of its turns. A figure that was not reported is null, never zero. The averages of
calls and seconds leave such turns out; a token count is divided by all turns as soon as one turn reported it.

Details of token_usage_v1: `total_tokens`, `input_tokens`, `prompt_tokens`, `cached_tokens`, `tool_use_tokens`,
`output_tokens`, `candidates_tokens`, `reasoning_tokens`. Cached is part of prompt; input = prompt + tool use, output =
candidates + reasoning, total = input + output.

Details of invocation_duration_v1: `total_seconds`, `model_seconds`, `tool_seconds`, `framework_seconds`. The two counts
have no details. A turn and a case have the same keys; the case holds averages.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from workbench.criteria.base import Scored, ScoreRequest
from workbench.criteria.description import CriterionDescription
from workbench.events.events import MetricResult
from workbench.files.invocation import recorded_events, tool_calls
from workbench.text.counting import amount

Figures: TypeAlias = dict[str, float | None]
"""Figures of a turn or a case. The first one is the score."""

_COUNTS = {
    "prompt_tokens": "prompt_token_count",
    "cached_tokens": "cached_content_token_count",
    "tool_use_tokens": "tool_use_prompt_token_count",
    "candidates_tokens": "candidates_token_count",
    "reasoning_tokens": "thoughts_token_count",
}
_COUNT = ("count",)
_TOKENS = (
    "total_tokens",
    "input_tokens",
    "prompt_tokens",
    "cached_tokens",
    "tool_use_tokens",
    "output_tokens",
    "candidates_tokens",
    "reasoning_tokens",
)
_SECONDS = ("total_seconds", "model_seconds", "tool_seconds", "framework_seconds")


def score(request: ScoreRequest) -> Scored:
    """Return the figure that the criterion names, for each turn and on average."""
    name = request.criterion.name
    figure = _FIGURES[name]
    turns = [figure.measure(actual) for actual in request.actual]
    overall = {key: figure.average([turn[key] for turn in turns]) for key in figure.keys}
    each = " per turn" if len(turns) > 1 else ""
    return Scored(_result(name, overall, figure.unit, each), tuple(_result(name, turn, figure.unit) for turn in turns))


def _result(name: str, figures: Figures, unit: str, suffix: str = "") -> MetricResult:
    value = next(iter(figures.values()))
    words = unit.removesuffix("s") if value == 1 and unit != "s" else unit
    reason = "not reported" if value is None else f"{amount(value)} {words}{suffix}"
    return MetricResult(name, "informational", value, None, reason, dict(figures) if len(figures) > 1 else {})


def _tool_call_count(invocation: dict[str, Any]) -> Figures:
    return {"count": float(len(tool_calls(invocation)))}


def _inference_call_count(invocation: dict[str, Any]) -> Figures:
    known = recorded_events(invocation) is not None
    return {"count": float(len(model_calls(invocation))) if known else None}


def _token_usage(invocation: dict[str, Any]) -> Figures:
    reports = [event["usage_metadata"] for event in recorded_events(invocation) or () if event.get("usage_metadata")]
    figures: Figures = dict.fromkeys(_TOKENS)
    for figure, key in _COUNTS.items():
        figures[figure] = _sum(report.get(key) for report in reports)
    figures["input_tokens"] = _sum((figures["prompt_tokens"], figures["tool_use_tokens"]))
    figures["output_tokens"] = _sum((figures["candidates_tokens"], figures["reasoning_tokens"]))
    figures["total_tokens"] = _sum((figures["input_tokens"], figures["output_tokens"]))
    return figures


def _duration(invocation: dict[str, Any]) -> Figures:
    total, model, tool = (invocation.get(key) for key in ("duration", "model_duration", "tool_duration"))
    if total is None:
        return dict.fromkeys(_SECONDS)
    framework = None if model is None or tool is None else round(max(total - model - tool, 0.0), 3)
    return dict(zip(_SECONDS, (total, model, tool, framework), strict=True))


def model_calls(invocation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a turn that answer a model call."""
    events = recorded_events(invocation) or ()
    return [
        event for event in events if event.get("usage_metadata") is not None or event.get("model_version") is not None
    ]


def measured(name: str, invocation: dict[str, Any]) -> float | None:
    """Return a turn's figure by its name in ADK, such as `token_usage_v1`, or None if it was not reported."""
    return next(iter(_FIGURES[name].measure(invocation).values()))


def _sum(counts: Any) -> float | None:
    reported = [count for count in counts if count is not None]
    return float(sum(reported)) if reported else None


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean_over_all_turns(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if known else None


def _mean_to_milliseconds(values: Sequence[float | None]) -> float | None:
    average = _mean_of_known(values)
    return None if average is None else round(average, 3)


class _Figure(NamedTuple):
    measure: Callable[[dict[str, Any]], Figures]
    keys: tuple[str, ...]
    average: Callable[[Sequence[float | None]], float | None]
    unit: str


_FIGURES = {
    "tool_call_count_v1": _Figure(_tool_call_count, _COUNT, _mean_of_known, "tool calls"),
    "inference_call_count_v1": _Figure(_inference_call_count, _COUNT, _mean_of_known, "model calls"),
    "token_usage_v1": _Figure(_token_usage, _TOKENS, _mean_over_all_turns, "tokens"),
    "invocation_duration_v1": _Figure(_duration, _SECONDS, _mean_to_milliseconds, "s"),
}


def _informational(
    name: str, title: str, measures: str, how_to_read: str, unit: str, limit: str
) -> CriterionDescription:
    return CriterionDescription(
        name=name,
        title=title,
        measures=measures,
        when_to_use="Measured in every run. It never decides a verdict, and a config cannot name it.",
        how_to_read=how_to_read,
        score="workbench.criteria.efficiency:score",
        unit=unit,
        informational=True,
        limit=limit,
    )


TOOL_CALLS = _informational(
    "tool_call_count_v1",
    "Tool calls",
    "How many tools the agent called.",
    "Calls per turn. Fewer is cheaper.",
    "a count",
    "tool_calls",
)
MODEL_CALLS = _informational(
    "inference_call_count_v1",
    "Model calls",
    "How many times the agent called a model.",
    "Calls per turn. Fewer is cheaper. Empty if the agent does not report them.",
    "a count",
    "model_calls",
)
TOKENS = _informational(
    "token_usage_v1",
    "Tokens",
    "How many tokens the agent's models read and wrote.",
    "Tokens per turn, input and output together. Fewer is cheaper. Empty if no model reported any.",
    "a count",
    "tokens",
)
DURATION = _informational(
    "invocation_duration_v1",
    "Seconds",
    "How long a turn took, and how much of that time models, tools and the framework used.",
    "Seconds per turn. They also depend on network and load, so look for large changes only.",
    "seconds",
    "seconds",
)
