"""The estimated cost of cases before they run, from their past runs and the prices in the settings."""

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from workbench.criteria.registry import needs_bench
from workbench.events.events import CaseRef
from workbench.files.criteria import CriteriaConfig
from workbench.files.prices import Prices, criterion_cost, judge_name, money, simulation_cost, total
from workbench.judges.base import question_usage
from workbench.results.costs import ConversationCost, conversation_cost, may_be_silent
from workbench.results.judged import count
from workbench.run.plan.preflight_cases import CallRange, criterion_calls, options_of
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.inputs import Effect
from workbench.store.spans import read_turn
from workbench.text.counting import counted
from workbench.text.json_values import mapping
from workbench.text.safe_text import one_line

_SAMPLE = 400
"""Maximum number of past executions used for an estimate. Further ones are assumed to cost the same on average."""
_SILENT = "an agent that reports no usage"


@dataclass(frozen=True)
class Limit:
    """The limits above which a save needs confirmation: calls, and money in the prices' currency. None: no limit."""

    calls: int | None = None
    money: float | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of running or scoring `cases` cases.

    `calls` is the number of calls to models and judges, or None if it is not known yet. `money` is the cost as a text,
    or why it is not known, or "" without calls or prices. `amount` is the cost as a number, or None if it is not known.
    """

    cases: int
    calls: int | None
    money: str = ""
    amount: float | None = None

    def text(self, total: int) -> str:
        """Return a text such as `7 of 40 stale, about 35 calls, about $0.06`."""
        return ", ".join(filter(None, (f"{self.cases:,} of {total:,} stale", self.cost_words)))

    @property
    def cost_words(self) -> str:
        """The cost as text, such as `about 35 calls, about $0.06`, or "" if nothing is called."""
        if self.calls is None:
            return "cost unknown until they have run"
        calls = f"about {counted(self.calls, 'call')}" if self.calls else ""
        return ", ".join(filter(None, (calls, self.money)))

    def above(self, limit: Limit) -> bool:
        """Return whether the cost is or may be above the limit.

        If the amount is unknown, the limit of calls decides. Without a limit of calls, an unknown amount counts as
        above the limit.
        """
        if self.calls == 0:
            return False
        calls = limit.calls is not None and (self.calls is None or self.calls > limit.calls)
        if limit.money is None or calls:
            return calls
        return limit.calls is None if self.amount is None else self.amount > limit.money


@dataclass(frozen=True, slots=True)
class _Cost:
    calls: int
    money: float | None
    unpriced: frozenset[str]


def estimate(
    cases: int,
    records: Collection[Execution],
    depth: Effect,
    prices: Prices,
    times: float = 1,
    criteria_of: Callable[[CaseRef], CriteriaConfig | None] = lambda ref: None,
) -> Estimate:
    """Return the estimated cost of `cases` cases with this depth, each repeated `times` on average.

    `records` are finished executions of the same or similar cases. `criteria_of` returns the current criteria of a
    case.
    """
    if depth == "decide":
        return Estimate(cases, 0)
    costs = [
        _with_new(_cost(record, depth, prices), record, criteria_of(record.ref))
        for record in map(read_details, itertools.islice(records, _SAMPLE))
    ]
    if not costs:
        return Estimate(cases, None)
    share = cases * times / len(costs)
    calls = round(sum(cost.calls for cost in costs) * share)
    amount = total(cost.money for cost in costs) if prices else None
    if not prices or (not calls and amount is not None):
        return Estimate(cases, calls)
    if amount is not None:
        return Estimate(cases, calls, f"about {money(amount * share, prices.currency)}", amount * share)
    return Estimate(cases, calls, _unknown(frozenset().union(*(cost.unpriced for cost in costs))))


def limit_words(limit: Limit, prices: Prices) -> str:
    """Return a text such as `50 calls, $0.50`, or "" without limits."""
    calls = "" if limit.calls is None else counted(limit.calls, "call")
    return ", ".join(filter(None, (calls, "" if limit.money is None else money(limit.money, prices.currency))))


def _unknown(models: Collection[str]) -> str:
    if not models:
        return "cost unknown"
    if _SILENT in models:
        return "cost unknown: the agent reports no usage"
    names = [one_line(name, limit=40) or "a model without a name" for name in sorted(models)]
    return f"cost unknown: no price for {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _cost(record: CaseRecord, depth: Effect, prices: Prices) -> _Cost:
    judged = _judging(record, prices)
    if depth == "score":
        return judged
    own = _own(record, prices)
    simulated = [question_usage(step.question) for step in record.simulated]
    calls = own.calls + judged.calls + sum(one.judge_calls + one.judge_calls_cached for one in simulated)
    parts = [own.cost, judged.money, simulation_cost(record.simulated, prices)]
    return _Cost(calls, total(parts), own.unpriced | judged.unpriced)


def _with_new(cost: _Cost, record: CaseRecord, config: CriteriaConfig | None) -> _Cost:
    """Add the maximum number of judge calls for criteria that never judged the case before.

    If there are such calls, the cost in money is unknown.
    """
    calls = 0
    for criterion in () if config is None else config.criteria:
        judged = record.metrics.get(criterion.name)
        options = options_of(criterion)
        is_new = judged is None or "tally" not in judged.details
        if is_new and needs_bench(criterion.name):
            turns = CallRange(len(record.turns), len(record.turns))
            calls += criterion_calls(criterion, options.samples, turns, record.rubrics, all_votes=False).high
    return replace(cost, calls=cost.calls + calls, money=None) if calls else cost


def _judging(record: CaseRecord, prices: Prices) -> _Cost:
    results = record.metrics.values()
    # The usage of a case also has the calls of its simulated user.
    tallies = [mapping(result.details.get("tally")) for result in results]
    asked, cached = (sum(count(tally.get(key)) for tally in tallies) for key in ("calls", "cached"))
    # Cached answers count as calls, because a changed question is asked again.
    calls = asked + cached
    spent = total(criterion_cost(result, prices, again=True) for result in results)
    if spent is not None and cached:
        spent = spent * calls / asked if asked else None
    unpriced = (judge_name(result) for result in results if criterion_cost(result, prices, again=True) is None)
    return _Cost(calls, spent, frozenset(unpriced))


def _own(record: CaseRecord, prices: Prices) -> ConversationCost:
    """Return the cost of the agent's own models, from the trace, which also exists after scoring again."""
    calls = record.usage.model_calls
    if calls and not prices:
        return ConversationCost(calls, None)
    found = conversation_cost((turn.spans for turn in record.turns), prices)
    if calls not in (0, found.calls):
        return ConversationCost(calls, None, found.unpriced)
    if found.calls:
        return found
    roots = (read_turn(number, turn.spans, turn.events).root for number, turn in enumerate(record.turns))
    is_silent = any(may_be_silent(node) for root in roots for node in root.walk())
    return ConversationCost(0, None, frozenset({_SILENT})) if is_silent else ConversationCost(0, 0.0)
