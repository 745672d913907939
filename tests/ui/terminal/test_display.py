"""The screen in terminals with few colours, without colours, and without Unicode."""

from collections.abc import Iterator

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from tests.ui.conftest import MakeWorkspace, OpenScreen
from tests.ui.shown import shown_strips
from workbench.ui.app import _theme_name
from workbench.ui.terminal.terminal import Display, find_display
from workbench.ui.terminal.themes import Themes, filters_for, variable_defaults

UTF8 = {"LANG": "C.UTF-8"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Display("truecolor")),
        ({"TERM": "linux", "COLORTERM": "24bit"}, Display("truecolor", signs=False)),
        ({"TERM": "linux"}, Display("standard", signs=False)),
        ({"TERM": "screen"}, Display("standard")),
        ({"TERM": "tmux"}, Display("standard")),
        ({"TERM": "xterm"}, Display("standard")),
        ({}, Display("standard")),
        ({"TERM": "screen-256color"}, Display("256")),
        ({"TERM": "tmux-256color"}, Display("256")),
        ({"TERM": "tmux-direct"}, Display("truecolor")),
        ({"TERM": "xterm-kitty"}, Display("truecolor")),
        ({"TERM": "xterm", "TEXTUAL_COLOR_SYSTEM": "256"}, Display("256")),
        ({"TERM": "xterm", "TEXTUAL_COLOR_SYSTEM": "auto"}, Display("standard")),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, Display("none")),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, Display("256")),
        ({"TERM": "xterm-256color", "LC_ALL": "C"}, Display("256", signs=False, foreign=False)),
    ],
)
def test_environment_decides_which_colours_and_characters_are_used(
    environment: dict[str, str], expected: Display
) -> None:
    assert find_display({**UTF8, **environment}, "utf-8") == expected


@pytest.mark.parametrize(
    ("shown", "named", "expected"),
    [
        (Display("truecolor"), None, "paper"),
        (Display("256"), "tide", "tide"),
        (Display("standard"), None, "terminal"),
        (Display("standard"), "tide", "tide"),
        (Display("none"), "tide", "terminal"),
    ],
)
def test_number_of_colours_and_the_named_theme_decide_the_theme(
    shown: Display, named: str | None, expected: str
) -> None:
    assert _theme_name(shown, named, "paper") == expected


def test_sixteen_colours_keep_statuses_and_differences_apart() -> None:
    theme = Themes().read("terminal")
    look = {**variable_defaults(theme), **theme.variables}
    for together in (
        ("passed", "failed", "error", "not-evaluated", "running", "queued"),
        ("failed", "flaky", "not-evaluated"),
    ):
        colors = [look[f"status-{name}"] for name in together]
        assert len(set(colors)) == len(colors), colors
    differences = [look[f"diff-{name}"] for name in ("same", "missing", "extra", "moved")]
    assert len(set(differences)) == 4
    cursor, blurred = look["block-cursor-background"], look["block-cursor-blurred-background"]
    assert len({cursor, blurred, theme.background}) == 3
    assert look["block-cursor-foreground"] not in (cursor, blurred)


def test_display_with_all_capabilities_needs_no_filter() -> None:
    assert filters_for(Display()) == filters_for(Display("standard")) == []


async def test_screen_without_colours_and_unicode_marks_verdicts_in_ascii(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(
        make_workspace({"desk": {"refunds": ["good", "bad", "大阪"]}}),
        theme="terminal",
        overrides={"theme": ["f9"]},
        shown=Display("none", signs=False, foreign=False),
    )
    async with screen.open() as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(screen.runs))
        run = screen.runs[0]
        for ref in run.refs:
            run.begin(ref)
        run.end_case(run.refs[0], "passed")
        run.end_case(run.refs[1], "failed")
        run.end_case(run.refs[2], "error")
        run.end()
        await screen.until(pilot, lambda: "x bad" in screen.text and "! ????" in screen.text)
        await pilot.press("j", "j", "j")
        assert screen.text.isascii()
        assert "????" in screen.text
        segments = [segment for strip in shown_strips(screen.app) for segment in strip]
        assert {style.color or style.bgcolor for style in styles(segments)} <= {None}
        reversed_texts = {segment.text.strip() for segment in segments if segment.style and segment.style.reverse}
        assert {"x", "!", "1x", "1!"} <= reversed_texts
        assert not {"+", "1+"} & reversed_texts
        await pilot.press("f9")
        await screen.until(pilot, lambda: "NO_COLOR is set" in screen.text)


def styles(segments: list[Segment]) -> Iterator[Style]:
    return (segment.style for segment in segments if segment.style is not None)


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        (" 48✗ ", "color(1)", [(" ", "b"), ("48✗", "br"), (" ", "b")]),
        ("!    ✗0.50", "color(13)", [("!", "br"), ("    ", "b"), ("✗0.50", "br")]),
        ("! the agent raised an exception", "color(13)", [("! the agent raised an exception", "b")]),
        ("not set", "color(1)", [("not set", "b")]),
        ("━━━╸", "color(1)", [("━━━╸", "b")]),
        ("258✓", "color(2)", [("258✓", "")]),
        ("lisbon", "on color(4)", [("lisbon", "r")]),
        ("lisbon", "reverse on color(3)", [("lisbon", "")]),
        ("lisbon", "on color(8)", [("lisbon", "u")]),
        ("✗", "color(1) on color(4)", [("✗", "bru")]),
    ],
)
def test_attributes_take_the_place_of_colours(text: str, style: str, expected: list[tuple[str, str]]) -> None:
    (without_colors,) = filters_for(Display("none"))
    found = without_colors.apply([Segment(text, Style.parse(style))], Color.parse("black"))
    attributes = {"b": "bold", "r": "reverse", "u": "underline"}
    assert [
        (segment.text, "".join(key for key, name in attributes.items() if getattr(segment.style, name)))
        for segment in found
    ] == expected
