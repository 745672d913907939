"""The cost of executions: the agent's model calls from its trace, the judges and the simulated user.

A cost is shown only if all of its parts are known. Otherwise the models without a price or token count are named.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from workbench.events.events import CaseRef
from workbench.files.prices import Prices, criterion_cost, simulation_cost, total
from workbench.results.trace.conversation import events_of
from workbench.results.trace.totals import totals
from workbench.store.execution import CaseRecord
from workbench.store.spans import read_turn
from workbench.text.counting import few
from workbench.text.json_values import mapping
from workbench.text.safe_text import one_line

NO_PRICES = "add [prices] to the settings to see costs"
_NAMED = 4
_AGENT, _JUDGE, _USER = "the agent's model", "a judge", "the simulated user"


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of executions.

    `amounts` are the known costs in `currency`. `unknown` counts the other executions, and `missing` names the models
    without a price or token count.
    """

    currency: str
    amounts: Mapping[CaseRef, float]
    unknown: int = 0
    missing: tuple[str, ...] = ()


def costs(records: Iterable[CaseRecord], prices: Prices | None) -> Costs | None:
    """Return the cost of the finished executions, or None without a price table. Call it in a thread."""
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
    """Return the number of executions with unknown cost and the reason, or "" if all are known."""
    if not found.unknown:
        return ""
    listed = few((one_line(name, limit=60) for name in found.missing), _NAMED)
    return f"unknown for {found.unknown:,}: no price or token count for {listed}"


def _parts(record: CaseRecord, prices: Prices) -> Iterator[tuple[str, float | None]]:
    """Yield each paid model and its cost, None if unknown."""
    traced_calls = 0
    for number, turn in enumerate(record.turns):
        root = read_turn(number, turn.spans, events_of(turn)).root
        found = totals(root, prices)
        for node in root.walk():
            if node.kind == "model":
                traced_calls += 1
                yield node.name or _AGENT, found[node.number].cost
    if not traced_calls and record.usage.model_calls:
        yield _AGENT, None  # A report has the number of tokens, but not the model.
    for result in record.metrics.values():
        yield str(mapping(result.details.get("judge")).get("model") or _JUDGE), criterion_cost(result, prices)
    yield _USER, simulation_cost(record.simulated, prices)
