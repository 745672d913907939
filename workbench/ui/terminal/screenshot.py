"""Screenshots as SVG files without external fonts."""

import re
from html import unescape
from pathlib import Path

from workbench.results.cells import cell_len

_FONTS = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)
_FAMILY = re.compile(r"font-family:\s*Fira Code,\s*monospace")
_OWN = "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TEXT = re.compile(
    r'<text ([^>]*?)x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>((?:&#160;)*)(.*?)(?:&#160;)*</text>'
)
_BLANK = "&#160;"
_CELL = 12.2
"""Width of a cell in Textual's SVG."""


def picture(svg: str) -> bytes:
    """Return Textual's SVG without external resources, smaller, as UTF-8.

    Secrets need no masking here, because none reaches the screen.
    """
    svg = _COMMENT.sub("", _FONTS.sub("", svg))
    svg = _TEXT.sub(_without_margins, _FAMILY.sub(_OWN, svg))
    svg = "\n".join(line.rstrip() for line in svg.splitlines() if line.strip())
    return (svg + "\n").encode("utf-8", "replace")


def _without_margins(text: re.Match[str]) -> str:
    """Remove blanks at the ends of a text. Some programs draw them in another width."""
    before, x, y, after, left, words = text.groups()
    if not words:
        return ""
    # Textual's length counts characters, but East Asian ones are two cells wide.
    place, size = float(x) + left.count(_BLANK) * _CELL, cell_len(unescape(words)) * _CELL
    return f'<text {before}x="{place:.6g}" y="{y}" textLength="{size:.6g}"{after}>{words}</text>'


def proposed(folder: Path) -> str:
    """Return a file name that is not used in the folder."""
    names = ["agent-workbench.svg", *(f"agent-workbench-{number}.svg" for number in range(2, 1000))]
    return next((name for name in names if not (folder / name).exists()), names[0])
