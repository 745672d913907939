"""The frame of all parts of a turn: a gutter for marks and labels, and beside it one or two columns."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from workbench.results.lines import MIN_WIDTH, Line, hang, hang_text

GUTTER = 15
SIDE_BY_SIDE = 100
"""The minimum width for expected and actual text side by side."""
GLYPHS: Final[dict[str, str]] = {"same": "=", "differs": "≠", "missing": "−", "extra": "+", "moved": "↕"}


@dataclass(frozen=True, slots=True)
class View:
    """Settings for the layout of a document.

    `width` is in cells. `full` shows all of long texts, arguments and tracebacks. `opened` are the keys of the items
    shown in full. `within`: only the item with this key, its parents and its children are `full` ("": all items).
    `sides` names the two sides of a difference. `signs` puts marked words into −{} and +{}, for text without colours. A
    `narrow` screen has no room for the words "expected" and "actual".
    """

    width: int
    full: bool = False
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
