"""What a part of a trace cost: tokens and money, of a node with all that is in it."""

from dataclasses import dataclass

from workbench.prices import Prices, judge_cost
from workbench.trace.spans import Node


@dataclass(frozen=True, slots=True)
class Total:
    """`calls` of models, tokens read and written, and what that cost: None where the price or the tokens of any call
    are not known."""

    calls: int = 0
    read: int = 0
    written: int = 0
    cost: float | None = 0.0


_NOTHING = Total()


def totals(root: Node, prices: Prices | None) -> dict[int, Total]:
    """Number of each node of the tree → what it and all in it cost."""
    found: dict[int, Total] = {}
    for node in reversed(list(root.walk())):  # What is inside comes first.
        own = _own(node, prices) if node.kind == "model" else _NOTHING
        for child in node.children:
            own = _sum(own, found[child.number])
        found[node.number] = own
    return found


def _own(node: Node, prices: Prices | None) -> Total:
    tokens = node.tokens
    read, written = tokens or (0, 0)
    if not prices:
        return Total(1, read, written, None)
    tally = {"calls": 1, "input_tokens": read, "output_tokens": written}
    return Total(1, read, written, judge_cost(node.name, tally, prices) if tokens is not None else None)


def _sum(one: Total, other: Total) -> Total:
    if other is _NOTHING:
        return one
    cost = None if one.cost is None or other.cost is None else one.cost + other.cost
    return Total(one.calls + other.calls, one.read + other.read, one.written + other.written, cost)
