"""The words for a comparison promise no more than its figures."""

import pytest

from workbench.results.gate import (
    chance_text,
    change_text,
    left_out_text,
    p_text,
    rate_text,
    unclear_text,
)
from workbench.results.statistics import CasePair, case_pair, compare_rates

BETTER = compare_rates(
    [CasePair((0, 3), (3, 3))] * 9 + [CasePair((3, 3), (2, 3))] * 2 + [CasePair((3, 3), (3, 3))] * 49
)


def test_change_has_its_sign_and_its_interval_rounded_outwards() -> None:
    words = change_text(BETTER)
    assert words.startswith("+13.9 points [+")
    low, high = (float(part) / 100 for part in words.split("[")[1].rstrip("]").split(","))
    assert low <= BETTER.interval[0] < BETTER.interval[1] <= high
    assert low == pytest.approx(BETTER.interval[0], abs=0.001)
    worse = compare_rates([CasePair((3, 3), (2, 3))] * 8 + [CasePair((3, 3), (3, 3))] * 8)
    assert change_text(worse).startswith("−16.6 points [−") or change_text(worse).startswith("−16.7 points [−")
    assert change_text(compare_rates([CasePair((1, 1), (1, 1))] * 9)).startswith("0.0 points [−")
    assert change_text(compare_rates([])) == ""


@pytest.mark.parametrize(
    ("p", "words"),
    [(0.0004, "< 0.001"), (0.05, "= 0.050"), (0.0500001, "= 0.051"), (1.0, "= 1.000"), (0.004, "= 0.004")],
)
def test_probability_above_the_limit_never_looks_like_the_limit(p: float, words: str) -> None:
    assert p_text(p) == f"p {words}"


def test_pass_rates_are_cut_not_rounded() -> None:
    assert rate_text(0.99999) == "99.9%"
    assert rate_text(1.0) == "100.0%"
    assert rate_text(None) == "–"


def test_unclear_comparison_names_the_smallest_difference_it_can_show() -> None:
    unclear = compare_rates([CasePair((2, 3), (2, 3))] * 50 + [CasePair((1, 3), (2, 3)), CasePair((2, 3), (1, 3))] * 5)
    assert unclear.would_show is not None
    words = unclear_text(unclear)
    assert words.startswith("these 60 cases show no difference. They would show a difference of ")
    points = int(words.split("difference of ")[1].split()[0])
    assert points - 1 < unclear.would_show * 100 <= points
    few = compare_rates([CasePair((2, 3), (1, 3))] * 3)
    assert unclear_text(few) == "these 3 cases show no difference. They are too few to show any."
    assert unclear_text(compare_rates([CasePair((2, 3), (1, 3))])) == (
        "this case shows no difference. It is too few to show any."
    )


def test_number_of_needed_cases_is_rounded() -> None:
    noisy = compare_rates([CasePair((1, 1), (0, 1)), CasePair((0, 1), (1, 1)), CasePair((1, 1), (1, 1))] * 20)
    needed = noisy.cases_needed(0.05)
    assert needed is not None
    assert 2_100 < needed < 2_200
    assert unclear_text(noisy).endswith("; for 5 points you need about 2,200 cases.")


def test_left_out_executions_are_counted_by_status() -> None:
    found = compare_rates([case_pair(["passed", "error"], ["error", "failed"]), case_pair(["cancelled"], ["passed"])])
    assert left_out_text(found) == "left out: 2 errors, 1 cancelled; 1 case has no verdict on one side"
    assert left_out_text(BETTER) == ""


def test_small_chance_is_not_shown_as_zero() -> None:
    assert chance_text(0.5) == "chance alone: 50%"
    assert chance_text(0.0001) == "chance alone: under 1%"
