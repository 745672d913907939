"""The pictures of the pages: what is drawn, and how the recording plays."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.pictures.frame import Frame, Piece, read_frame
from docs.pictures.player import opened
from docs.pictures.svg import Shot, animation, still

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
RED, BLUE = "fill:#ff0000", "fill:#0000ff"
PAPER = Piece(0, 10, "#12151c", "")


def frame(text: str) -> Frame:
    return Frame(10, ((PAPER, Piece(0, len(text), RED, text)), (PAPER, Piece(0, 4, BLUE, "same"))))


async def test_frame_has_the_text_and_colours_of_the_screen() -> None:
    async with opened((80, 24), only=("wrapped_bot",)) as player:
        shown = player.frame
        lines = player.text.splitlines()
    assert (shown.columns, len(shown.lines)) == (80, 24)
    assert lines[1].startswith("╭─ cases ──")
    assert lines[1].endswith("─╮")
    assert len({piece.style for line in shown.lines for piece in line if piece.text}) > 3


def test_svg_from_another_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no screenshot of Textual"):
        read_frame("<svg></svg>")


def test_unchanged_line_is_drawn_once() -> None:
    drawn = animation([Shot(frame("one"), 1.0), Shot(frame("two"), 2.0)], "title", 0)
    ElementTree.fromstring(drawn)
    assert drawn.count(">same<") == 1
    assert drawn.count(">one<") == drawn.count(">two<") == 1


def test_one_frame_is_visible_at_each_moment() -> None:
    drawn = animation([Shot(frame("one"), 1.0), Shot(frame("two"), 2.0), Shot(frame("three"), 1.0)], "title", 1)
    assert "@keyframes k0{0.000%{visibility:visible}25.000%{visibility:hidden}}" in drawn
    assert "@keyframes k1{0%{visibility:hidden}25.000%{visibility:visible}75.000%{visibility:hidden}}" in drawn
    assert "@keyframes k2{0%{visibility:hidden}75.000%{visibility:visible}}" in drawn


def test_still_picture_has_one_frame() -> None:
    drawn = animation([Shot(frame("one"), 1.0), Shot(frame("two"), 2.0)], "title", 1)
    assert ".f{visibility:hidden;animation:3s step-end infinite}#f1{visibility:visible}" in drawn
    assert "prefers-reduced-motion" in drawn
    assert "animation" not in still(frame("one"), "title")


def test_markup_characters_in_text_are_escaped() -> None:
    ElementTree.fromstring(still(frame("<b>&"), "a < b"))


@pytest.mark.parametrize("file", sorted(PICTURES.glob("*.svg")), ids=lambda file: file.name)
def test_picture_is_valid_and_small_and_contains_no_local_path(file: Path) -> None:
    drawn = file.read_text("utf-8")
    ElementTree.fromstring(drawn)
    assert len(drawn) < 2_000_000
    assert set(re.findall(r"https?://[^\s\"'<]+", drawn)) <= {"http://www.w3.org/2000/svg"}
    assert "/tmp/tmp" not in drawn.replace("\xa0", " ")


def test_the_recording_shows_the_failure_and_the_fix() -> None:
    drawn = (PICTURES / "recording.svg").read_text("utf-8").replace("\xa0", " ")
    for text in ('"12.50"', "✗ FAIL", "✓ PASS", "saved in your editor"):
        assert text in drawn
    assert '"12.50"' in (PICTURES / "recording-still.svg").read_text("utf-8").replace("\xa0", " ")
