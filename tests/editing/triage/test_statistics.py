"""Cohen's kappa, checked against published figures and by properties."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.editing.triage.entry import kappa_of


def test_kappa_is_correct_for_a_known_table() -> None:
    assert kappa_of({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15}) == pytest.approx(0.4)


def test_kappa_is_none_where_it_is_undefined() -> None:
    assert kappa_of({}) is None
    assert kappa_of({("y", "y"): 3}) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_is_symmetric(pairs: list[tuple[str, str]]) -> None:
    one, other = kappa_of(Counter(pairs)), kappa_of(Counter((b, a) for a, b in pairs))
    assert one == (None if other is None else pytest.approx(other))
    assert one is None or one <= 1
