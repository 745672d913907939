"""The costs of an overview, with tokens where prices are missing."""

from typing import Any

import pytest

from tests.cli.stores import ref
from workbench.events.events import PlannedCase, Usage
from workbench.files.prices import Price, Prices
from workbench.results.tally import added, tally
from workbench.store.execution import CaseRecord
from workbench.ui.screen.overview_contents import MOST, Spending


def record(name: str, usage: Usage) -> CaseRecord:
    return CaseRecord(PlannedCase(ref(name), None, "defaults"), "passed", usage=usage)


def spent(prices: Any, *usages: Usage, known: dict[int, float | None] | None = None) -> str:
    """Return the cost as the overview shows it. `known` are the costs that were read."""
    records = [record(str(number), usage) for number, usage in enumerate(usages)]
    spending = Spending(prices)
    for number, amount in (known or {}).items():
        spending._known[records[number].ref] = records[number].run_id, amount
    parts = [tally({"passed": 1}, [[one]]) for one in records]
    return spending.spent("", added(parts), records if prices else ()).cost


USED = Usage(model_calls=2, input_tokens=1_000, output_tokens=200, judge_input_tokens=30, judge_output_tokens=4)
SILENT = Usage(model_calls=2)
PRICES = Prices({"m": Price(1.0, 1.0)})


@pytest.mark.parametrize(
    ("usages", "text"),
    [
        ([USED], "1,234 tokens"),
        ([USED, USED], "2,468 tokens"),
        ([USED, SILENT, SILENT], "1,234 tokens + 2 unknown"),
        ([SILENT], "cost unknown"),
        ([Usage()], ""),
        ([Usage(judge_calls=4)], ""),
        ([Usage(judge_calls=1, judge_input_tokens=1)], "1 token"),
    ],
)
def test_tokens_are_shown_without_prices(usages: list[Usage], text: str) -> None:
    assert spent(None, *usages) == text


@pytest.mark.parametrize(
    ("usages", "known", "text"),
    [
        ([USED, USED], {0: 0.5, 1: 0.25}, "$0.75"),
        ([USED, USED], {0: 0.5, 1: None}, "$0.50 + 1,234 tokens"),
        ([USED, USED, SILENT], {0: 0.5, 1: None, 2: None}, "$0.50 + 1,234 tokens + 1 unknown"),
        ([USED, SILENT], {0: 0.5, 1: None}, "$0.50 + 1 unknown"),
        ([USED, SILENT], {0: None, 1: None}, "1,234 tokens + 1 unknown"),
        ([SILENT], {0: None}, "cost unknown"),
        ([USED, USED], {0: 0.5}, ""),
    ],
)
def test_tokens_are_shown_for_executions_whose_models_have_no_price(
    usages: list[Usage], known: dict[int, float | None], text: str
) -> None:
    assert spent(PRICES, *usages, known=known) == text


def test_tokens_without_cost_are_shown_for_too_many_executions() -> None:
    assert spent(PRICES, *[USED] * (MOST + 1)) == f"{1_234 * (MOST + 1):,} tokens"
