"""The usage of a case: ADK's four figures (calls of tools and models, tokens, seconds), and `limits` for them.

The four figures never decide a verdict. The score of a case is the average of its turns. A figure that was not reported
is null, never zero. The averages of calls and seconds leave such turns out; a token count is divided by all turns as
soon as one turn reported it.

Details of token_usage_v1: `total_tokens`, `input_tokens`, `prompt_tokens`, `cached_tokens`, `tool_use_tokens`,
`output_tokens`, `candidates_tokens`, `reasoning_tokens`. Cached is part of prompt; input = prompt + tool use, output =
candidates + reasoning, total = input + output.

Details of invocation_duration_v1: `total_seconds`, `model_seconds`, `tool_seconds`, `framework_seconds`. The two counts
have no details. A turn and a case have the same keys; the case holds averages.

`limits` counts the whole conversation, not single turns. Its score is 1.0 if every limit is kept, else 0.0. A partly
known figure may exceed its limit, but cannot prove that the limit is kept. The criterion is then not evaluated, unless
a limit is exceeded. Details: `{"figures": {name: {"limit", "used"}}}`, with `used` null if it is unknown. Tokens and
calls are counts, seconds the sum of the turns' durations, cost the price of the agent's tokens in the currency of the
settings. Agents that are used as tools count, too. Their cost is not known, because such agents make no events.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

from pydantic import Field, model_validator

from workbench.criteria.base import Scored, ScoreRequest, scored_result, unscored_result
from workbench.criteria.description import CriterionDescription, Options, read_options
from workbench.events.events import MetricResult
from workbench.files.invocation import recorded_events, tool_calls
from workbench.files.prices import Prices, model_cost, money
from workbench.text.counting import amount
from workbench.text.json_values import mapping

Figures: TypeAlias = dict[str, float | None]
"""Figures of a turn or a case. The first one is the score."""

_COUNTS = {
    "prompt_tokens": "prompt_token_count",
    "cached_tokens": "cached_content_token_count",
    "tool_use_tokens": "tool_use_prompt_token_count",
    "candidates_tokens": "candidates_token_count",
    "reasoning_tokens": "thoughts_token_count",
}
_TOKENS = (
    "total_tokens", "input_tokens", "prompt_tokens", "cached_tokens",
    "tool_use_tokens", "output_tokens", "candidates_tokens", "reasoning_tokens",
)  # fmt: skip
_SECONDS = ("total_seconds", "model_seconds", "tool_seconds", "framework_seconds")


def score(request: ScoreRequest) -> Scored:
    """Return the criterion's figure for each turn and on average."""
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
    "tool_call_count_v1": _Figure(_tool_call_count, ("count",), _mean_of_known, "tool calls"),
    "inference_call_count_v1": _Figure(_inference_call_count, ("count",), _mean_of_known, "model calls"),
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


_UNITS = {"tokens": "tokens", "seconds": "s", "tool_calls": "tool calls", "model_calls": "model calls"}
_LIMITED = {
    "tokens": TOKENS.name,
    "seconds": DURATION.name,
    "tool_calls": TOOL_CALLS.name,
    "model_calls": MODEL_CALLS.name,
}
_UNKNOWN = {
    "tokens": "no model reported its tokens",
    "seconds": "the time was not measured",
    "model_calls": "the agent does not report its model calls",
    "tool_calls": "calls inside an agent that is used as a tool are hidden by ADK, or were not recorded",
    "cost": "no price is known for a model, it reported no tokens, or an agent is used as a tool",
}


def _most(description: str) -> Any:
    return Field(None, ge=0, allow_inf_nan=False, description=description)


