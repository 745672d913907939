"""Tests of cutting text by cells instead of characters."""

from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from workbench.rendering.cells import cell_len, cut, fit
from workbench.text import one_line


def test_wide_characters_count_twice() -> None:
    assert cut("返金の確認", 5) == "返金…"
    assert cut("返金の確認", 6) == "返金…", "half a character is none"
    assert fit("返金", 7) == "返金   "
    assert cut("late_parcel", 11) == "late_parcel"
    assert cut("late_parcel", 10) == "late_parc…"


def test_zero_width_gives_an_empty_text() -> None:
    assert cut("x", 0) == ""
    assert fit("xx", 1) == "…"


SAFE = st.sampled_from([one_line(text) for text in HOSTILE]) | st.text().map(one_line)


@given(SAFE, st.integers(0, 90))
def test_fitted_text_has_exactly_the_width(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(cut(text, width)) <= width
