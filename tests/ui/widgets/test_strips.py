"""Joined segments look the same."""

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from workbench.ui.widgets.rows import joined

STYLES = [
    Style(color="red", bgcolor="black"),
    Style(color="blue", bgcolor="black", bold=True),
    Style(color="blue", bgcolor="white"),
    Style(color="blue", bgcolor="black", underline=True),
]


def cells(segments: list[Segment]) -> list[tuple[str, object]]:
    """Return each character with its style. Of a blank's style, only background, underline and reverse count."""
    seen: list[tuple[str, object]] = []
    for text, style, _ in segments:
        assert style is not None
        for letter in text:
            blank = (style.bgcolor, bool(style.underline), bool(style.reverse))
            seen.append((letter, blank if letter == " " else style))
    return seen


@given(st.lists(st.tuples(st.sampled_from(["", " ", "  ", "a", "b c"]), st.sampled_from(STYLES))))
def test_joined_segments_look_the_same(parts: list[tuple[str, Style]]) -> None:
    segments = [Segment(text, style) for text, style in parts]
    assert cells(joined(segments)) == cells(segments)


def test_blanks_take_the_style_of_their_neighbour() -> None:
    red, blue, white, line = STYLES
    assert joined([Segment("  ", blue), Segment("x", red), Segment(" ", blue)]) == [Segment("  x ", red)]
    assert len(joined([Segment("x", red), Segment(" ", white)])) == 2
    assert len(joined([Segment("x", red), Segment(" ", line)])) == 2
