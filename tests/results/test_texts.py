"""Tests of expected and actual text."""

from collections.abc import Callable, Iterable

from rich.text import Text

from workbench.results.lines import Line, View, pieces
from workbench.results.texts import both_sides, text_lines

Texts = Callable[[Iterable[Line]], list[str]]
NARROW, WIDE = View(60, signs=True), View(120, signs=True)


def compared(expected: str, actual: str, view: View, marks: tuple[object, object] = (None, None)) -> list[Line]:
    left, right, note = both_sides(expected, actual, view.room, view, marks)
    return [*left, *right, *([Text(note)] if note else [])]


def test_both_texts_have_their_marks(texts: Texts) -> None:
    lines = texts(compared("It takes three days.", "It takes five days.", NARROW))
    assert lines == [
        "It takes −{three} days.",
        "It takes +{five} days.",
    ]


def test_marks_are_styles_where_there_are_colours(texts: Texts) -> None:
    left, right = compared("It takes three days.", "It takes five days.", View(60))
    assert texts([left, right]) == ["It takes three days.", "It takes five days."]
    assert ("three", "mark-missing") in pieces(left)
    assert ("five", "mark-extra") in pieces(right)


def test_empty_text_is_named(texts: Texts) -> None:
    assert texts(compared("Hello", "", NARROW)) == ["−{Hello}", "nothing"]


def test_invisible_spaces_are_shown(texts: Texts) -> None:
    lines = texts(compared("a b", "a\u00a0b", NARROW))
    assert lines == ["a−{␠}b", "a+{⟨NBSP⟩}b"]


def test_ignored_differences_are_marked_and_explained(texts: Texts) -> None:
    marks = [["a", "same"], [" ", "space"], ["b", "same"]], [["A", "same"], [" ", "space"], ["b", "same"]]
    lines = texts(compared("a b", "A b", NARROW, marks))
    assert lines[:2] == ["−{a} b", "+{A} b"]
    assert "the score ignores" in " ".join(" ".join(lines[2:]).split())


def test_long_text_is_cut_with_a_line_count(texts: Texts) -> None:
    text = "\n".join(f"line {number}" for number in range(5000))
    lines = texts(text_lines(text, 40, NARROW))
    assert len(lines) < 40
    assert lines[-1].startswith("… about 4,9")
    assert len(text_lines(text, 40, View(60, full=True))) == 5000


def test_difference_in_the_middle_of_a_long_text_is_shown(texts: Texts) -> None:
    lines = [f"Line {number} is fine." for number in range(5000)]
    other = [line if number != 2500 else "Line 2500 is broken." for number, line in enumerate(lines)]
    found = texts(compared("\n".join(lines), "\n".join(other), NARROW))
    assert len(found) < 30
    assert any("Line 2500 is −{fine}." in line for line in found)
    assert any("Line 2500 is +{broken}." in line for line in found)
    assert any("characters unchanged" in line for line in found)


def test_line_of_100_kb_is_cut_around_differences(texts: Texts) -> None:
    start, end = "lorem ipsum " * 7000, "dolor sit " * 1000
    found = texts(compared(f"{start}one {end}", f"{start}two {end}", WIDE))
    assert len(found) < 25
    assert any("−{one}" in line for line in found)
    assert any("+{two}" in line for line in found)
    assert any("characters unchanged" in line for line in found)


def test_huge_text_on_one_side_is_cut(texts: Texts) -> None:
    found = texts(compared("fine", "fine " + "noise " * 20_000, NARROW))
    assert len(found) < 40
    assert any("more" in line for line in found)


def test_difference_beyond_the_limit_is_reported(texts: Texts) -> None:
    found = texts(compared("x" * 100_000 + "a", "x" * 100_000 + "b", WIDE))
    assert "the first 100,000 characters are equal; later ones differ" in found[-1]
