"""The layout of the evidence: a gutter with labels and marks, and links from its parts to the trace."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.text import Text

from workbench.files.invocation import content_text, recorded_events
from workbench.results.document import Document, Target
from workbench.results.lines import GLYPHS, Line, View, hang, has_style, pad, shortened
from workbench.results.texts import text_lines
from workbench.store.execution import Turn
from workbench.text.json_values import parts_of

WIDE = 70
"""The minimum width for the wide layout, with blank lines and a wide gutter."""


class Anchor(NamedTuple):
    """A selectable part of a turn. `key` identifies it in the evidence, `places` in other panes."""

    key: str
    places: tuple[str, ...]


class Piece(NamedTuple):
    """Lines of a turn. Only a piece with an anchor can be selected."""

    lines: list[Line]
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True)
class Anchors:
    """The anchors of a turn's user message, tool calls, texts and answer: none without a recorded trace."""

    user: Anchor | None = None
    calls: tuple[Anchor, ...] = ()
    texts: tuple[Anchor, ...] = ()
    answer: Anchor | None = None

    def call(self, made: int | None) -> Anchor | None:
        """Return the anchor of the tool call with this index, or None."""
        return self.calls[made] if made is not None and made < len(self.calls) else None


def anchors(index: int, turn: Turn | None) -> Anchors:
    """Return the anchors of turn `index`."""
    if turn is None or turn.actual is None or turn.spans is None:
        return Anchors()
    events = recorded_events(turn.actual) or ()
    calls: list[Anchor] = []
    texts: list[Anchor] = []
    for number, event in enumerate(events):
        here = f"event/{index}/{number}"
        for part in parts_of(event.get("content")):
            call = part.get("function_call")
            if call is not None:
                places = (f"call/{index}/{call['id']}", here) if call.get("id") else (here,)
                calls.append(Anchor(f"evidence/{index}/call/{len(calls)}", places))
        if content_text(event.get("content")):
            texts.append(Anchor(f"evidence/{index}/text/{len(texts)}", (here,)))
    answer = Anchor(f"evidence/{index}/answer", (f"event/{index}/{len(events) - 1}", f"user/{index}"))
    return Anchors(Anchor(f"evidence/{index}/user", (f"user/{index}",)), tuple(calls), tuple(texts), answer)


def add_pieces(document: Document, pieces: Iterable[Piece]) -> None:
    """Add the parts of a turn. Parts with an anchor become items that link to the trace."""
    for lines, anchor in pieces:
        if anchor is None or not lines:
            document.add(lines)
            continue
        folded = any(has_style(line, "fold") for line in lines)
        document.add_item(anchor.key, lines, opens=folded, targets=(Target("Trace", anchor.places),))
        for place in anchor.places:
            document.places.setdefault(place, document.places[anchor.key])


def indent(view: View) -> str:
    """Return the blanks at the start of each line."""
    return "  " if view.width >= WIDE else " "


def gutter(view: View) -> int:
    """Return the width of the gutter, in cells."""
    return 12 if view.width >= WIDE else 9


def room(view: View) -> int:
    """Return the width beside the gutter, in cells."""
    return max(view.width - gutter(view) - 1, 10)


def side_room(view: View, width: int | None = None) -> int:
    """Return the width left for text in `side`, if `width` cells (default: those beside the gutter) are available."""
    return (room(view) if width is None else width) - (12 if _names_sides(view) else 2)


def _names_sides(view: View) -> bool:
    # Without names, readers take the other side for the reference. Two executions always need names.
    return view.width >= 40 and (not view.narrow or view.compares_executions)


def seen(anchor: Anchor | None, view: View) -> View:
    """Return the view for a part: a full view if the part is unfolded."""
    return view if anchor is None or not view.is_open(anchor.key) else replace(view, full=True)


def numbered(word: str, number: int) -> str:
    """Return the label of a part: `call 2`. From 10 on it has no blank: `call10`."""
    return f"{word} {number}" if number < 10 else f"{word}{number}"


def labelled(name: str, mark: Text | str, body: Iterable[Line], view: View) -> Iterator[Line]:
    """Return lines with a label and a mark (text, or a name such as "differs") in the gutter: ` call 2 ≠`."""
    if isinstance(mark, str):
        mark = Text.styled(GLYPHS.get(mark, " "), f"diff-{mark}" if mark else "")
    lead: Line = Text.assemble((f"{indent(view)}{name:<6}{' ' if view.width >= WIDE else ''}", "label"), mark)
    return hang(pad(lead, gutter(view)), body, gutter(view))


def side(mark: str, body: Iterable[Line], view: View) -> Iterator[Line]:
    """Return one side of a difference: `− expected  …` for "missing", `+ actual  …` for "extra"."""
    sign, word = ("−", view.sides[0]) if mark == "missing" else ("+", view.sides[1])
    lead: Line = Text.styled(f"{sign} ", f"diff-{mark}")
    if _names_sides(view):
        lead = Text.assemble(lead, (f"{word:<10}", "label"))
    return hang(lead, body, lead.cell_len)


def brief(text: str, view: View, most: int, style: str = "") -> list[Line]:
    """Return a text wrapped to the width beside the gutter, in at most `most` lines unless the view is full."""
    lines = text_lines(text, room(view), view, style)
    return lines if view.full else shortened(lines, most, room(view))