class LimitOptions(Options):
    """Limits on what a case may use. A missing limit is not checked."""

    tokens: int | None = _most("Maximum tokens of the agent's models, input and output together.")
    seconds: float | None = _most("Maximum seconds of all turns together.")
    tool_calls: int | None = _most("Maximum number of tool calls.")
    model_calls: int | None = _most("Maximum number of calls of the agent's models.")
    cost: float | None = _most("Maximum cost of the agent's models, by your [prices](settings.md#costs).")

    @model_validator(mode="after")
    def _some_limit(self) -> Self:
        if not self.chosen():
            *names, last = (f"`{name}`" for name in type(self).model_fields)
            raise ValueError(f"`limits` needs {', '.join(names)} or {last}")
        return self

    def chosen(self) -> dict[str, float]:
        """Return the limits that are set, by name."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


LIMITS = CriterionDescription(
    name="limits",
    title="Stays within limits",
    short_name="limits",
    short="limits",
    measures="Whether a case stays within limits of tokens, time, calls and cost.",
    when_to_use="When an agent that answers well may still be too slow or too expensive. `adk eval` skips it.",
    how_to_read="1 if every limit is kept, else 0. The reason names what was exceeded, and by how much. A limit on a "
    "figure that is unknown is not evaluated. Agents that are used as tools count, too; their cost is unknown.",
    score="workbench.criteria.efficiency:score_limits",
    cause="workbench.criteria.efficiency:limits_cause",
    options=LimitOptions,
    first_threshold=1.0,
    needs_one_of=tuple(LimitOptions.model_fields),
    only_here=True,
)


def score_limits(request: ScoreRequest) -> Scored:
    """Compare what the case used with each limit.

    Raises:
        NotScorableError: An option is refused.
    """
    criterion = request.criterion
    limits = read_options(LimitOptions, criterion).chosen()
    used = {name: _used(name, request) for name in limits}
    exceeded = [
        _excess(name, used[name][0], limit, request.prices) for name, limit in limits.items() if used[name][0] > limit
    ]
    unknown = [name for name, limit in limits.items() if not used[name][1] and used[name][0] <= limit]
    reason = "; ".join([*exceeded, *(f"{_name(name)} unknown: {_UNKNOWN[name]}" for name in unknown)])
    figures = {
        name: {"limit": limit, "used": None if name in unknown else used[name][0]} for name, limit in limits.items()
    }
    if unknown and not exceeded:
        return Scored(unscored_result(criterion, "not_evaluated", reason, {"figures": figures}))
    return Scored(scored_result(criterion, float(not exceeded), reason, {"figures": figures}))


def limits_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `too many tokens`, `too slow` and the like, or ""."""
    words = {"seconds": "too slow", "cost": "too expensive"}
    for name, figure in mapping(result.details.get("figures")).items():
        if figure["used"] is not None and figure["used"] > figure["limit"]:
            return words.get(name) or f"too many {_name(name)}"
    return ""


def _used(name: str, request: ScoreRequest) -> tuple[float, bool]:
    """Return the case's known usage of a figure, and whether all of it is known."""
    parts = [part for turn in request.actual for part in _parts(name, turn, request.prices)]
    used = math.fsum(part for part in parts if part is not None)
    inside, is_known = _used_inside(name, used, request)
    used = max(used, inside)
    # Agents that are plain Python report model calls only if they choose to.
    return used, is_known and None not in parts and not (name == "model_calls" and used == 0)


def _used_inside(name: str, used: float, request: ScoreRequest) -> tuple[float, bool]:
    """Return a figure including agents that are used as tools, and whether the figure is complete."""
    if name == "tool_calls":
        inner = [call for calls in request.inner_calls for call in calls or ()]
        hidden = sum(call.get("hidden") is True for call in inner)
        return used + len(inner) - hidden, not hidden and None not in request.inner_calls
    usage = request.usage
    if usage is None:
        return used, True
    if name == "tokens":
        return float(usage.input_tokens + usage.output_tokens), True
    if name == "model_calls":
        return float(usage.model_calls), True
    seen = sum(len(model_calls(turn)) for turn in request.actual)
    return used, name != "cost" or usage.model_calls <= seen


def _parts(name: str, turn: dict[str, Any], prices: Prices) -> list[float | None]:
    """Return the parts whose sum is the figure of a turn. An unknown part is None."""
    calls = model_calls(turn)
    if name == "cost":
        return [model_cost(call.get("model_version"), call.get("usage_metadata"), prices) for call in calls] or [None]
    parts = [turn]
    if name == "tokens":
        parts = [{"intermediate_data": {"invocation_events": [call]}} for call in calls]
    measure = _FIGURES[_LIMITED[name]].measure
    return [next(iter(measure(part).values())) for part in parts] or [None]


def _excess(name: str, used: float, limit: float, prices: Prices) -> str:
    """Return `6,200 tokens, limit 5,000: 1,200 too many`."""
    figures = (used, limit, used - limit)
    if name == "cost":
        words = [money(figure, prices.currency) for figure in figures]
        return f"cost {words[0]}, limit {words[1]}: {words[2]} too much"
    words = [amount(figure) for figure in figures]
    unit = _UNITS[name].removesuffix("s") if used == 1 and name != "seconds" else _UNITS[name]
    return f"{words[0]} {unit}, limit {words[1]}: {words[2]} too {'long' if name == 'seconds' else 'many'}"


def _name(name: str) -> str:
    return name.replace("_", " ")
