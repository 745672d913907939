"""What executions cost in money: the agent's model calls as its trace tells them, the judges and the simulated user.

A cost is told only where all of it is known: half a bill is no bill. What is missing is told by the names of models.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from workbench.counting import few
from workbench.events import CaseRef
from workbench.json_values import mapping
from workbench.prices import Prices, criterion_cost, simulation_cost, total
from workbench.rendering.trace.conversation import events_of
from workbench.store import CaseRecord
from workbench.text import one_line
from workbench.trace.spans import read_turn
from workbench.trace.totals import totals

NO_PRICES = "no price table: with [prices] in the settings it is told in money"
_NAMED = 4
_AGENT, _JUDGE, _USER = "the agent's model", "a judge", "the simulated user"


@dataclass(frozen=True, slots=True)
class Costs:
    """`amounts` of the executions whose cost is known, in `currency`; `unknown` counts the others, and `missing` says
    which models have no price, or did not say how many tokens they took."""

    currency: str
    amounts: Mapping[CaseRef, float]
    unknown: int = 0
    missing: tuple[str, ...] = ()


def costs(records: Iterable[CaseRecord], prices: Prices | None) -> Costs | None:
    """What the finished executions cost; None without a price table. Reads their traces: for a thread."""
    if not prices:
        return None
    amounts: dict[CaseRef, float] = {}
    missing: set[str] = set()
    unknown = 0
    for record in records:
        if not record.finished:
            continue
        parts = list(_parts(record, prices))
        amount = total(cost for _, cost in parts)
        if amount is None:
            unknown += 1
            missing |= {name for name, cost in parts if cost is None}
        else:
            amounts[record.ref] = amount
    return Costs(prices.currency, amounts, unknown, tuple(sorted(missing)))


def not_known(found: Costs) -> str:
    """Of how many executions the cost is not known, and why; "" where it is known of all."""
    if not found.unknown:
        return ""
    listed = few((one_line(name, limit=60) for name in found.missing), _NAMED)
    return f"not known of {found.unknown:,}: no price for, or no tokens told by, {listed}"


def _parts(record: CaseRecord, prices: Prices) -> Iterator[tuple[str, float | None]]:
    """Who was paid, and how much: None where that is not known."""
    told = 0
    for number, turn in enumerate(record.turns):
        root = read_turn(number, turn.spans, events_of(turn)).root
        found = totals(root, prices)
        for node in root.walk():
            if node.kind == "model":
                told += 1
                yield node.name or _AGENT, found[node.number].cost
    if not told and record.usage.model_calls:
        yield _AGENT, None  # A report says how many tokens there were, but not of which model.
    for result in record.metrics.values():
        yield str(mapping(result.details.get("judge")).get("model") or _JUDGE), criterion_cost(result, prices)
    yield _USER, simulation_cost(record.simulated, prices)
