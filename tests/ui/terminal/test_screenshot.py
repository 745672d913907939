"""Screenshots: complete without external files, and saved where the user says."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.ui.conftest import OpenScreen
from workbench.ui.terminal.host import picture, screenshot_name

_FONT = "@font-face { font-family: 'Fira Code'; src: url('https://example.com/font.woff2'); }"


def test_screenshot_loads_no_external_resources() -> None:
    style = f"{_FONT}\n.a {{ font-family: Fira Code, monospace }}"
    svg = f"<svg><!-- made by -->\n<style>{style}</style>\n\n<text>é</text></svg>"
    made = picture(svg).decode()
    assert "http" not in made
    assert "made by" not in made
    assert "Menlo, Consolas, monospace" in made
    assert "<text>é</text>" in made


def test_screenshot_positions_texts_by_cells() -> None:
    rest = 'textLength="61" clip-path="url(#a)"'
    svg = f'<text class="r" x="12.2" y="20" {rest}>&#160;&#160;返&#160;&gt;&#160;</text>'
    svg += f'<text x="0" y="1" {rest}>&#160;&#160;</text>'
    made = picture(svg).decode()
    assert made == '<text class="r" x="36.6" y="20" textLength="48.8" clip-path="url(#a)">返&#160;&gt;</text>\n'


def test_screenshot_gets_an_unused_name(tmp_path: Path) -> None:
    (tmp_path / "agent-workbench.svg").touch()
    assert screenshot_name(tmp_path) == "agent-workbench-2.svg"


async def test_screenshot_is_saved_where_the_user_says(
    open_screen: OpenScreen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    screen = open_screen()
    async with screen.open((80, 24)) as pilot:
        await screen.until(pilot, lambda: "refunds" in screen.text)
        await screen.main.run_action("screenshot")
        await screen.until(pilot, lambda: "agent-workbench.svg" in screen.text)
        await pilot.press(*["backspace"] * 30, *"nowhere/x.svg", "enter")
        await screen.until(pilot, lambda: "No such file" in screen.text)
        await screen.main.run_action("screenshot")
        await screen.until(pilot, lambda: "agent-workbench.svg" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: (tmp_path / "agent-workbench.svg").is_file())
        await screen.main.run_action("screenshot")
        await screen.until(pilot, lambda: "agent-workbench-2.svg" in screen.text)
        await pilot.press(*["backspace"] * 30, *"agent-workbench.svg", "enter")
        await screen.until(pilot, lambda: "agent-workbench.svg already exists" in screen.text)
    made = (tmp_path / "agent-workbench.svg").read_text()
    assert ElementTree.fromstring(made).tag.endswith("svg")
    assert "refunds" in made.replace("&#160;", " ")
    assert made.count("http") == made.count("http://www.w3.org/")
