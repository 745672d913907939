"""Lines for the terminal with as few changes of colour as they need: each costs some forty bytes on the way there."""

from collections.abc import Iterable
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """The same line in fewer segments: neighbours of one style become one, and blanks, of which only the background is
    seen, take the style of their neighbour."""
    found: list[Segment] = []
    for segment in segments:
        text, style, _ = segment
        if not text:
            continue
        if found and style is not None and (before := found[-1].style) is not None:
            if style == before or (text.isspace() and _alike(style, before)):
                found[-1] = Segment(found[-1].text + text, before)
                continue
            if found[-1].text.isspace() and _alike(style, before):
                found[-1] = Segment(found[-1].text + text, style)
                continue
        found.append(segment)
    return found


@lru_cache(maxsize=4096)
def _alike(one: Style, other: Style) -> bool:
    """Whether a blank looks the same in both styles."""
    marks = (one.underline, other.underline, one.strike, other.strike, one.reverse, other.reverse)
    return one.bgcolor == other.bgcolor and not any(marks)
