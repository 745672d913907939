"""Tokens and costs of trace nodes, conversations and executions. Executions include their judges.

A cost is shown only if all of its parts are known. Otherwise the models without a price or token count are named.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.events.events import CaseRef, SpansRecorded
from workbench.files.prices import Prices, criterion_cost, handling_cost, judge_cost, simulation_cost, total
from workbench.store.execution import CaseRecord
from workbench.store.spans import Node, read_turn
from workbench.text.counting import counted, few
from workbench.text.json_values import mapping
from workbench.text.safe_text import one_line

_AGENT, _JUDGE, _USER = "the agent's model", "a judge", "the simulated user"


class Total(NamedTuple):
    """Usage of a node. `cost` is None if the price or the tokens of any call are unknown."""

    calls: int = 0
    read: int = 0
    written: int = 0
    cost: float | None = 0.0


_NOTHING = Total()


def totals(root: Node, prices: Prices | None, *, live: bool = False) -> dict[int, Total]:
    """Return totals by number of the node. Each includes all descendants of its node.

    A call that was answered from a recording reached no model, so it cost nothing. `live` says to count it anyway.
    """
    found: dict[int, Total] = {}
    for node in reversed(list(root.walk())):  # Children come first.
        own, tokens = _NOTHING, node.tokens
        if node.kind == "model":
            read, written = tokens or (0, 0)
            tally = {"calls": 1, "input_tokens": read, "output_tokens": written}
            cost = judge_cost(node.name, tally, prices) if prices and tokens is not None else None
            own = Total(1, read, written, 0.0 if node.frozen and prices and not live else cost)
        found[node.number] = _sum([own, *(found[child.number] for child in node.children)]) if node.children else own
    return found


def may_be_silent(node: Node) -> bool:
    """Return whether a node is an agent that may call models unseen. Only ADK tells an agent's type, and each call."""
    return node.kind == "agent" and "type" not in node.facts


def _sum(parts: Sequence[Total]) -> Total:
    calls, read, written, cost = 0, 0, 0, _NOTHING.cost
    for part in parts:
        if part is not _NOTHING:
            calls, read, written = calls + part.calls, read + part.read, written + part.written
            cost = None if cost is None or part.cost is None else cost + part.cost
    return Total(calls, read, written, cost)


@dataclass(frozen=True, slots=True)
class ConversationCost:
    """Usage of a conversation.

    `calls` counts model calls. `cost` is in the price table's currency, or None if the price or the tokens of any call,
    or the calls of a turn, are unknown. `unpriced` are the models without a price.
    """

    calls: int
    cost: float | None
    unpriced: frozenset[str] = frozenset()


def conversation_cost(turns: Iterable[SpansRecorded | None], prices: Prices) -> ConversationCost:
    """Return the usage of a conversation, given the spans of its turns."""
    calls, costs = 0, [0.0]
    unpriced: set[str] = set()
    known = True
    for number, spans in enumerate(turns):
        if spans is None:
            known = False
            continue
        root = read_turn(number, spans, []).root
        found = totals(root, prices, live=True)[root.number]
        calls += found.calls
        known = known and found.cost is not None
        costs.append(found.cost or 0.0)
        models = {node.name for node in root.walk() if node.kind == "model"}
        one_call = {"calls": 1, "input_tokens": 1, "output_tokens": 1}
        unpriced |= {name for name in models if judge_cost(name, one_call, prices) is None}
    return ConversationCost(calls, sum(costs) if known else None, frozenset(unpriced))


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
    """Return how many executions have an unknown cost and why, or "" if all costs are known."""
    if not found.unknown:
        return ""
    listed = few((one_line(name, limit=60) for name in found.missing), 4)
    return f"unknown for {counted(found.unknown, 'execution')}: no price or token count for {listed}"


def _parts(record: CaseRecord, prices: Prices) -> Iterator[tuple[str, float | None]]:
    """Yield each used model with its cost, or with None if the cost is unknown."""
    traced_calls, reports_none = 0, False
    for number, turn in enumerate(() if record.rescored else record.turns):
        root = read_turn(number, turn.spans, turn.events).root
        found = totals(root, prices)
        for node in root.walk():
            reports_none = reports_none or may_be_silent(node)
            if node.kind == "model":
                traced_calls += 1
                yield node.name or _AGENT, found[node.number].cost
    if traced_calls < record.usage.model_calls or (reports_none and not traced_calls):
        yield _AGENT, None  # A report has the number of tokens, but not the model. A trace may lack some calls.
    for result in record.metrics.values():
        yield str(mapping(result.details.get("judge")).get("model") or _JUDGE), criterion_cost(result, prices)
    if record.handling is not None:
        judge = mapping(record.handling.details.get("judge"))
        yield str(judge.get("model") or _JUDGE), handling_cost(record.handling, prices)
    if not record.rescored:
        yield _USER, simulation_cost(record.simulated, prices)
