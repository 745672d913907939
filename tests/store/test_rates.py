"""Pass rates and intervals, checked against published figures and by properties."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.store.rates import fewest_for_sure, pass_hat_k, pass_rate, sure


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        (8, 10, 0.4901624715, 0.9433178485),
        (0, 10, 0.0, 0.2775327998),
        (10, 10, 0.7224672002, 1.0),
        (1, 2, 0.0945312057, 0.9054687943),
    ],
)
def test_interval_equals_wilsons(passed: int, total: int, low: float, high: float) -> None:
    rate = pass_rate(passed, total)
    assert rate.low == pytest.approx(low, abs=1e-9)
    assert rate.high == pytest.approx(high, abs=1e-9)


@given(st.integers(1, 200).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_interval_contains_its_rate_and_narrows_with_repeats(counts: tuple[int, int]) -> None:
    passed, total = counts
    rate, twice = pass_rate(passed, total), pass_rate(2 * passed, 2 * total)
    assert rate.rate is not None
    assert 0 <= rate.low <= rate.rate <= rate.high <= 1
    assert twice.high - twice.low < rate.high - rate.low
    assert rate.flaky == (0 < passed < total)


def test_rate_is_unknown_without_repeats() -> None:
    rate = pass_rate(0, 0)
    assert (rate.rate, rate.low, rate.high, rate.flaky) == (None, 0.0, 1.0, False)
    assert sure(rate, 0.5) is None


@given(st.integers(1, 9).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total), st.integers(1, total))))
def test_pass_hat_k_is_the_share_of_choices_that_all_pass(counts: tuple[int, int, int]) -> None:
    passed, total, k = counts
    runs = [True] * passed + [False] * (total - passed)
    chosen = list(itertools.combinations(runs, k))
    assert pass_hat_k(passed, total, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))


def test_pass_hat_k_needs_at_least_k_repeats() -> None:
    assert pass_hat_k(2, 2, 3) is None
    with pytest.raises(ValueError, match="needs k ≥ 1 and 0 to 2 passes, not 3"):
        pass_hat_k(3, 2, 1)


@pytest.mark.parametrize(
    ("passed", "total", "threshold", "wanted"),
    [
        (21, 21, 0.8, "above"),
        (20, 20, 0.8, None),
        (0, 3, 0.8, "below"),
        (0, 2, 0.8, None),
        (4, 5, 0.8, None),
        (44, 44, 0.9, "above"),
        (43, 43, 0.9, None),
        (0, 1, 0.9, None),
        (0, 2, 0.9, None),
        (0, 3, 0.9, "below"),
        (5000, 5000, 0.999, "above"),
        (9, 10, 1.0, "below"),
        (500, 500, 1.0, None),
    ],
)
def test_sure_needs_enough_repeats(passed: int, total: int, threshold: float, wanted: str | None) -> None:
    assert sure(pass_rate(passed, total), threshold) == wanted


@given(
    st.integers(1, 120).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))),
    st.floats(0.02, 0.98),
)
def test_sure_is_stricter_than_the_interval(counts: tuple[int, int], threshold: float) -> None:
    rate = pass_rate(*counts)
    verdict = sure(rate, threshold)
    if verdict == "above":
        assert rate.low >= threshold
    elif verdict == "below":
        assert rate.high < threshold


@given(
    st.integers(1, 80).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))), st.floats(0.05, 0.95)
)
def test_more_repeats_of_the_same_kind_stay_sure(counts: tuple[int, int], threshold: float) -> None:
    passed, total = counts
    if sure(pass_rate(passed, total), threshold) == "above":
        assert sure(pass_rate(passed + 1, total + 1), threshold) == "above"
    if sure(pass_rate(passed, total), threshold) == "below":
        assert sure(pass_rate(passed, total + 1), threshold) == "below"


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.9])
def test_checking_after_each_repeat_is_rarely_wrong(threshold: float) -> None:
    """Exactly: how likely it is that one of 50 looks ends on the wrong side of a true rate at the threshold."""
    for true, wrong in ((threshold, "below"), (threshold - 1e-9, "above")):
        still_open, ended = {0: 1.0}, 0.0
        for total in range(1, 51):
            after: dict[int, float] = {}
            for passed, weight in still_open.items():
                after[passed + 1] = after.get(passed + 1, 0.0) + weight * true
                after[passed] = after.get(passed, 0.0) + weight * (1 - true)
            verdicts = {passed: sure(pass_rate(passed, total), threshold) for passed in after}
            ended += sum(weight for passed, weight in after.items() if verdicts[passed] == wrong)
            still_open = {passed: weight for passed, weight in after.items() if verdicts[passed] is None}
        assert ended <= 0.042


@pytest.mark.parametrize(("threshold", "fewest"), [(0.5, 7), (0.8, 21), (0.9, 44), (0.95, 90), (1.0, None)])
def test_fewest_passes_that_prove_a_rate_are_found(threshold: float, fewest: int | None) -> None:
    assert fewest_for_sure(threshold) == fewest
    if fewest is not None:
        assert sure(pass_rate(fewest, fewest), threshold) == "above"
