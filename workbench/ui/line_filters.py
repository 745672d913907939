"""Filters of drawn lines, for terminals without colours or without our signs."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from workbench.ascii_signs import in_cells
from workbench.ui.display import Display

_FAILING = {1, 5}
"""Colours of failures (red) and errors (magenta) in the theme of sixteen colours."""
_CURSOR, _QUIET_CURSOR = 4, 8
"""Backgrounds of the cursor in that theme, with and without the focus: blue and bright black."""
_LONGEST_LABEL = 16


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

    The cursor is reversed. Short texts about failures are reversed too, longer ones are bold. Everything else has signs
    and words.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without colours."""
        return [
            Segment(part, style and _without_colors(style, _is_label(part)), control)
            for text, style, control in segments
            for part in (_without_margins(text) if style and _fails(style) else (text,))
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


def _without_margins(text: str) -> Iterator[str]:
    """Yield a text and the blanks around it one by one, so that only the text is reversed."""
    words = text.strip(" ")
    before, _, after = text.partition(words) if words else (text, "", "")
    yield from filter(None, (before, words, after))


def _is_label(text: str) -> bool:
    return bool(text.strip()) and cell_len(text) <= _LONGEST_LABEL


def _fails(style: Style) -> bool:
    return style.color is not None and style.color.number in _FAILING


@lru_cache(maxsize=2048)
def _without_colors(style: Style, is_label: bool) -> Style:
    behind = style.bgcolor.number if style.bgcolor else None
    fails = _fails(style)
    return Style(
        bold=bool(style.bold) or fails,
        dim=style.dim,
        italic=style.italic,
        underline=bool(style.underline) or behind == _QUIET_CURSOR or (fails and behind == _CURSOR),
        strike=style.strike,
        reverse=bool(style.reverse) or behind == _CURSOR or (fails and is_label),
        link=style.link,
        meta=style.meta or None,
    )
