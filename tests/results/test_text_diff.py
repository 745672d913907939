"""Tests of the word-by-word comparison of two texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.results.texts import Piece, compare, differs, from_marks

WORDS = st.lists(st.sampled_from(["a", "b", "c", " ", "  ", "\n", ",", "日", "本", "é"]), max_size=30).map("".join)


def marked(pieces: tuple[Piece, ...]) -> str:
    return "".join(f"[{text}]" if kind != "same" else text for text, kind in pieces)


@pytest.mark.parametrize(
    ("expected", "actual", "left", "right"),
    [
        ("It takes three days.", "It takes five days.", "It takes [three] days.", "It takes [five] days."),
        ("on its way", "under way now", "[on its] way", "[under] way [now]"),
        ("三営業日以内", "五営業日以内", "[三]営業日以内", "[五]営業日以内"),
        ("a b", "a  b", "a[ ]b", "a[  ]b"),
        ("a b", "a\u00a0b", "a[ ]b", "a[\u00a0]b"),
        ("a ", "a", "a[ ]", "a"),
        ("don't", "don 't", "don't", "don[ ]'t"),
        ("", "new", "", "[new]"),
        ("same", "same", "same", "same"),
    ],
)
def test_words_on_only_one_side_are_marked(expected: str, actual: str, left: str, right: str) -> None:
    assert tuple(map(marked, compare(expected, actual))) == (left, right)


@given(WORDS, WORDS)
def test_pieces_restore_both_texts_and_differ_only_if_the_texts_do(expected: str, actual: str) -> None:
    left, right = compare(expected, actual)
    assert ("".join(text for text, _ in left), "".join(text for text, _ in right)) == (expected, actual)
    assert (differs(left) or differs(right)) == (expected != actual)


@given(WORDS, WORDS)
def test_equal_pieces_are_equal_on_both_sides(expected: str, actual: str) -> None:
    left, right = compare(expected, actual)
    one, other = ("".join("".join(text.split()) for text, kind in side if kind == "same") for side in (left, right))
    assert one == other


def test_marks_of_a_metric_win_and_adjacent_ones_are_joined() -> None:
    marks = [["on", "missing"], [" ", "space"], ["its", "missing"], [" ", "space"], ["way", "same"], [".", "space"]]
    assert from_marks(marks, "on its way.", "missing") == (("on its", "missing"), (" way.", "same"))


@pytest.mark.parametrize("marks", [None, "text", [["a"]], [["a", "same", 1]], [[1, "same"]], [["other", "same"]], [1]])
def test_marks_that_are_malformed_or_of_another_text_are_refused(marks: object) -> None:
    assert from_marks(marks, "a", "missing") is None


def test_paragraphs_are_not_joined_into_one_mark() -> None:
    left, _ = compare("one\n\ntwo", "")
    assert left == (("one", "missing"), ("\n\n", "same"), ("two", "missing"))


def test_long_texts_are_compared_quickly() -> None:
    expected = "lorem ipsum dolor " * 5000
    left, right = compare(expected, expected.replace("dolor", "color", 3))
    assert differs(left)
    assert differs(right)
