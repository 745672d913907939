"""Scores as text: a score never seems to reach a threshold that it misses."""

import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.text.scores import PLACES, compared, cut_score

SCORES = st.one_of(
    st.floats(0, 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-20_000, 20_000).map(lambda number: number / 10_000),
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.79996, "0.7999"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (0.29, "0.29"),
        (1 / 3, "0.3333"),
        (-0.00001, "-0.0001"),
        (1234.5, "1234.5"),
        (1e-9, "0.0"),
        (0.99999999, "0.9999"),
        (math.nan, "nan"),
        (1e300, "1e+300"),
    ],
)
def test_score_is_cut_not_rounded(value: float, shown: str) -> None:
    assert cut_score(value) == shown


def test_narrow_column_has_fewer_decimals() -> None:
    assert [cut_score(value, 2, 2) for value in (0.796, 1.0, 0.5)] == ["0.79", "1.00", "0.50"]


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [
        (0.79996, 0.8, ("0.7999", "0.8")),
        (0.79996, 0.79995, ("0.7999", "0.7999")),
        (0.79994, 0.79995, ("0.7999", "0.79995")),
        (0.8, 0.8, ("0.8", "0.8")),
        (1 / 3, 1 / 3, ("0.3333", "0.3333")),
        (0.0, -0.0, ("0.0", "0.0")),
    ],
)
def test_score_and_threshold_side_by_side_never_mislead(score: float, threshold: float, shown: tuple[str, str]) -> None:
    assert compared(score, threshold) == shown


@given(SCORES, SCORES)
@example(0.79996, 0.8)
@example(0.7999999999999999, 0.8)
def test_shown_score_agrees_with_the_verdict(score: float, threshold: float) -> None:
    shown, limit = map(Decimal, compared(score, threshold))
    assert (shown >= limit) == (score >= threshold)


@given(SCORES, st.integers(0, 4))
def test_shown_score_is_never_above_the_score(score: float, least: int) -> None:
    shown = cut_score(score, least=least)
    assert Decimal(shown) <= Decimal(repr(score))
    if abs(score) < 1e15:
        assert len(shown.partition(".")[2]) <= PLACES
