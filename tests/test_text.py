from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE, leaks
from workbench.text import one_line, plain, visible


def test_nothing_hostile_gets_through_any_door() -> None:
    for text in HOSTILE:
        assert not leaks(plain(text)), repr(text[:40])
        assert not leaks(one_line(text)), repr(text[:40])
        assert not leaks(visible(text)), repr(text[:40])


@given(st.text(alphabet=st.characters()))
def test_whatever_the_text_no_door_leaks(text: str) -> None:
    assert not leaks(plain(text))
    assert not leaks(visible(text))
    line = one_line(text, limit=20)
    assert not leaks(line)
    assert "\n" not in line
    assert len(line) <= 20


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"])))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert plain(text) == text


def test_an_escape_becomes_a_picture_and_markup_stays_text() -> None:
    assert plain("\x1b[31m[bold]") == "␛[31m[bold]"
    assert plain("a\r\nb\rc\td") == "a\nb\nc   d"


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert plain("x" * 50, limit=10) == "x" * 10 + "… [40 more characters]"


def test_one_line_folds_white_space_and_marks_the_cut() -> None:
    assert one_line(" a\n\n b\t c ") == "a b c"
    assert one_line("abcdef", limit=4) == "abc…"
    assert one_line("x" * 10_000_000, limit=5) == "xxxx…"


def test_what_the_eye_cannot_see_is_named() -> None:
    assert visible("12.50\u00a0€ ") == "12.50⟨NBSP⟩€␠"
    assert visible("a\u200bb  c") == "a⟨ZWSP⟩b␠␠c"
    assert visible("a b") == "a b"
