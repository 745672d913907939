"""limits: what a case may use. The whole conversation counts, not single turns.

The score is 1.0 if every limit is kept, else 0.0. A figure that is known only in part may exceed its limit, but it
cannot keep it: without another limit that is exceeded, the criterion is then not evaluated.

Details: `{"figures": {name: {"limit", "used"}}}`, with `used` null if it is unknown. Tokens and calls are counts,
seconds the sum of the turns' durations, cost the price of the agent's tokens in the currency of the settings.
Agents that are used as tools count, too. Their cost is not known, because they make no events.
"""

import math
from collections.abc import Sequence
from typing import Any, Self

from pydantic import Field, model_validator

from workbench.criteria.base import Scored, ScoreRequest, status_of
from workbench.criteria.description import CriterionDescription, Options, read_options
from workbench.criteria.efficiency import DURATION, MODEL_CALLS, TOKENS, TOOL_CALLS, measured, model_calls
from workbench.events.events import MetricResult
from workbench.files.prices import Prices, model_cost, money
from workbench.text.counting import amount
from workbench.text.json_values import mapping

_UNITS = {"tokens": "tokens", "seconds": "s", "tool_calls": "tool calls", "model_calls": "model calls"}
_FIGURES = {
    "tokens": TOKENS.name,
    "seconds": DURATION.name,
    "tool_calls": TOOL_CALLS.name,
    "model_calls": MODEL_CALLS.name,
}
_UNKNOWN = {
    "tokens": "no model reported its tokens",
    "seconds": "the time was not measured",
    "model_calls": "the agent does not report its model calls",
    "tool_calls": "ADK hides the inside of an agent that is used as a tool",
    "cost": "no price is known for a model, it reported no tokens, or an agent is used as a tool",
}


def _most(description: str) -> Any:
    return Field(None, ge=0, allow_inf_nan=False, description=description)


class LimitOptions(Options):
    """The most that a case may use. A missing limit does not count."""

    tokens: int | None = _most("Most tokens of the agent's models, input and output together.")
    seconds: float | None = _most("Most seconds of all turns together.")
    tool_calls: int | None = _most("Most calls of tools.")
    model_calls: int | None = _most("Most calls of the agent's models.")
    cost: float | None = _most("Highest cost of the agent's models, by your [prices](settings.md#costs).")

    @model_validator(mode="after")
    def _some_limit(self) -> Self:
        if not self.chosen():
            *names, last = (f"`{name}`" for name in type(self).model_fields)
            raise ValueError(f"`limits` needs {', '.join(names)} or {last}")
        return self

    def chosen(self) -> dict[str, float]:
        """Return the limits that are set, by name."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


DESCRIPTION = CriterionDescription(
    name="limits",
    title="Stays within limits",
    short_name="limits",
    short="limits",
    measures="Whether a case stays within limits of tokens, time, calls and cost.",
    when_to_use="When an agent that answers well may still be too slow or too expensive. `adk eval` skips it.",
    how_to_read="1 if every limit is kept, else 0. The reason names what was exceeded, and by how much. A limit on a "
    "figure that is unknown is not evaluated. Agents that are used as tools count, too; their cost is unknown.",
    score="workbench.criteria.limits:score",
    cause="workbench.criteria.limits:cause",
    options=LimitOptions,
    first_threshold=1.0,
    needs_one_of=tuple(LimitOptions.model_fields),
    only_here=True,
)


def score(request: ScoreRequest) -> Scored:
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
    value = None if unknown and not exceeded else float(not exceeded)
    reason = "; ".join([*exceeded, *(f"{_name(name)} unknown: {_UNKNOWN[name]}" for name in unknown)])
    status = "not_evaluated" if value is None else status_of(value, criterion.threshold)
    details = {
        "figures": {
            name: {"limit": limit, "used": None if name in unknown else used[name][0]} for name, limit in limits.items()
        }
    }
    return Scored(MetricResult(criterion.name, status, value, criterion.threshold, reason, details))


def cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `too many tokens`, `too slow` and the like, or ""."""
    words = {"seconds": "too slow", "cost": "too expensive"}
    for name, figure in mapping(result.details.get("figures")).items():
        if figure["used"] is not None and figure["used"] > figure["limit"]:
            return words.get(name) or f"too many {_name(name)}"
    return ""


def _used(name: str, request: ScoreRequest) -> tuple[float, bool]:
    """Return what the case used of a figure as far as it is known, and whether all of it is known."""
    parts = [part for turn in request.actual for part in _parts(name, turn, request.prices)]
    used = math.fsum(part for part in parts if part is not None)
    inside, is_known = _used_inside(name, used, request)
    used = max(used, inside)
    # Agents that are plain Python report model calls only if they choose to.
    return used, is_known and None not in parts and not (name == "model_calls" and used == 0)


def _used_inside(name: str, used: float, request: ScoreRequest) -> tuple[float, bool]:
    """Return a figure together with the agents that are used as tools, whose calls make no events.

    Also return whether that is all of it.
    """
    if name == "tool_calls":
        inner = [call for calls in request.inner_calls for call in calls or ()]
        hidden = sum(call.get("hidden") is True for call in inner)
        return used + len(inner) - hidden, not hidden
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
    """Return the figure of a turn, in parts. An unknown part is None."""
    if name not in ("tokens", "cost"):
        return [measured(_FIGURES[name], turn)]
    calls = model_calls(turn)
    if name == "cost":
        return [model_cost(call.get("model_version"), call.get("usage_metadata"), prices) for call in calls] or [None]
    return [measured(_FIGURES[name], {"intermediate_data": {"invocation_events": [call]}}) for call in calls] or [None]


def _excess(name: str, used: float, limit: float, prices: Prices) -> str:
    """Return `6,200 tokens, limit 5,000: 1,200 too many`."""
    figures = (used, limit, used - limit)
    if name == "cost":
        words = [money(figure, prices.currency) for figure in figures]
        return f"cost {words[0]}, limit {words[1]}: {words[2]} too much"
    words = [amount(figure) for figure in figures]
    return f"{words[0]} {_UNITS[name]}, limit {words[1]}: {words[2]} too {'long' if name == 'seconds' else 'many'}"


def _name(name: str) -> str:
    return name.replace("_", " ")
