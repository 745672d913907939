"""The costs of executions, each read once from its stored run. The overview and the table share them."""

from collections.abc import Iterable, Sequence

from workbench.events.events import CaseRef
from workbench.files.prices import Prices, money
from workbench.results.tally import Spent, Tally
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.text.counting import counted

MOST = 2_000
"""Executions whose costs are shown without being asked for. Each takes about a millisecond to read."""
_PIECE = 20


class Spending:
    """Known costs by execution. Each belongs to one run, not to later ones of its case.

    `prices` are those of the user's settings.
    """

    def __init__(self, prices: Prices | None) -> None:
        self._prices = prices
        self._known: dict[CaseRef, tuple[str, float | None]] = {}

    @property
    def currency(self) -> str:
        """The currency of the costs."""
        return self._prices.currency if self._prices else ""

    def cost_of(self, record: Execution) -> tuple[bool, float | None]:
        """Return whether the cost of an execution was read, and the cost, or None if a part of it is not known."""
        run_id, cost = self._known.get(record.ref, (None, None))
        return run_id == record.run_id, cost

    def missing(self, records: Iterable[Execution]) -> list[Execution]:
        """Return the finished executions whose costs were not read yet."""
        return [record for record in records if record.finished and not self.cost_of(record)[0]]

    def unread(self, records: Iterable[Execution]) -> Sequence[Execution]:
        """Return the next finished executions whose costs are not known yet, but none if they are too many."""
        if not self._prices:
            return ()
        missing = self.missing(records)
        return missing[:_PIECE] if len(missing) <= MOST else ()

    def read(self, records: Sequence[Execution]) -> None:
        """Read the costs of these executions. Call this in a thread."""
        # Imported here: with the views of traces that it needs, it is half of the imports of the first overview.
        from workbench.results.costs import costs

        found = costs(map(read_details, records), self._prices)
        if found is not None:
            self._known.update((record.ref, (record.run_id, found.amounts.get(record.ref))) for record in records)

    def spent(self, time: str, tally: Tally, records: Sequence[Execution]) -> Spent:
        """Return time and costs as texts, with tokens where costs are not known.

        `records` are the finished executions of the tally.
        """
        if not self._prices:
            return Spent(time, _sum("", tally.tokens, tally.without_tokens))
        known = [(record, cost) for record in records for is_known, cost in [self.cost_of(record)] if is_known]
        if len(known) < len(records):
            many = len(records) - len(known) > MOST
            return Spent(time, _sum("", tally.tokens, tally.without_tokens) if many else "")
        amounts = [amount for _, amount in known if amount is not None]
        unpriced = [record.usage for record, amount in known if amount is None]
        total = money(sum(amounts), self.currency) if amounts or not unpriced else ""
        tokens = sum(usage.tokens for usage in unpriced)
        return Spent(time, _sum(total, tokens, sum(not usage.tokens for usage in unpriced)))


def _sum(total: str, tokens: int, unknown: int) -> str:
    """Return `$0.12 + 1,234 tokens + 2 unknown`, without what is missing. `unknown` counts executions."""
    known = " + ".join(filter(None, (total, counted(tokens, "token") if tokens else "")))
    if not unknown:
        return known
    return f"{known} + {unknown:,} unknown" if known else "cost unknown"
