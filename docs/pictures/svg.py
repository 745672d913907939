"""Frames as SVG: one as a still picture, several as an animation that loops.

The animation is CSS, so it plays where a page shows it with an `<img>` tag and scripts do not run. Where it cannot
play, or the reader has asked for less motion, one frame stands still.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from docs.pictures.frame import CELL, LINE, Frame, Line
from workbench.results.cells import cell_len

_EDGE = 9.0
"""Space around the text, in units of the SVG. A cell is 12.2 wide."""
_BAR = 36.0
"""Height of the window's title bar."""
_CAPTION = 52.0
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_STROKES = {
    "─": "M{x} 12.2h12.2",
    "│": "M{x} 0m6.1 0v24.8",
    "╭": "M{x} 24.8m6.1 0v-6.5q0 -6.1 6.1 -6.1",
    "╮": "M{x} 12.2q6.1 0 6.1 6.1v6.5",
    "╰": "M{x} 0m6.1 0v6.1q0 6.1 6.1 6.1",
    "╯": "M{x} 12.2q6.1 0 6.1 -6.1v-6.1",
}
"""Paths of box-drawing signs within a cell of 12.2 by 24.4; `x` is its left edge."""
_BLOCKS = {"▌": (0.0, 0.5), "▐": (0.5, 0.5), "█": (0.0, 1.0)}
"""Left edge and width of block signs, in cells."""
_PARTS = re.compile(r"─+|[│╭╮╰╯▌▐█]|[^─│╭╮╰╯▌▐█]+")
_KEY, _WORDS = "fill:#12151c;font-weight:bold", "fill:#d6dbe6"


class Shot(NamedTuple):
    """A frame of an animation: how long it stays, the key that led to it, and what happens."""

    frame: Frame
    seconds: float
    key: str = ""
    caption: str = ""


def still(frame: Frame, title: str, prefix: str = "") -> str:
    """Draw one frame as a window with a title. All IDs and classes get the prefix."""
    return _document([Shot(frame, 1.0)], title, 0, caption=0.0, prefix=prefix)


def animation(shots: Sequence[Shot], title: str, resting: int) -> str:
    """Draw an animation. `resting` is the number of the shot that is shown where nothing moves."""
    return _document(shots, title, resting, caption=_CAPTION)


def _document(shots: Sequence[Shot], title: str, resting: int, *, caption: float, prefix: str = "") -> str:
    columns, rows = shots[0].frame.columns, len(shots[0].frame.lines)
    width, height = columns * CELL + 2 * _EDGE, rows * LINE + _BAR + _EDGE
    paper = _paper(shots[0].frame)
    classes, lines = _Classes(prefix), _Lines(prefix)
    body = []
    for number, shot in enumerate(shots):
        uses = "".join(
            f'<use href="#{lines.name(line)}" y="{_number(row * LINE)}"/>'
            for row, line in enumerate(shot.frame.lines)
            if line
        )
        text = _caption(shot, rows * LINE + _EDGE, classes) if caption else ""
        name = f' id="f{number}" class="f"' if len(shots) > 1 else ""
        body.append(f"<g{name}>{uses}{text}</g>")
    drawn = [f'<g id="{name}">{_line(line, paper, classes)}</g>' for line, name in lines.names.items()]
    box = f"{width:.0f}", f"{height + caption:.0f}"
    size = f'width="{box[0]}" height="{box[1]}" viewBox="0 0 {box[0]} {box[1]}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{escape(title)}</title>",
            f"<style>text{{font-family:{_FONT};font-size:20px;white-space:pre}}",
            *classes.rules,
            *(_timing(shots, resting) if len(shots) > 1 else []),
            "</style>",
            "<defs>",
            *drawn,
            "</defs>",
            _window(width, height, caption, paper, title),
            f'<g transform="translate({_number(_EDGE)},{_number(_BAR)})">',
            *body,
            "</g></svg>\n",
        ]
    )


