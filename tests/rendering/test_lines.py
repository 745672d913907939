"""Tests of layout by cells: nothing is lost, nothing overflows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.rendering.cells import cell_len
from workbench.rendering.lines import (
    Line,
    Segment,
    beside,
    column_width,
    cut_line,
    hang,
    joined,
    rule,
    text_of,
    width_of,
    wrap,
    wrap_indented,
)
from workbench.text import plain

TEXTS = st.lists(
    st.sampled_from(
        ["word ", "a", " ", "\n", "日本語", "。", "ก็", "é", "👩‍👩‍👧", "❤", "\ufe0f", "\u200d", "العربية", "x" * 30]
    )
    | st.text(max_size=12),
    max_size=30,
).map(lambda parts: [Segment(plain(part), str(index % 3)) for index, part in enumerate(parts)])


def texts(lines: list[Line]) -> list[str]:
    return [text_of(line) for line in lines]


def test_lines_break_at_blanks_and_drop_them() -> None:
    assert texts(list(wrap([Segment("one two three")], 7))) == ["one two", "three"]


def test_word_longer_than_a_line_is_broken_anywhere() -> None:
    assert texts(list(wrap([Segment("abcdefghij")], 4))) == ["abcd", "efgh", "ij"]


def test_path_longer_than_a_line_is_broken_after_a_slash() -> None:
    assert texts(list(wrap([Segment("/tmp/shops/one/shop")], 16))) == ["/tmp/shops/one/", "shop"]
    assert texts(list(wrap([Segment("/tmp/shops/été/shop")], 16))) == ["/tmp/shops/été/", "shop"]
    assert texts(list(wrap([Segment("a/very_long_name_without")], 12))) == ["a/very_long_", "name_without"]


def test_east_asian_text_breaks_between_characters_but_no_line_starts_with_a_full_stop() -> None:
    assert texts(list(wrap([Segment("荷物はどこ。返金")], 10))) == ["荷物はど", "こ。返金"]


def test_white_space_within_a_line_and_empty_lines_stay() -> None:
    assert texts(list(wrap([Segment("a   b\n\n  c")], 20))) == ["a   b", "", "  c"]


def test_styles_stay_with_their_text_across_a_break() -> None:
    lines = list(wrap([Segment("one ", "x"), Segment("two three", "y")], 7))
    assert lines == [(Segment("one ", "x"), Segment("two", "y")), (Segment("three", "y"),)]


def test_continuation_is_indented_further() -> None:
    assert texts(list(wrap_indented([Segment("  one two three")], 10))) == ["  one", "    two", "    three"]


def test_lead_is_in_the_gutter_or_above() -> None:
    body: list[Line] = [(Segment("a"),), (Segment("b"),)]
    assert texts(list(hang([Segment("x")], body, 3))) == ["x  a", "   b"]
    assert texts(list(hang([Segment("long")], body, 3))) == ["long", "   a", "   b"]


def test_columns_line_up_by_cells() -> None:
    lines = list(beside([(Segment("荷物"),), (Segment("ab"),)], [(Segment("1"),), (Segment("2"),), (Segment("3"),)], 6))
    assert texts(lines) == ["荷物   │ 1", "ab     │ 2", "       │ 3"]


def test_rule_fills_its_width() -> None:
    line = rule((Segment("turn 1"),), (Segment("PASS"),), 30)
    assert text_of(line) == "─ turn 1 ───────────── PASS ──"[:22] + text_of(line)[22:]
    assert width_of(line) == 30


def test_parts_are_joined_with_a_separator() -> None:
    assert text_of(joined([(Segment("a"),), (Segment("b"),)], ", ")) == "a, b"


@given(TEXTS, st.integers(2, 50))
def test_no_line_is_wider_than_requested(segments: list[Segment], width: int) -> None:
    for line in [*wrap(segments, width), *wrap_indented(segments, max(width, 8))]:
        assert cell_len(text_of(line)) <= max(width, 8)
        assert width_of(line) <= max(width, 8)
    for line in wrap(segments, width):
        assert width_of(line) <= width


@given(TEXTS, st.integers(2, 50))
def test_wrapping_drops_only_blanks_and_line_breaks(segments: list[Segment], width: int) -> None:
    whole = "".join(segment.text for segment in segments)
    found = "".join(texts(list(wrap(segments, width))))
    assert found.replace(" ", "") == whole.replace(" ", "").replace("\n", "")


@given(TEXTS, st.integers(2, 50))
def test_cut_line_fits(segments: list[Segment], width: int) -> None:
    line = next(wrap(segments, 10_000))
    assert width_of(cut_line(line, width)) <= width


@given(TEXTS, TEXTS, st.integers(24, 120))
def test_rule_fits_with_any_content(left: list[Segment], right: list[Segment], width: int) -> None:
    start, end = next(wrap(left, 10_000)), next(wrap(right, 10_000))
    assert width_of(rule(start, end, width)) <= width


@pytest.mark.parametrize("width", [24, 60, 100, 101, 200])
def test_two_columns_and_their_separator_fit(width: int) -> None:
    column = column_width(width)
    line = next(beside([(Segment("x" * column),)], [(Segment("y" * column),)], column))
    assert width - 1 <= width_of(line) <= width
