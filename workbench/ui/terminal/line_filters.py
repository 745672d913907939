"""Filters of drawn lines, for terminals without colours or without our signs."""

import re
from collections.abc import Callable
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from workbench.text.ascii_signs import in_cells
from workbench.ui.terminal.display import Display

_FAILING = {1, 13}
"""Colours of failures (red) and errors (bright magenta) in the theme of sixteen colours."""
_QUIET_CURSOR = 8
"""Background of a cursor without the focus in that theme, bright black. All others point at something."""
_LONGEST_LABEL = 16
_NAMES_FAILURE = re.compile(r"[✗!]|fail|error", re.IGNORECASE)
_BLANKS = re.compile(r"(^ +| +$| {2,})")
"""Blanks that are no part of a label."""


def filters_for(display: Display) -> list[LineFilter]:
    """Return the filters that this terminal needs."""
    filters: list[LineFilter] = []
    if display.colors == "none":
        filters.append(WithoutColors())
    if not display.signs:
        filters.append(InAscii(foreign=not display.foreign))
    return filters


class WithoutColors(LineFilter):
    """Attributes in place of the colours of the theme `terminal`.

    The cursor is reversed. Labels of failures are reversed too, longer texts about them are bold. Everything else has
    signs and words.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without colours."""
        return [
            Segment(part, style and _without_colors(style, _is_label(part)), control)
            for text, style, control in segments
            for part in (_BLANKS.split(text) if style and _fails(style) else (text,))
            if part or not text
        ]


class InAscii(LineFilter):
    """ASCII characters in place of our signs. With `foreign`, `?` in place of all others."""

    def __init__(self, *, foreign: bool) -> None:
        super().__init__()
        self._spelled: Callable[[str], str] = lru_cache(maxsize=4096)(lambda text: in_cells(text, foreign=foreign))

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments in ASCII."""
        return [
            segment if segment.text.isascii() else Segment(self._spelled(segment.text), segment.style, segment.control)
            for segment in segments
        ]


def _is_label(text: str) -> bool:
    return cell_len(text) <= _LONGEST_LABEL and _NAMES_FAILURE.search(text) is not None


def _fails(style: Style) -> bool:
    return style.color is not None and style.color.number in _FAILING


@lru_cache(maxsize=2048)
def _without_colors(style: Style, is_label: bool) -> Style:
    behind = style.bgcolor.number if style.bgcolor else None
    fails, is_pointed = _fails(style), behind not in (None, _QUIET_CURSOR)
    return Style(
        bold=bool(style.bold) or fails,
        dim=style.dim,
        italic=style.italic,
        underline=bool(style.underline) or behind == _QUIET_CURSOR or (fails and is_pointed),
        strike=style.strike,
        # A cell that is reversed in the row of the cursor stands out by its usual look.
        reverse=bool(style.reverse) is not (is_pointed or (fails and is_label)),
        link=style.link,
        meta=style.meta or None,
    )
