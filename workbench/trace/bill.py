"""What the models of an agent cost in one conversation, by its trace: each call has a model's name and its tokens."""

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.events import SpansRecorded
from workbench.prices import Prices, judge_cost
from workbench.trace.spans import read_turn
from workbench.trace.totals import totals


@dataclass(frozen=True, slots=True)
class Bill:
    """`calls` of models; `cost` in the table's currency, None where the price or the tokens of any call are not known.
    `unpriced` are the models that have no price."""

    calls: int
    cost: float | None
    unpriced: frozenset[str] = frozenset()


def bill(told: Iterable[SpansRecorded | None], prices: Prices) -> Bill:
    """The bill of a conversation; `told` are the spans of its turns."""
    calls, costs = 0, [0.0]
    unpriced: set[str] = set()
    known = True
    for number, spans in enumerate(told):
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
    return Bill(calls, sum(costs) if known else None, frozenset(unpriced))


_ONE_CALL = {"calls": 1, "input_tokens": 1, "output_tokens": 1}
