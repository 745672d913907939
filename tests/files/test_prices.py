"""Cost of judges: only from the user's price table, and unknown if any part is unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.events.events import CaseRef, MetricResult, UserSimulated
from workbench.files.prices import (
    Price,
    Prices,
    criterion_cost,
    judge_cost,
    money,
    read_prices,
    simulation_cost,
    total,
)

TABLE = Prices({"gemini-2.5-flash": Price(0.30, 2.50), "openai/gpt": Price(1.0, 2.0), "free": Price(0.0, 0.0)})


def tally(calls: int, read: int = 0, written: int = 0) -> dict[str, Any]:
    return {"calls": calls, "cached": 3, "input_tokens": read, "output_tokens": written, "seconds": 1.0}


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "models/gemini-2.5-flash", "projects/p/models/gemini-2.5-flash"])
def test_price_is_found_by_the_last_part_of_a_model_name(model: str) -> None:
    assert judge_cost(model, tally(5, 2_000_000, 100_000), TABLE) == pytest.approx(0.85)


def test_unknown_cost_is_none_not_zero() -> None:
    assert judge_cost("gemini-9", tally(1, 100, 100), TABLE) is None
    assert judge_cost("gemini-2.5-flash", tally(1), TABLE) is None, "it answered without saying how much that took"
    assert judge_cost("gemini-2.5-flash", tally(1, 100, 100), Prices()) is None


def test_free_calls_cost_zero() -> None:
    assert judge_cost("gemini-9", tally(0), TABLE) == 0.0, "every answer was kept"
    assert judge_cost("free", tally(8), TABLE) == 0.0
    assert judge_cost("gemini-9", {}, TABLE) == 0.0


def test_total_with_an_unknown_part_is_none() -> None:
    assert total([]) == 0
    assert total([0.5, 0.25]) == 0.75
    assert total([0.5, None]) is None


def test_criterion_cost_is_read_from_its_details() -> None:
    details = {"judge": {"model": "openai/gpt"}, "tally": tally(2, 1_000_000, 500_000)}
    assert criterion_cost(MetricResult("hallucinations_v1", "passed", details=details), TABLE) == 2.0
    assert criterion_cost(MetricResult("response_match_score", "passed"), TABLE) == 0.0
    service = MetricResult("safety_v1", "passed", details={"tally": tally(1)})
    assert criterion_cost(service, TABLE) is None
    assert criterion_cost(service, Prices({"safety_v1": Price(0.0, 0.0)})) == 0.0


def test_simulation_cost_is_read_from_its_replies() -> None:
    ref = CaseRef("a", "f", "s", "c")
    replies = [
        {"input_tokens": 1_000_000, "output_tokens": 10, "cached": True},
        {"input_tokens": 1_000_000, "output_tokens": None, "cached": False},
    ]
    steps = [
        UserSimulated(ref, 0, "", {}),
        UserSimulated(ref, 1, "", {"judge": {"model": "openai/gpt"}, "replies": replies}),
    ]
    assert simulation_cost(steps, TABLE) == 1.0
    assert simulation_cost(steps, Prices()) is None


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0.0, "0.00 EUR"), (1234.5, "1,234.50 EUR"), (0.1, "0.10 EUR"), (0.01234, "0.012 EUR"), (3e-6, "0.0000030 EUR")],
)
def test_money_is_short_and_never_rounded_to_zero(amount: float, shown: str) -> None:
    assert money(amount, "EUR") == shown
    assert money(amount, "USD") == f"${shown.removesuffix(' EUR')}"


def test_each_fault_in_the_price_table_is_named() -> None:
    faults: list[str] = []
    table = {
        "currency": "EUR",
        "good": {"input": 1, "output": 2.5},
        "text": {"input": "1", "output": True},
        "half": {"input": 1},
        "more": {"input": 1, "output": 1, "cached": 1},
        "number": 3,
        "negative": {"input": -1, "output": 10**400},
    }
    prices = read_prices(table, faults)
    assert (prices.models, prices.currency) == ({"good": Price(1.0, 2.5)}, "EUR")
    assert len(faults) == 7
    for name in ("text", "half", "more", "number", "negative"):
        assert any(f'prices."{name}"' in fault for fault in faults), name
    assert 'prices."negative".output must be a number from 0 to 1,000,000,000' in faults


def test_invalid_currency_is_replaced_by_the_default() -> None:
    faults: list[str] = []
    assert read_prices({"currency": "\x1b[31m"}, faults).currency == "USD"
    assert len(faults) == 1


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(scalars, lambda inner: st.dictionaries(st.sampled_from(["input", "output", "x"]), inner))


@given(st.dictionaries(st.text(max_size=10), values))
def test_any_price_table_is_accepted(table: dict[str, Any]) -> None:
    faults: list[str] = []
    prices = read_prices(table, faults)
    for model in prices.models:
        cost = judge_cost(model, tally(1, 1000, 1000), prices)
        assert cost is not None
        assert cost >= 0
    assert len(prices.models) + len(faults) >= len(table.keys() - {"currency"})
