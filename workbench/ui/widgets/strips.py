"""Terminal lines with few changes of colour, because each costs about forty bytes."""

from collections.abc import Iterable
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """Return the same line in fewer segments.

    Neighbours of one style become one segment. Blanks take the style of a neighbour with the same background.
    """
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
    """Return whether a blank looks the same in both styles."""
    marks = (one.underline, other.underline, one.strike, other.strike, one.reverse, other.reverse)
    return one.bgcolor == other.bgcolor and not any(marks)
