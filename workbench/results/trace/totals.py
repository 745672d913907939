"""Tokens and cost of a trace, per node with its descendants, and for a whole conversation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.events.events import SpansRecorded
from workbench.files.prices import Prices, judge_cost
from workbench.store.spans import Node, read_turn


class Total(NamedTuple):
    """Usage of a node: model `calls`, tokens `read` and `written`, and `cost`.

    `cost` is None if the price or the tokens of any call are unknown.
    """

    calls: int = 0
    read: int = 0
    written: int = 0
    cost: float | None = 0.0


_NOTHING = Total()


def totals(root: Node, prices: Prices | None) -> dict[int, Total]:
    """Return the total of each node and its descendants, by the node's number."""
    found: dict[int, Total] = {}
    for node in reversed(list(root.walk())):  # Children come first.
        own = _own(node, prices) if node.kind == "model" else _NOTHING
        found[node.number] = _sum([own, *(found[child.number] for child in node.children)]) if node.children else own
    return found


def _own(node: Node, prices: Prices | None) -> Total:
    tokens = node.tokens
    read, written = tokens or (0, 0)
    if not prices:
        return Total(1, read, written, None)
    tally = {"calls": 1, "input_tokens": read, "output_tokens": written}
    return Total(1, read, written, judge_cost(node.name, tally, prices) if tokens is not None else None)


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

    `calls` counts model calls. `cost` is in the price table's currency, or None if the price or the tokens of any call
    are unknown. `unpriced` are the models without a price.
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
        found = totals(root, prices)[root.number]
        calls += found.calls
        known = known and found.cost is not None
        costs.append(found.cost or 0.0)
        models = {node.name for node in root.walk() if node.kind == "model"}
        unpriced |= {name for name in models if judge_cost(name, _ONE_CALL, prices) is None}
    return ConversationCost(calls, sum(costs) if known else None, frozenset(unpriced))


_ONE_CALL = {"calls": 1, "input_tokens": 1, "output_tokens": 1}
