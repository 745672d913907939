"""The tour, `docs/tour.md`: its keys, read from the page, and its pictures."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from docs.pictures.player import Player, opened
from docs.pictures.svg import still

PAGE = Path(__file__).parents[1] / "tour.md"
_SIZE = (80, 24)
EXPECTED = {
    "Open": "everything",
    "Run": "✗11",
    "Go to a problem": "tonight › lisbon",
    "Find a case": 'refund(id="A-7", amount=…)',
    "Fix it and watch": "late_parcel ↑",
    "See what changed the verdict": "fix  order_desk › refunds › late_parcel",
    "Review failures one by one": "Review  cause 1 of",
    "Read what a judge said": "It left our warehouse in Hamburg.",
    "Try another threshold": "1 of them overall: made_up_origin",
}
"""A text that the screen shows once a step is done, by the step's title."""
_SECTION = re.compile(r"^(?:## \d+\.|###) (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_PART = re.compile(
    r"^(?P<keys>Press .*?)\n$|^!\[.*\]\(pictures/(?P<picture>.+)\)$|^```diff\n-(?P<old>.*)\n\+(?P<new>.*)\n```$",
    re.MULTILINE | re.DOTALL,
)
_NOTHING = "no other problem"
"""What the screen says if `n` finds nothing."""
_NAMES = {"esc": "escape", "enter": "enter", "tab": "tab", "space": "space"}


class Part(NamedTuple):
    """One thing that the page tells the reader to do, or a picture of the result."""

    keys: tuple[str, ...] = ()
    """Keys by Textual's names."""
    edit: tuple[str, str] | None = None
    """A line of the sample agent, and the line that replaces it."""
    picture: str | None = None
    """File name of a picture."""


def steps() -> dict[str, list[Part]]:
    """Return what each step of the page consists of, by the step's title and in the page's order."""
    return {title: list(map(_part, _PART.finditer(body))) for title, body in _SECTION.findall(PAGE.read_text("utf-8"))}


async def play(player: Player) -> AsyncIterator[str]:
    """Do what the page says, as far as it happens on the screen.

    Yields the name of a picture whenever the screen shows what the picture should show.

    Raises:
        TimeoutError: A key changes nothing, or a step does not show what it should.
    """
    for title, parts in steps().items():
        if title not in EXPECTED:
            return
        pictured = any(part.picture for part in parts)
        for number, part in enumerate(parts):
            for key in part.keys:
                await _press(player, key)
            if part.edit:
                await player.until(lambda text: "watch off" not in text)
                player.replace("order_desk/agent.py", *part.edit)
            if part.keys or part.edit:
                await player.settle()
            if part.picture:
                await _show(player, title)
                yield part.picture
            elif number == 0 and not pictured:
                await _show(player, title)


async def _press(player: Player, key: str) -> None:
    """Press a key that does something, and wait until the screen rests: a list that is still being read has no row."""
    before = player.text
    await player.press(key)
    await player.until(lambda text: text != before and _NOTHING not in text, 20.0)
    await player.settle()


async def _show(player: Player, title: str) -> None:
    """Wait until the screen shows what it should after a step."""
    await player.until(lambda text: EXPECTED[title] in text)
    await player.settle()


async def make() -> list[Path]:
    """Take the pictures of the tour."""
    files = []
    async with opened(_SIZE) as player:
        async for name in play(player):
            file = PAGE.parent / "pictures" / name
            file.write_text(still(player.frame, "agent-workbench"), "utf-8")
            files.append(file)
    return files


def _part(found: re.Match[str]) -> Part:
    if found["keys"]:
        return Part(keys=tuple(key for code in re.findall(r"`([^`]+)`", found["keys"]) for key in _keys(code)))
    if found["old"]:
        return Part(edit=(found["old"], found["new"]))
    return Part(picture=found["picture"])


def _keys(code: str) -> tuple[str, ...]:
    return (_NAMES[code],) if code in _NAMES else tuple(code)
