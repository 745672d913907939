from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE, leaks
from workbench.text.safe_text import one_line, plain, visible


def test_hostile_text_is_always_made_safe() -> None:
    for text in HOSTILE:
        assert not leaks(plain(text)), repr(text[:40])
        assert not leaks(one_line(text)), repr(text[:40])
        assert not leaks(visible(text)), repr(text[:40])


@given(st.text(alphabet=st.characters()))
def test_any_text_becomes_safe(text: str) -> None:
    assert not leaks(plain(text))
    assert not leaks(visible(text))
    line = one_line(text, limit=20)
    assert not leaks(line)
    assert "\n" not in line
    assert len(line) <= 20


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"])))
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert plain(text) == text


def test_escape_becomes_a_symbol_and_markup_stays_text() -> None:
    assert plain("\x1b[31m[bold]") == "␛[31m[bold]"
    assert plain("a\r\nb\rc\td") == "a\nb\nc   d"


def test_long_text_is_cut_with_the_number_of_missing_characters() -> None:
    assert plain("x" * 50, limit=10) == "x" * 10 + "… [40 more characters]"


def test_one_line_collapses_white_space_and_marks_the_cut() -> None:
    assert one_line(" a\n\n b\t c ") == "a b c"
    assert one_line("abcdef", limit=4) == "abc…"
    assert one_line("x" * 10_000_000, limit=5) == "xxxx…"
    assert one_line(" " * 10_000 + "late", limit=5) == "late"


def test_invisible_characters_are_named() -> None:
    assert visible("12.50\u00a0€ ") == "12.50⟨NBSP⟩€␠"
    assert visible("a\u200bb  c") == "a⟨ZWSP⟩b␠␠c"
    assert visible("a b") == "a b"
