"""The costs of executions, each read once from its stored run."""

from collections.abc import Iterable, Sequence

from workbench.counting import counted
from workbench.events import CaseRef
from workbench.prices import Prices, money
from workbench.rendering.charts.costs import NO_PRICES, costs
from workbench.rendering.charts.figures import LONGEST
from workbench.rendering.overview.facts import Spent
from workbench.rendering.overview.tally import Tally
from workbench.store import CaseRecord

MOST = 2_000
"""Executions whose costs are shown without being asked for. Each takes about a millisecond to read."""
_PIECE = 20


class Spending:
    """Known costs by execution. `prices` are those of the user's settings."""

    def __init__(self, prices: Prices | None) -> None:
        self._prices = prices
        self._known: dict[CaseRef, tuple[CaseRecord, float | None]] = {}

    def unread(self, records: Iterable[CaseRecord]) -> Sequence[CaseRecord]:
        """Return the next finished executions whose costs are not known yet, but none if they are too many."""
        if not self._prices:
            return ()
        missing = [record for record in records if record.finished and not self._has(record)]
        return missing[:_PIECE] if len(missing) <= MOST else ()

    def read(self, records: Sequence[CaseRecord]) -> None:
        """Read the costs of these executions. Call this in a thread."""
        found = costs(records, self._prices)
        if found is not None:
            self._known.update((record.ref, (record, found.amounts.get(record.ref))) for record in records)

    def spent(self, time: str, tally: Tally, records: Sequence[CaseRecord]) -> Spent:
        """Return time and costs as texts. `records` are the finished executions of the tally."""
        if not self._prices:
            return Spent(time, "cost unknown" if tally.model_calls else "", (), NO_PRICES if tally.model_calls else "")
        known = [(record, self._known[record.ref][1]) for record in records if self._has(record)]
        if len(known) < len(records):
            many = len(records) - len(known) > MOST
            return Spent(time, "cost not read" if many else "", (), "too many cases: see the charts" if many else "")
        currency = self._prices.currency
        amounts = [(record, amount) for record, amount in known if amount is not None]
        unknown = len(known) - len(amounts)
        total = money(sum(amount for _, amount in amounts), currency)
        cost = total if not unknown else f"{total} + {unknown:,} unknown" if amounts else "cost unknown"
        dear = sorted(amounts, key=lambda one: -one[1])[:LONGEST]
        why = f"cost of {counted(unknown, 'execution')} unknown" if unknown else "no costs"
        return Spent(time, cost, [(record, money(amount, currency)) for record, amount in dear if amount > 0], why)

    def _has(self, record: CaseRecord) -> bool:
        known = self._known.get(record.ref)
        return known is not None and known[0] is record
