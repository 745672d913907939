"""The costs of executions, each read once from its stored run."""

from collections.abc import Iterable, Sequence

from workbench.counting import counted
from workbench.details import read_details
from workbench.events import CaseRef
from workbench.execution import Execution
from workbench.prices import Prices, money
from workbench.rendering.costs import costs
from workbench.rendering.overview.facts import Spent
from workbench.rendering.overview.tally import Tally

MOST = 2_000
"""Executions whose costs are shown without being asked for. Each takes about a millisecond to read."""
_PIECE = 20


class Spending:
    """Known costs by execution. `prices` are those of the user's settings."""

    def __init__(self, prices: Prices | None) -> None:
        self._prices = prices
        self._known: dict[CaseRef, tuple[Execution, float | None]] = {}

    def unread(self, records: Iterable[Execution]) -> Sequence[Execution]:
        """Return the next finished executions whose costs are not known yet, but none if they are too many."""
        if not self._prices:
            return ()
        missing = [record for record in records if record.finished and not self._has(record)]
        return missing[:_PIECE] if len(missing) <= MOST else ()

    def read(self, records: Sequence[Execution]) -> None:
        """Read the costs of these executions. Call this in a thread."""
        found = costs(map(read_details, records), self._prices)
        if found is not None:
            self._known.update((record.ref, (record, found.amounts.get(record.ref))) for record in records)

    def spent(self, time: str, tally: Tally, records: Sequence[Execution]) -> Spent:
        """Return time and costs as texts, with tokens where costs are not known.

        `records` are the finished executions of the tally.
        """
        if not self._prices:
            return Spent(time, _sum("", tally.tokens, tally.without_tokens))
        known = [(record, self._known[record.ref][1]) for record in records if self._has(record)]
        if len(known) < len(records):
            many = len(records) - len(known) > MOST
            return Spent(time, _sum("", tally.tokens, tally.without_tokens) if many else "")
        amounts = [amount for _, amount in known if amount is not None]
        unpriced = [record.usage for record, amount in known if amount is None]
        total = money(sum(amounts), self._prices.currency) if amounts or not unpriced else ""
        tokens = sum(usage.tokens for usage in unpriced)
        return Spent(time, _sum(total, tokens, sum(not usage.tokens for usage in unpriced)))

    def _has(self, record: Execution) -> bool:
        known = self._known.get(record.ref)
        return known is not None and known[0] is record


def _sum(total: str, tokens: int, unknown: int) -> str:
    """Return `$0.12 + 1,234 tokens + 2 unknown`, without what is missing. `unknown` counts executions."""
    known = " + ".join(filter(None, (total, counted(tokens, "token") if tokens else "")))
    if not unknown:
        return known
    return f"{known} + {unknown:,} unknown" if known else "cost unknown"