def _window(width: float, height: float, caption: float, paper: str, title: str) -> str:
    """Draw a window with its title, and a line above the caption if there is one."""
    dots = "".join(
        f'<circle cx="{22 + 22 * number}" cy="19" r="7" fill="{color}"/>'
        for number, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    head = f'<text x="{_number(width / 2)}" y="25" text-anchor="middle" fill="#919bad">{escape(title)}</text>'
    border = (
        f'<rect x=".5" y=".5" width="{_number(width - 1)}" height="{_number(height + caption - 1)}" rx="9" '
        f'fill="{paper}" stroke="#4b5263"/>'
    )
    if caption:
        border += f'<path d="M1 {_number(height)}H{_number(width - 1)}" stroke="#4b5263"/>'
    return border + dots + head


def _timing(shots: Sequence[Shot], resting: int) -> Iterable[str]:
    """Return the CSS that shows one shot after the other."""
    total = sum(shot.seconds for shot in shots)
    yield f".f{{visibility:hidden;animation:{_number(total)}s step-end infinite}}#f{resting}{{visibility:visible}}"
    begin = 0.0
    for number, shot in enumerate(shots):
        start, end = 100 * begin / total, 100 * (begin + shot.seconds) / total
        before = "0%{visibility:hidden}" if number else ""
        after = f"{end:.3f}%{{visibility:hidden}}" if number < len(shots) - 1 else ""
        yield f"@keyframes k{number}{{{before}{start:.3f}%{{visibility:visible}}{after}}}"
        yield f"#f{number}{{animation-name:k{number}}}"
        begin += shot.seconds
    yield "@media (prefers-reduced-motion:reduce){.f{animation:none!important}}"


def _line(line: Line, paper: str, classes: "_Classes") -> str:
    drawn = []
    for piece in line:
        if not piece.text:
            if piece.style != paper:
                x, width = _number(piece.column * CELL), _number(piece.cells * CELL)
                drawn.append(f'<rect x="{x}" width="{width}" height="{LINE + 0.4}" fill="{piece.style}"/>')
            continue
        column = piece.column
        for part in _PARTS.findall(piece.text):
            cells = cell_len(part)
            if part in _BLOCKS or part[0] in _STROKES:
                drawn.append(_drawn(part, column, _color(piece.style)))
            elif part.strip():
                place, size = _number(column * CELL), _number(cells * CELL)
                drawn.append(_text(part, place, "18.5", size, classes.name(piece.style)))
            column += cells
    return "".join(drawn)


def _drawn(part: str, column: int, color: str) -> str:
    """Draw lines and blocks as shapes, so that they meet whatever the font."""
    x = column * CELL
    if part in _BLOCKS:
        left, width = _BLOCKS[part]
        place, size = _number(x + left * CELL), _number(width * CELL)
        return f'<rect x="{place}" width="{size}" height="{LINE + 0.4}" fill="{color}"/>'
    path = "".join(_STROKES[sign].format(x=_number(x + number * CELL)) for number, sign in enumerate(part))
    if len(part) > 1:
        path = f"M{_number(x)} 12.2h{_number(len(part) * CELL)}"
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>'


def _color(css: str) -> str:
    found = re.search(r"fill:(#\w+)", css)
    return found[1] if found else "#d6dbe6"


def _caption(shot: Shot, y: float, classes: "_Classes") -> str:
    x, drawn = 4.0, ""
    if shot.key:
        width = len(shot.key) * CELL
        drawn = f'<rect x="{x}" y="{_number(y + 12)}" width="{_number(width + 20)}" height="32" rx="6" fill="#e5c76b"/>'
        drawn += _text(shot.key, _number(x + 10), _number(y + 35), _number(width), classes.name(_KEY))
        x += width + 36
    if shot.caption:
        width = len(shot.caption) * CELL
        drawn += _text(shot.caption, _number(x), _number(y + 35), _number(width), classes.name(_WORDS))
    return drawn


def _text(text: str, x: str, y: str, width: str, name: str) -> str:
    words = escape(text, quote=False).replace(" ", "\xa0")
    return f'<text class="{name}" x="{x}" y="{y}" textLength="{width}" lengthAdjust="spacingAndGlyphs">{words}</text>'


def _paper(frame: Frame) -> str:
    """Return the colour that fills most of a frame."""
    filled: Counter[str] = Counter()
    for line in frame.lines:
        for piece in line:
            if not piece.text:
                filled[piece.style] += piece.cells
    return filled.most_common(1)[0][0]


def _number(value: float) -> str:
    return f"{value:.6g}"


class _Classes:
    """Names for the styles of texts."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}

    def name(self, css: str) -> str:
        return self._names.setdefault(css, f"{self._prefix}s{len(self._names)}")

    @property
    def rules(self) -> list[str]:
        return [f".{name}{{{css}}}" for css, name in self._names.items()]


class _Lines:
    """Names for lines: one that several frames show is drawn once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.names: dict[Line, str] = {}

    def name(self, line: Line) -> str:
        return self.names.setdefault(line, f"{self._prefix}l{len(self.names)}")
