"""What judges cost, by the user's own price table: tokens in, money out.

No price is built in, because prices change. The table stands in the settings (`workbench.config`):

    [prices]
    currency = "EUR"                                       # USD where it is not named
    "gemini-2.5-flash" = { input = 0.30, output = 2.50 }   # money per million tokens
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.events import MetricResult, UserSimulated
from workbench.json_values import mapping, objects

CURRENCY = "USD"
_FREE = "heuristic"
"""The judge that calls nobody."""
_MILLION = 1_000_000
_LONGEST_CURRENCY = 8
_DEAREST = 1e9


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens that a judge reads (`input`) and writes (`output`)."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Prices:
    """The price of each model that has one, all in one currency."""

    models: Mapping[str, Price] = field(default_factory=dict)
    currency: str = CURRENCY

    def __bool__(self) -> bool:
        return bool(self.models)


def judge_cost(model: str, tally: Mapping[str, Any], prices: Prices) -> float | None:
    """What the calls of a `tally` (`calls`, `input_tokens`, `output_tokens`; answers that were kept from earlier are
    in none of them) to `model` cost, in the table's currency.

    None where nobody knows: the model has no price, or answered without saying how many tokens that took. Without a
    call, and for the rules of `heuristic`, it is 0.0.
    """
    calls = _count(tally.get("calls"))
    if calls == 0 or model == _FREE:
        return 0.0
    price = _price(model, prices)
    read, written = _count(tally.get("input_tokens")), _count(tally.get("output_tokens"))
    if price is None or (read == 0 and written == 0 and (price.input or price.output)):
        return None
    return (read * price.input + written * price.output) / _MILLION


def criterion_cost(result: MetricResult, prices: Prices) -> float | None:
    """What judging one case by one criterion cost: `judge_cost` of the tally in its details. The evaluation service
    has the name of the criterion for its model's."""
    tally = result.details.get("tally")
    return judge_cost(judge_name(result), tally if isinstance(tally, dict) else {}, prices)


def judge_name(result: MetricResult) -> str:
    """The model that judged by a criterion, by its name in the table."""
    judge = result.details.get("judge")
    return str((judge.get("model") if isinstance(judge, dict) else None) or result.name)


def case_cost(results: Iterable[MetricResult], simulated: Iterable[UserSimulated], prices: Prices) -> float | None:
    """What judging one case and simulating its user cost; None without a price table."""
    if not prices:
        return None
    return total([*(criterion_cost(result, prices) for result in results), simulation_cost(simulated, prices)])


def simulation_cost(simulated: Iterable[UserSimulated], prices: Prices) -> float | None:
    """What the simulated user's messages of one case cost."""
    return total(_question_cost(step.question, prices) for step in simulated if step.question)


def total(costs: Iterable[float | None]) -> float | None:
    """The sum; None as soon as one part of it is not known, because half a bill is no bill."""
    parts = list(costs)
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def money(amount: float, currency: str) -> str:
    """`$0.0123`, `0.0123 EUR`: two digits, or of less than a hundredth as many as show the first two that count."""
    digits = 2
    if 0 < amount < 0.1:
        digits = min(12, 1 - math.floor(math.log10(amount)))
    figure = f"{amount:,.{digits}f}"
    return f"${figure}" if currency == CURRENCY else f"{figure} {currency}"


def read_prices(table: Mapping[str, Any], faults: list[str]) -> Prices:
    """The price table of the settings; what is wrong in it is a sentence in `faults`, and counts as not given."""
    currency = table.get("currency", CURRENCY)
    if not isinstance(currency, str) or not 0 < len(currency) <= _LONGEST_CURRENCY or not currency.isprintable():
        faults.append(f'prices.currency must be a name like "EUR", of at most {_LONGEST_CURRENCY} characters')
        currency = CURRENCY
    entries = ((model, entry) for model, entry in table.items() if model != "currency")
    return Prices({model: price for model, entry in entries for price in _read(model, entry, faults)}, currency)


def _read(model: str, entry: Any, faults: list[str]) -> Iterator[Price]:
    name = f'prices."{model}"'
    if not isinstance(entry, dict):
        faults.append(f"{name} must be a table like {{ input = 0.30, output = 2.50 }}, per million tokens")
        return
    wrong = [f"{name} has no key {key}: input and output it has" for key in entry.keys() - {"input", "output"}]
    wrong += [f"{name} lacks {key}: money per million tokens" for key in ("input", "output") if key not in entry]
    wrong += [
        f"{name}.{key} must be a number from 0 up"
        for key in ("input", "output")
        if key in entry and not _is_price(entry[key])
    ]
    faults += wrong
    if not wrong:
        yield Price(float(entry["input"]), float(entry["output"]))


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _DEAREST


def _price(model: str, prices: Prices) -> Price | None:
    """By the name as the config spells it, else by its last part: `models/gemini-2.5-flash` is `gemini-2.5-flash`."""
    for name in (model, model.rpartition("/")[2]):
        if name in prices.models:
            return prices.models[name]
    return None


def _question_cost(question: Mapping[str, Any], prices: Prices) -> float | None:
    """What one question cost with all that was asked for it; its shape is `workbench.judge.base.record`'s."""
    model = str(mapping(question.get("judge")).get("model", ""))
    asked = objects(question.get("replies"))
    return total(judge_cost(model, {**reply, "calls": 1}, prices) for reply in asked if not reply.get("cached"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
