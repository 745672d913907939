"""A screen of the workbench as lines of coloured text, read from the SVG that Textual draws."""

import re
from dataclasses import dataclass
from html import unescape
from typing import NamedTuple

from workbench.results.cells import cell_len

CELL, LINE = 12.2, 24.4
"""Width and height of a cell in Textual's SVG, in its units."""
_STYLE = re.compile(r"-(r\d+) \{([^}]*)\}")
_SIZE = re.compile(r'clip-terminal">\s*<rect x="0" y="0" width="([\d.]+)" height="([\d.]+)"')
_RECT = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" shape-rendering')
_TEXT = re.compile(r'<text class="[\w-]*-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')


class Piece(NamedTuple):
    """Text of one style. Columns and cells are counted from 0. A piece without text fills its cells with a colour."""

    column: int
    cells: int
    style: str
    """CSS of a text, or the colour of a filled piece."""
    text: str


Line = tuple[Piece, ...]


@dataclass(frozen=True)
class Frame:
    """The lines of a screen, with its size in cells."""

    columns: int
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The lines without colours."""
        return "\n".join(map(_plain, self.lines))


def read_frame(svg: str) -> Frame:
    """Read a screenshot of Textual.

    Raises:
        ValueError: The SVG is not one, or not of the kind that Textual 8 draws.
    """
    styles = {name: re.sub(r"\s*([:;])\s*", r"\1", css).strip(" ;") for name, css in _STYLE.findall(svg)}
    size = _SIZE.search(svg)
    if size is None:
        raise ValueError("no screenshot of Textual, or it draws them in a new way")
    columns = round(float(size[1]) / CELL)
    rows = round(float(size[2]) / LINE)
    fills: list[list[Piece]] = [[] for _ in range(rows)]
    texts: list[list[Piece]] = [[] for _ in range(rows)]
    for color, x, y, width in _RECT.findall(svg):
        row = round((float(y) - 1.5) / LINE)
        fills[row].append(Piece(round(float(x) / CELL), round(float(width) / CELL), color, ""))
    for name, x, y, text in _TEXT.findall(svg):
        row, words = round((float(y) - 20) / LINE), unescape(text).replace("\xa0", " ").rstrip("\n ")
        left = len(words) - len(words.lstrip(" "))
        if words.strip():
            start = round(float(x) / CELL) + left
            texts[row].append(Piece(start, cell_len(words[left:]), styles[name], words[left:]))
    return Frame(columns, tuple((*fill, *text) for fill, text in zip(fills, texts, strict=True)))


def _plain(line: Line) -> str:
    shown = ""
    for piece in line:
        if piece.text:
            shown += " " * (piece.column - cell_len(shown)) + piece.text
    return shown
