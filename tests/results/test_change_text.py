"""The words for a comparison promise no more than its figures."""

import pytest

from workbench.results.change_text import (
    chance_text,
    change_text,
    left_out_text,
    probability,
    rate_text,
    verdict_text,
    would_show_text,
)
from workbench.results.statistics import CasePair, case_pair, compare_rates

BETTER = compare_rates(
    [CasePair((0, 3), (3, 3))] * 9 + [CasePair((3, 3), (2, 3))] * 2 + [CasePair((3, 3), (3, 3))] * 49
)


def test_change_has_its_sign_and_its_interval_rounded_outwards() -> None:
    words = change_text(BETTER)
    assert words.startswith("+13.9 points [+")
    low, high = (float(part) / 100 for part in words.split("[")[1].rstrip("]").split(", "))
    assert low <= BETTER.interval[0] < BETTER.interval[1] <= high
    assert low == pytest.approx(BETTER.interval[0], abs=0.001)
    assert verdict_text(BETTER) == "better (p 0.004)"


@pytest.mark.parametrize(
    ("p", "words"), [(0.0004, "<0.001"), (0.05, "0.050"), (0.0500001, "0.051"), (1.0, "1.000"), (0.004, "0.004")]
)
def test_probability_above_the_limit_never_looks_like_the_limit(p: float, words: str) -> None:
    assert probability(p) == words


def test_rates_are_cut() -> None:
    assert rate_text(0.99999) == "99.9%"
    assert rate_text(1.0) == "100%"


def test_unclear_comparison_says_what_it_would_show() -> None:
    unclear = compare_rates([CasePair((2, 3), (2, 3))] * 50 + [CasePair((1, 3), (2, 3)), CasePair((2, 3), (1, 3))] * 5)
    assert unclear.would_show is not None
    words = would_show_text(unclear)
    points = int(words.split("difference of ")[1].split()[0])
    assert points - 1 < unclear.would_show * 100 <= points
    few = compare_rates([CasePair((2, 3), (1, 3))] * 3)
    assert would_show_text(few) == "3 cases cannot show any difference"


def test_number_of_cases_needed_is_not_exact_to_the_case() -> None:
    noisy = compare_rates([CasePair((1, 1), (0, 1)), CasePair((0, 1), (1, 1)), CasePair((1, 1), (1, 1))] * 20)
    needed = noisy.cases_needed(0.05)
    assert needed is not None
    assert 2_100 < needed < 2_200
    assert would_show_text(noisy).endswith("; 5 points need about 2,200 cases")


def test_what_is_left_out_is_named() -> None:
    found = compare_rates([case_pair(["passed", "error"], ["error", "failed"]), case_pair(["cancelled"], ["passed"])])
    assert left_out_text(found) == "left out: 2 errors, 1 cancelled; 1 case has nothing to compare"
    assert left_out_text(BETTER) == ""


def test_small_chance_is_not_called_none() -> None:
    assert chance_text(0.5) == "chance alone: 50%"
    assert chance_text(0.0001) == "chance alone: under 1%"
