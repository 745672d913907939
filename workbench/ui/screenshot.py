"""The screen as a picture that needs nothing else: an SVG without fonts from elsewhere."""

import re
from pathlib import Path

_FONTS = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)
_FAMILY = re.compile(r"font-family:\s*Fira Code,\s*monospace")
_OWN = "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def picture(svg: str) -> bytes:
    """Textual's SVG without what would be loaded from the network, and smaller; UTF-8. Secrets need no second look:
    none reaches the screen."""
    svg = _COMMENT.sub("", _FONTS.sub("", svg))
    svg = _FAMILY.sub(_OWN, svg)
    svg = "\n".join(line.rstrip() for line in svg.splitlines() if line.strip())
    return (svg + "\n").encode("utf-8", "replace")


def proposed(folder: Path) -> str:
    """A name that is free in the folder."""
    names = ["agent-workbench.svg", *(f"agent-workbench-{number}.svg" for number in range(2, 1000))]
    return next((name for name in names if not (folder / name).exists()), names[0])
