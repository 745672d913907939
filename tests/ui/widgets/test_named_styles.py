"""Styles by name: from the theme's variables, also with percentages, and new after each change of the theme."""

from dataclasses import replace

from textual.pilot import Pilot

from tests.ui.conftest import OpenScreen, Screen
from tests.ui.shown import shown_strips
from workbench.ui.widgets.named_styles import NamedStyles


async def use(screen: Screen, pilot: Pilot[int], **variables: str) -> None:
    """Change the theme only in these variables."""
    theme = screen.app.current_theme
    changed = {name.replace("_", "-"): value for name, value in variables.items()}
    screen.app.register_theme(replace(theme, name="changed", variables={**theme.variables, **changed}))
    screen.app.theme = "changed"
    await pilot.pause()


def colors(screen: Screen) -> set[str]:
    """Return the colours of all texts on the screen."""
    styles = [segment.style for strip in shown_strips(screen.app) for segment in strip]
    return {style.color.name for style in styles if style is not None and style.color is not None}


async def test_change_of_one_colour_is_shown_at_once(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j")
        assert "#123456" not in colors(screen)
        await use(screen, pilot, status_not_run="#123456")
        assert "#123456" in colors(screen)


async def test_percentages_blend_with_the_style_below(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await use(screen, pilot, background="#000000", foreground="#ffffff", half="#0000ff 50%")
        styles = NamedStyles(screen.main.tree_view, {"cursor": "bold on $half", "text": "$half"}, {"cursor": "reverse"})
        assert str(styles.get("cursor")) == "bold #ffffff on #00007f"
        assert str(styles.get("", "cursor", "text")) == "bold #0000bf on #00007f"


async def test_sixteen_colours_have_their_own_styles(open_screen: OpenScreen) -> None:
    screen = open_screen(theme="terminal")
    async with screen.open():
        styles = NamedStyles(screen.main.tree_view, {"cursor": "bold", "text": "$accent"}, {"cursor": "reverse"})
        assert str(styles.get("cursor")) == "reverse default on default"
        assert str(styles.get("cursor", "text")) == "reverse color(3) on default"
