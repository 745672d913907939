"""Cutting by cells, not by characters."""

from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from workbench.rendering.cells import cell_len, cut, fit, wrap
from workbench.text import one_line


def test_wide_characters_count_twice() -> None:
    assert cut("返金の確認", 5) == "返金…"
    assert cut("返金の確認", 6) == "返金…", "half a character is none"
    assert fit("返金", 7) == "返金   "
    assert cut("late_parcel", 11) == "late_parcel"
    assert cut("late_parcel", 10) == "late_parc…"


def test_no_room() -> None:
    assert cut("x", 0) == ""
    assert fit("xx", 1) == "…"
    assert wrap("x", 0) == []


def test_lines_break_at_blanks_where_there_are_any() -> None:
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("返金の確認をする", 6) == ["返金の", "確認を", "する"]
    assert wrap("", 5) == [""]


SAFE = st.sampled_from([one_line(text) for text in HOSTILE]) | st.text().map(one_line)


@given(SAFE, st.integers(0, 90))
def test_a_fitted_text_has_exactly_the_width(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(cut(text, width)) <= width


@given(SAFE, st.integers(2, 90))
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
