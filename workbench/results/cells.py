"""Functions that cut and pad text by terminal cells, in which wide East Asian characters count twice."""

import re
from bisect import bisect
from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "cut", "cut_name", "cut_sibling", "fit"]

_NARROWEST_NAME = 7
"""The minimum width, in cells, at which the middle of a name is cut. Below it, the end is cut."""
_SEPARATOR = re.compile(r"[\W_]")
_LONGEST_WORD = 12
_TELLING = 3
"""Number of cells, from the first difference on, that are enough to distinguish two names."""


def cut(text: str, width: int) -> str:
    """Return `text` (already safe) in at most `width` cells, with an ellipsis at the end if it is cut."""
    if width <= 0:
        return ""
    if len(text) * 2 <= width or cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip(" ") + "…"


def cut_name(name: str, width: int, others: Iterable[str] = ()) -> str:
    """Return a name (already safe) in at most `width` cells: `late_parcel…paid_twice`.

    The middle is cut, because names often begin alike. If one of `others` would then look the same, a part that they
    have in common is cut instead, and if necessary the end: `late…moved_h…`.
    """
    if len(name) * 2 <= width or cell_len(name) <= width:
        return name
    if width < _NARROWEST_NAME:
        return cut(name, width)
    tail = _last(name, width - 1 - width // 2)
    head = _first(name, width - 1 - cell_len(tail))
    others = list(others)
    # The part of a word that is left at the cut tells nothing.
    gap = _SEPARATOR.search(tail)
    start, end = head[: _word_start(head, len(head))], tail[gap.start() :] if gap else tail
    alike = [other for other in others if other.startswith(start) and other.endswith(end) and other != name]
    if not alike:
        return f"{head}…{tail}"
    # In alphabetical order, the name next to this one shares most with it.
    alike.sort()
    place = bisect(alike, name)
    last = max(_shared(name, other) for other in alike[max(place - 1, 0) : place + 1])
    room = width - 1 - width // 4
    # With less of the beginning, more names look the same. The part that differs from most of them is shown.
    head = _first(name, width // 4)
    places = {_shared(name, other) for other in others if other.startswith(head) and other != name}
    starts = sorted(_word_start(name, place) for place in places if place <= last)
    place = next((one for one in starts if cell_len(name[one:last]) + _TELLING < room), _word_start(name, last))
    different = cut(name[place:], room)
    return f"{_first(name[:place], width - 1 - cell_len(different))}…{different}"


def cut_sibling(name: str, width: int, siblings: Iterable[str]) -> str:
    """Return a name (already safe) in at most `width` cells: `…two_items`.

    The beginning that the name shares with siblings is cut first, then its end. The middle is cut only if a sibling
    would otherwise look the same.
    """
    if len(name) * 2 <= width or cell_len(name) <= width or width < _NARROWEST_NAME:
        return cut(name, width)
    different = [other for other in siblings if other != name]
    others = [other for other in different if cell_len(other) > width]
    starts = sorted({_difference(name, other) for other in different} - {0})
    for start in starts:
        rest = name[start:]
        if cell_len(rest) < width and not any(other.endswith(rest) for other in others):
            return f"…{rest}"
    for start in reversed(starts):
        # Begin at the last word that differs from some sibling, else at an earlier one.
        head = cut(name[start:], width - 1)
        if not any(head.removesuffix("…") in other for other in others):
            return f"…{head}"
    head = cut(name, width)
    alike = any(other.startswith(head.removesuffix("…")) for other in others)
    return cut_name(name, width, others) if alike else head


def fit(text: str, width: int) -> str:
    """Return `text` (already safe) in exactly `width` cells, cut as by `cut` or padded on the right."""
    short = cut(text, width)
    return short + " " * (max(width, 0) - cell_len(short))


def _shared(name: str, other: str) -> int:
    """Return the length of the common prefix of two names, in characters."""
    pairs = enumerate(zip(name, other, strict=False))
    return next((place for place, (one, two) in pairs if one != two), min(len(name), len(other)))


def _first(text: str, cells: int) -> str:
    if text.isascii() or cell_len(text) <= cells:
        return text[:cells] if text.isascii() else text
    return set_cell_size(text, cells).rstrip(" ")


def _last(text: str, cells: int) -> str:
    """Return the end of `text` in at most `cells` cells, never starting with a zero-width character."""
    if text.isascii():
        return text[-cells:]
    start, taken = len(text), 0
    for place in range(len(text) - 1, -1, -1):
        size = cell_len(text[place])
        if taken + size > cells:
            break
        taken += size
        start = place if size else start
    return text[start:]


def _difference(name: str, other: str) -> int:
    """Return where the first word starts in which two names differ, or 0 if the name cannot be cut there."""
    place = _shared(name, other)
    start = _word_start(name, place)
    if place == len(name):
        return start if start < place else 0
    if _SEPARATOR.match(name[place]):
        return place + 1 if place + 1 < len(name) else 0
    begins = start > 0 and bool(_SEPARATOR.match(name[start - 1]))
    return start if begins or start > _LONGEST_WORD or cell_len(name[start]) > 1 else 0


def _word_start(name: str, place: int) -> int:
    """Return the start of the word at `place`, or `place` itself in the first word or far inside a long one."""
    start = next((at + 1 for at in range(place - 1, -1, -1) if _SEPARATOR.match(name[at])), 0)
    return start if start > 0 and place - start <= _LONGEST_WORD else place
