"""Agreement, checked against published figures and by properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.editing.triage.entry import agreement


def test_kappa_is_correct_for_a_known_table() -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    found = agreement(pairs)
    assert (found.items, found.agreed) == (50, 35)
    assert found.kappa == pytest.approx(0.4)


def test_kappa_is_none_where_it_is_undefined() -> None:
    assert agreement([]).kappa is None
    assert agreement([("y", "y")] * 3).kappa is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_is_symmetric(pairs: list[tuple[str, str]]) -> None:
    one, other = agreement(pairs), agreement((b, a) for a, b in pairs)
    assert one.kappa == (None if other.kappa is None else pytest.approx(other.kappa))
    assert one.kappa is None or one.kappa <= 1
