"""Tests of layout by cells: nothing is lost, nothing overflows."""

from collections.abc import Iterable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from workbench.results.cells import cell_len
from workbench.results.lines import (
    cut_line,
    hang,
    joined,
    pad,
    pieces,
    rule,
    safe,
    wrap,
    wrap_indented,
)
from workbench.text.safe_text import plain

TEXTS = st.lists(
    st.sampled_from(
        ["word ", "a", " ", "\n", "日本語", "。", "ก็", "é", "👩‍👩‍👧", "❤", "\ufe0f", "\u200d", "العربية", "x" * 30]
    )
    | st.text(max_size=12),
    max_size=30,
).map(lambda parts: Text.assemble(*((plain(part), f"style{index % 3}") for index, part in enumerate(parts))))


# Lines of ten cells. Rich begins a line with a full stop, leaves a line half empty, or cuts the name of a file.
UNLIKE_RICH = {
    "荷物はどこ。返金": ["荷物はど", "こ。返金"],
    "返金します、明日": ["返金しま", "す、明日"],
    "エラー: 返品は三十日以内": ["エラー: 返", "品は三十日", "以内"],
    "in /tmp/one/shop.py, line 2": ["in", "/tmp/one/", "shop.py,", "line 2"],
    "/tmp/été/shop": ["/tmp/été/", "shop"],
}


def texts(lines: Iterable[Text]) -> list[str]:
    return [line.plain for line in lines]


def test_lines_break_at_blanks_and_drop_them() -> None:
    assert texts(wrap(Text("one two  three"), 7)) == ["one two", "three"]


def test_word_longer_than_a_line_is_broken_anywhere() -> None:
    assert texts(wrap(Text("abcdefghij"), 4)) == ["abcd", "efgh", "ij"]
    assert texts(wrap(Text("a/very_long_name"), 10)) == ["a/very_lon", "g_name"]


@pytest.mark.parametrize("text", UNLIKE_RICH)
def test_east_asian_text_and_long_paths_break_where_readers_expect_it(text: str) -> None:
    assert texts(wrap(Text(text), 10)) == UNLIKE_RICH[text]


@pytest.mark.parametrize("text", UNLIKE_RICH)
def test_rich_breaks_east_asian_text_and_long_paths_elsewhere(text: str) -> None:
    # Once this fails, Rich is right, and our own break positions can go.
    assert [line.plain.rstrip() for line in Text(text).wrap(Console(), 10)] != UNLIKE_RICH[text]


def test_white_space_within_a_line_and_empty_lines_stay() -> None:
    assert texts(wrap(Text("a   b\n\n  c"), 20)) == ["a   b", "", "  c"]


def test_styles_stay_with_their_text_across_a_break() -> None:
    lines = wrap(Text.assemble(("one ", "x"), ("two three", "y")), 7)
    assert [list(pieces(line)) for line in lines] == [[("one ", "x"), ("two", "y")], [("three", "y")]]


def test_pieces_do_not_end_inside_a_character() -> None:
    family = "👩\u200d👧"
    assert list(pieces(Text.assemble(("a👩", "x"), ("\u200d", "y"), ("👧b", "z")))) == [(f"a{family}", "x"), ("b", "z")]


def test_later_style_wins_where_styles_overlap() -> None:
    text = Text.styled("abc", "x")
    text.stylize("y", 1, 2)
    assert list(pieces(text)) == [("a", "x"), ("b", "y"), ("c", "x")]


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[red", ":smile:", "[@click=app.quit]x[/]"])
def test_foreign_text_is_not_markup(text: str) -> None:
    assert list(pieces(safe(text, "muted"))) == [(text, "muted")]
    assert [list(pieces(line)) for line in wrap(safe(text, "muted"), 40)] == [[(text, "muted")]]


def test_continuation_line_is_indented_further() -> None:
    assert texts(wrap_indented(Text("  one two three"), 10)) == ["  one", "    two", "    three"]


def test_lead_is_beside_its_body_or_above_if_too_long() -> None:
    body = [Text("a"), Text("b")]
    assert texts(hang(Text("x"), body, 3)) == ["x  a", "   b"]
    assert texts(hang(Text("long"), body, 3)) == ["long", "   a", "   b"]


def test_layout_functions_do_not_change_their_input() -> None:
    line = Text.styled("荷物はどこ", "muted")
    before = line.copy()
    for made in (cut_line(line, 4), pad(line, 20), joined([line, line]), *wrap(line, 4), *hang(line, [line], 12)):
        made.append("!")
    assert (line, len(line.spans)) == (before, 1)


def test_rule_fills_its_width() -> None:
    line = rule(Text("turn 1"), Text("PASS"), 30)
    assert line.plain == "─ turn 1 ───────────── PASS ──"[:22] + line.plain[22:]
    assert line.cell_len == 30


def test_parts_are_joined_with_a_separator() -> None:
    assert joined([Text("a"), Text("b")], ", ").plain == "a, b"


@given(TEXTS, st.integers(2, 50))
def test_no_line_is_wider_than_requested(text: Text, width: int) -> None:
    for line in [*wrap(text, width), *wrap_indented(text, max(width, 8))]:
        assert line.cell_len <= max(width, 8)
        assert sum(cell_len(piece) for piece, _ in pieces(line)) == line.cell_len
    assert all(line.cell_len <= width for line in wrap(text, width))


@given(TEXTS, st.integers(1, 50))
def test_wrapping_drops_only_white_space(text: Text, width: int) -> None:
    assert "".join("".join(texts(wrap(text, width))).split()) == "".join(text.plain.split())


@given(TEXTS, st.integers(2, 50))
def test_cut_line_fits(text: Text, width: int) -> None:
    line = wrap(text, 10_000)[0]
    # Rich cuts and measures a text that begins with two joiners in different ways.
    assume(not line.plain.startswith("\u200d"))
    assert cut_line(line, width).cell_len <= width


@given(TEXTS, TEXTS, st.integers(24, 120))
def test_rule_fits_with_any_content(left: Text, right: Text, width: int) -> None:
    assert rule(wrap(left, 10_000)[0], wrap(right, 10_000)[0], width).cell_len <= width


@pytest.mark.parametrize("width", range(15, 24))
def test_rule_has_a_blank_beside_its_text(width: int) -> None:
    line = rule(Text("turn 1"), Text("9 ms"), width).plain
    assert len(line) == width
    assert line.startswith("─ turn 1 " if width >= 16 else "─ t")
    assert "… " in line or width >= 16
    assert line.endswith(" 9 ms ─")
