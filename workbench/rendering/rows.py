"""The frame of all parts of a turn: a gutter for marks and labels, and beside it one or two columns."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from workbench.rendering.lines import MIN_WIDTH, Line, Segment, beside, column_width, hang, hang_text

GUTTER = 15
SIDE_BY_SIDE = 100
"""The minimum width for expected and actual text side by side."""
GLYPHS: Final[dict[str, str]] = {"same": "=", "differs": "≠", "missing": "−", "extra": "+", "moved": "↕"}

# Hebrew, Arabic and similar scripts: some terminals reorder a line that has them, across any columns.
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


@dataclass(frozen=True, slots=True)
class View:
    """Settings for the layout of a document.

    `width` is in cells. `full` shows all of long texts, arguments and tracebacks. `stacked` never puts two texts side
    by side. `opened` are the keys of the items shown in full. `aside`: details of items are shown beside the document.
    `within`: only the item with this key, its parents and its children are `full` ("": all items).
    """

    width: int
    full: bool = False
    stacked: bool = False
    opened: frozenset[str] = frozenset()
    aside: bool = False
    within: str = ""

    def is_open(self, key: str) -> bool:
        """Return whether the item is shown in full."""
        if key in self.opened:
            return True
        inside, around = f"{key}/".startswith(f"{self.within}/"), self.within.startswith(f"{key}/")
        return self.full and (not self.within or inside or around)

    @property
    def room(self) -> int:
        """The width beside the gutter, in cells."""
        return max(self.width, MIN_WIDTH) - GUTTER

    def side_by_side(self, *texts: str) -> bool:
        """Return whether two texts can be side by side: there is room, and no terminal would swap them."""
        return self.width >= SIDE_BY_SIDE and not self.stacked and not any(map(_RIGHT_TO_LEFT.search, texts))

    @property
    def column(self) -> int:
        """The width of one of two columns beside the gutter."""
        return column_width(self.room)


def label(name: str) -> Line:
    """Return the name of a part, for the gutter: ` calls`."""
    return (Segment(f" {name}", "label"),)


def mark_lead(mark: str, word: str | None = None, number: int | None = None) -> Line:
    """Return ` 2 ≠ differs`, for the gutter. `word` replaces the mark's own name."""
    place = f"{number:>2} " if number is not None else "   "
    return (Segment(place, "muted"), Segment(f"{GLYPHS[mark]} {word or mark}", f"diff-{mark}"))


def side_lead(word: str) -> Line:
    """Return the lead of a row's second side: `     actual`."""
    return (Segment(f"     {word}", "label"),)


def part(name: str, body: Iterable[Segment], view: View) -> Iterator[Line]:
    """Return a labelled part: its text wrapped beside the gutter."""
    return hang_text(label(name), body, max(view.width, MIN_WIDTH), GUTTER)


def remark(words: str, view: View, style: str = "muted") -> Iterator[Line]:
    """Return a sentence of the workbench over the whole width."""
    return hang_text([Segment(" ")], [Segment(words, style)], max(view.width, MIN_WIDTH), 1)


def under(lead: Line, body: Iterable[Line]) -> Iterator[Line]:
    """Return lines beside the gutter, with `lead` in it."""
    return hang(lead, body, GUTTER)


def pair(
    mark: str, number: int | None, expected: list[Line], actual: list[Line], aside: bool, view: View
) -> Iterator[Line]:
    """Yield expected and actual of one row, in two columns if `aside`, else in sequence."""
    if aside:
        yield from under(mark_lead(mark, number=number), beside(expected, actual, view.column))
        return
    yield from under(mark_lead(mark, "expected", number), expected)
    yield from under(side_lead("actual"), actual)
