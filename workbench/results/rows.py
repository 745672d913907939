"""The frame of all parts of a turn: a gutter for marks and labels, and beside it one or two columns."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from workbench.results.lines import MIN_WIDTH, Line, hang, hang_text

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
    by side. `opened` are the keys of the items shown in full. `within`: only
    the item with this key, its parents and its children are `full` ("": all items). `sides` names the two sides of a
    difference. `signs` puts marked words into −{} and +{}, for text without colours. A `narrow` screen has no room for
    the words "expected" and "actual".
    """

    width: int
    full: bool = False
    stacked: bool = False
    opened: frozenset[str] = frozenset()
    within: str = ""
    sides: tuple[str, str] = ("expected", "actual")
    signs: bool = False
    narrow: bool = False

    def is_open(self, key: str) -> bool:
        """Return whether the item is shown in full."""
        if key in self.opened:
            return True
        inside, around = f"{key}/".startswith(f"{self.within}/"), self.within.startswith(f"{key}/")
        return self.full and (not self.within or inside or around)

    @property
    def compares_executions(self) -> bool:
        """Whether the sides of a difference are two executions, not a reference and an execution."""
        return self.sides != ("expected", "actual")

    @property
    def room(self) -> int:
        """The width beside the gutter, in cells."""
        return max(self.width, MIN_WIDTH) - GUTTER

    def side_by_side(self, *texts: str) -> bool:
        """Return whether two texts can be side by side: there is room, and no terminal would swap them."""
        return self.width >= SIDE_BY_SIDE and not self.stacked and not any(map(_RIGHT_TO_LEFT.search, texts))


def label(name: str) -> Line:
    """Return the name of a part, for the gutter: ` calls`."""
    return Text.styled(f" {name}", "label")


def part(name: str, body: Text, view: View) -> Iterator[Line]:
    """Return a labelled part: its text wrapped beside the gutter."""
    return hang_text(label(name), body, max(view.width, MIN_WIDTH), GUTTER)


def remark(words: str, view: View, style: str = "muted") -> Iterator[Line]:
    """Return a sentence of the workbench over the whole width."""
    return hang_text(Text(" "), Text.styled(words, style), max(view.width, MIN_WIDTH), 1)


def under(lead: Line, body: Iterable[Line]) -> Iterator[Line]:
    """Return lines beside the gutter, with `lead` in it."""
    return hang(lead, body, GUTTER)
