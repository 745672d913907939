"""Rates, intervals and agreement, against figures worked out elsewhere and by properties."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.history.statistics import agreement, pass_hat_k, pass_rate, sure


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        (8, 10, 0.4901624715, 0.9433178485),
        (0, 10, 0.0, 0.2775327998),
        (10, 10, 0.7224672002, 1.0),
        (1, 2, 0.0945312057, 0.9054687943),
    ],
)
def test_wilsons_interval(passed: int, total: int, low: float, high: float) -> None:
    rate = pass_rate(passed, total)
    assert rate.low == pytest.approx(low, abs=1e-9)
    assert rate.high == pytest.approx(high, abs=1e-9)


@given(st.integers(1, 200).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_an_interval_holds_its_rate_and_narrows(counts: tuple[int, int]) -> None:
    passed, total = counts
    rate, twice = pass_rate(passed, total), pass_rate(2 * passed, 2 * total)
    assert rate.rate is not None
    assert 0 <= rate.low <= rate.rate <= rate.high <= 1
    assert twice.high - twice.low < rate.high - rate.low
    assert rate.flaky == (0 < passed < total)


def test_nothing_says_nothing() -> None:
    rate = pass_rate(0, 0)
    assert (rate.rate, rate.low, rate.high, rate.flaky) == (None, 0.0, 1.0, False)
    assert sure(rate, 0.5) is None


@given(st.integers(1, 9).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total), st.integers(1, total))))
def test_pass_hat_k_is_the_share_of_choices_that_all_pass(counts: tuple[int, int, int]) -> None:
    passed, total, k = counts
    runs = [True] * passed + [False] * (total - passed)
    chosen = list(itertools.combinations(runs, k))
    assert pass_hat_k(passed, total, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))


def test_too_few_for_k() -> None:
    assert pass_hat_k(2, 2, 3) is None
    with pytest.raises(ValueError, match="does not exist"):
        pass_hat_k(3, 2, 1)


@pytest.mark.parametrize(("passed", "total", "wanted"), [(20, 20, "above"), (0, 3, "below"), (4, 5, None)])
def test_being_sure(passed: int, total: int, wanted: str | None) -> None:
    assert sure(pass_rate(passed, total), 0.8) == wanted


def test_kappa_of_a_known_table() -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    found = agreement(pairs)
    assert (found.items, found.agreed) == (50, 35)
    assert found.kappa == pytest.approx(0.4)


def test_kappa_where_it_does_not_exist() -> None:
    assert agreement([]).kappa is None
    assert agreement([("y", "y")] * 3).kappa is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_does_not_depend_on_who_is_first(pairs: list[tuple[str, str]]) -> None:
    one, other = agreement(pairs), agreement((b, a) for a, b in pairs)
    assert one.kappa == (None if other.kappa is None else pytest.approx(other.kappa))
    assert one.kappa is None or one.kappa <= 1
