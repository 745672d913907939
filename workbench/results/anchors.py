"""Links between the parts of a turn in the evidence and their rows in the trace."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from workbench.files.invocation import content_text, recorded_events
from workbench.results.document import Document, Target
from workbench.results.lines import Line, has_style
from workbench.results.rows import View
from workbench.store.execution import Turn
from workbench.text.json_values import parts_of


class Anchor(NamedTuple):
    """A part of a turn: its `key` in the evidence, and the `places` by which other panes know it."""

    key: str
    places: tuple[str, ...]

    def view(self, view: View) -> View:
        """Return the view for this part, which is full if the part is unfolded."""
        return replace(view, full=True) if view.is_open(self.key) else view


class Piece(NamedTuple):
    """Lines of a turn. Only a piece with an anchor can be selected."""

    lines: list[Line]
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True)
class Anchors:
    """The anchors of one turn: user message, tool calls in order, texts of agents before the answer, and answer.

    They are missing if the turn has no recorded trace.
    """

    user: Anchor | None = None
    calls: tuple[Anchor, ...] = ()
    texts: tuple[Anchor, ...] = ()
    answer: Anchor | None = None

    def call(self, made: int | None) -> Anchor | None:
        """Return the anchor of the tool call with this index among those made."""
        return self.calls[made] if made is not None and made < len(self.calls) else None

    def text(self, number: int) -> Anchor | None:
        """Return the anchor of the text with this index among those before the answer."""
        return self.texts[number] if number < len(self.texts) else None


def has_anchors(turn: Turn) -> bool:
    """Return whether the turn has a recorded trace to which its parts lead."""
    return turn.spans is not None and turn.actual is not None


def anchors(index: int, turn: Turn | None) -> Anchors:
    """Return the anchors of turn `index`."""
    if turn is None or turn.actual is None or not has_anchors(turn):
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


def pieces_of(lines: Iterable[Line], anchor: Anchor | None = None) -> Piece:
    """Return lines as a piece."""
    return Piece(list(lines), anchor)


def add_pieces(document: Document, pieces: Iterable[Piece]) -> None:
    """Add the parts of a turn. Those with an anchor become items that lead to the trace."""
    for lines, anchor in pieces:
        if anchor is None or not lines:
            document.add(lines)
            continue
        folded = any(has_style(line, "fold") for line in lines)
        document.add_item(anchor.key, lines, opens=folded, targets=(Target("Trace", anchor.places),))
        for place in anchor.places:
            document.places.setdefault(place, document.places[anchor.key])
