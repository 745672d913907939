"""Cost of judges and other models, from the user's own price table.

No price is built in, because prices change. The table is in the settings (`workbench.files.settings`):

    [prices]
    currency = "EUR"                                       # USD by default
    "gemini-2.5-flash" = { input = 0.30, output = 2.50 }   # money per million tokens
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.text.json_values import mapping, objects

if TYPE_CHECKING:
    from workbench.events.events import FaultHandling, MetricResult, UserSimulated

CURRENCY = "USD"
_MILLION = 1_000_000
_LONGEST_CURRENCY = 8
_HIGHEST_PRICE = 1e9


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens that a model reads (`input`) and writes (`output`)."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model, all in one currency."""

    models: Mapping[str, Price] = field(default_factory=dict)
    currency: str = CURRENCY

    def __bool__(self) -> bool:
        return bool(self.models)


def judge_cost(model: str, tally: Mapping[str, Any], prices: Prices) -> float | None:
    """Return the cost of a tally's calls to `model`, in the table's currency, or 0.0 without a call.

    `tally` has `calls`, `input_tokens` and `output_tokens`, without those of cached answers. The cost is None if the
    model has no price or did not report its tokens.
    """
    calls = _count(tally.get("calls"))
    if calls == 0:
        return 0.0
    # A model is listed by its full name or by its last part, after `models/`.
    price = prices.models.get(model) or prices.models.get(model.rpartition("/")[2])
    read, written = _count(tally.get("input_tokens")), _count(tally.get("output_tokens"))
    if price is None or (read == 0 and written == 0 and (price.input or price.output)):
        return None
    return (read * price.input + written * price.output) / _MILLION


def model_cost(model: Any, usage: Any, prices: Prices) -> float | None:
    """Return the cost of one answer of an agent's model, from its `model_version` and `usage_metadata`.

    The cost is None in the same cases as that of `judge_cost`.
    """
    figures = mapping(usage)
    read = _count(figures.get("prompt_token_count")) + _count(figures.get("tool_use_prompt_token_count"))
    written = _count(figures.get("candidates_token_count")) + _count(figures.get("thoughts_token_count"))
    return judge_cost(str(model or ""), {"calls": 1, "input_tokens": read, "output_tokens": written}, prices)


def criterion_cost(result: "MetricResult", prices: Prices, *, again: bool = False) -> float | None:
    """Return the cost of judging one case by one criterion: `judge_cost` of the tally in its details.

    The evaluation service is listed in the table under the criterion's name. A verdict that was kept from an earlier
    run cost nothing in this one, unless the question is what it costs `again`.
    """
    tally = result.details.get("tally")
    if not isinstance(tally, dict) or (tally.get("kept") and not again):
        return 0.0
    return judge_cost(judge_name(result), tally, prices)


def judge_name(result: "MetricResult") -> str:
    """Return the name of a criterion's judge model in the price table."""
    judge = result.details.get("judge")
    return str((judge.get("model") if isinstance(judge, dict) else None) or result.name)


def case_cost(
    results: "Iterable[MetricResult]",
    simulated: "Iterable[UserSimulated]",
    handling: "FaultHandling | None",
    prices: Prices,
) -> float | None:
    """Return the cost of judging one case, including how it handled a fault, and of simulating its user.

    The cost is None without a price table, or if any part of the cost is unknown.
    """
    if not prices:
        return None
    parts = [*(criterion_cost(result, prices) for result in results), simulation_cost(simulated, prices)]
    return total([*parts, handling_cost(handling, prices)])


def simulation_cost(simulated: "Iterable[UserSimulated]", prices: Prices) -> float | None:
    """Return the cost of the simulated user's messages in one case, or None if any part is unknown."""
    return total(_question_cost(step.question, prices) for step in simulated if step.question)


def handling_cost(handling: "FaultHandling | None", prices: Prices) -> float | None:
    """Return the cost of judging how an agent handled a fault, or None if any part is unknown."""
    questions = () if handling is None else objects(handling.details.get("questions"))
    return total(_question_cost(question, prices) for question in questions)


def total(costs: Iterable[float | None]) -> float | None:
    """Return the sum, or None if any part is unknown, because a partial sum would mislead."""
    parts = list(costs)
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def money(amount: float, currency: str) -> str:
    """Return an amount as text with two decimals, or below 0.1 with two significant digits: `$0.012`, `0.012 EUR`."""
    digits = 2
    if 0 < amount < 0.1:
        digits = min(12, 1 - math.floor(math.log10(amount)))
    figure = f"{amount:,.{digits}f}"
    return f"${figure}" if currency == CURRENCY else f"{figure} {currency}"


def read_prices(table: Mapping[str, Any], faults: list[str]) -> Prices:
    """Return the price table of the settings. A problem adds a sentence to `faults`, and the entry is left out."""
    currency = table.get("currency", CURRENCY)
    if not isinstance(currency, str) or not 0 < len(currency) <= _LONGEST_CURRENCY or not currency.isprintable():
        faults.append(f'prices.currency must be a name like "EUR", of at most {_LONGEST_CURRENCY} characters')
        currency = CURRENCY
    found = {model: _read(model, entry, faults) for model, entry in table.items() if model != "currency"}
    return Prices({model: price for model, price in found.items() if price is not None}, currency)


def prices_from(data: Mapping[str, Any]) -> Prices:
    """Return the prices from data made by `dataclasses.asdict`; {} means no prices."""
    models = {model: Price(**price) for model, price in mapping(data.get("models")).items()}
    return Prices(models, data.get("currency", CURRENCY))


def _read(model: str, entry: Any, faults: list[str]) -> Price | None:
    name = f'prices."{model}"'
    if not isinstance(entry, dict):
        faults.append(f"{name} must be a table like {{ input = 0.30, output = 2.50 }}, per million tokens")
        return None
    wrong = [f"{name} has the unknown key {key}; use input and output" for key in entry.keys() - {"input", "output"}]
    wrong += [f"{name} lacks {key}: money per million tokens" for key in ("input", "output") if key not in entry]
    wrong += [
        f"{name}.{key} must be a number from 0 to {_HIGHEST_PRICE:,.0f}"
        for key in ("input", "output")
        if key in entry and not _is_price(entry[key])
    ]
    faults += wrong
    return None if wrong else Price(float(entry["input"]), float(entry["output"]))


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _HIGHEST_PRICE


def _question_cost(question: Mapping[str, Any], prices: Prices) -> float | None:
    """Return the cost of all calls for one question, given in the shape of `workbench.judges.base.record`."""
    model = str(mapping(question.get("judge")).get("model", ""))
    replies = objects(question.get("replies"))
    return total(judge_cost(model, {**reply, "calls": 1}, prices) for reply in replies if not reply.get("cached"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
