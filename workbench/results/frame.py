"""The frame of the evidence: a gutter with labels and marks, narrower on a small screen."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from workbench.results.anchors import Anchor
from workbench.results.lines import Line, hang, pad, shortened
from workbench.results.rows import GLYPHS, View
from workbench.results.texts import text_lines

WIDE = 70
"""The minimum width for the wide layout, with blank lines and a wide gutter."""
_NAMED = 40
"""The minimum width in which both sides of a difference have their names."""


def is_wide(view: View) -> bool:
    """Return whether the layout is the wide one."""
    return view.width >= WIDE


def indent(view: View) -> str:
    """Return the blanks at the start of each line."""
    return "  " if is_wide(view) else " "


def gutter(view: View) -> int:
    """Return the width of the gutter, in cells."""
    return 12 if is_wide(view) else 9


def room(view: View) -> int:
    """Return the width beside the gutter, in cells."""
    return max(view.width - gutter(view) - 1, 10)


def side_room(view: View, width: int | None = None) -> int:
    """Return the width of the text of `side` in `width` cells (default: those beside the gutter)."""
    return (room(view) if width is None else width) - (12 if _names_sides(view) else 2)


def _names_sides(view: View) -> bool:
    # What is missing or extra can be guessed only of a reference.
    return view.width >= _NAMED and (not view.narrow or view.compares_executions)


def seen(anchor: Anchor | None, view: View) -> View:
    """Return the view of a part, which is full if the part is unfolded."""
    return view if anchor is None else anchor.view(view)


def numbered(word: str, number: int) -> str:
    """Return `call 2`, the label of a part, or without the blank from 10 on."""
    return f"{word} {number}" if number < 10 else f"{word}{number}"


def labelled(name: str, mark: Text | str, body: Iterable[Line], view: View) -> Iterator[Line]:
    """Return lines beside ` call 2 ≠`. `mark` is a sign, or the name of a relation such as "differs"."""
    if isinstance(mark, str):
        mark = Text.styled(GLYPHS.get(mark, " "), f"diff-{mark}" if mark else "")
    lead: Line = Text.assemble((f"{indent(view)}{name:<6}{' ' if is_wide(view) else ''}", "label"), mark)
    return hang(pad(lead, gutter(view)), body, gutter(view))


def side(mark: str, body: Iterable[Line], view: View) -> Iterator[Line]:
    """Return `− expected  …`, the "missing" or "extra" side of a difference. A narrow screen leaves these words out."""
    sign, word = ("−", view.sides[0]) if mark == "missing" else ("+", view.sides[1])
    lead: Line = Text.styled(f"{sign} ", f"diff-{mark}")
    if _names_sides(view):
        lead = Text.assemble(lead, (f"{word:<10}", "label"))
    return hang(lead, body, lead.cell_len)


def brief(text: str, view: View, most: int, style: str = "") -> list[Line]:
    """Return a text beside the gutter in at most `most` lines, or all of it in a full view."""
    lines = text_lines(text, room(view), view, style)
    return lines if view.full else shortened(lines, most, room(view))
