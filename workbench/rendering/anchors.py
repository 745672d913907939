"""Parts of a turn in the diff that have a row in the trace: the cursor takes each as one, and goes there and back."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from workbench.json_values import parts_of
from workbench.model.invocation import content_text, recorded_events
from workbench.rendering.document import Document, Target
from workbench.rendering.lines import Line
from workbench.rendering.rows import View
from workbench.store import Turn


class Anchor(NamedTuple):
    """A part of a turn: its `key` in the diff, and the `places` by which other panes know it."""

    key: str
    places: tuple[str, ...]

    def seen(self, view: View) -> View:
        """How the part is to be seen: in full where it was unfolded."""
        return replace(view, full=True) if view.is_open(self.key) else view


class Piece(NamedTuple):
    """Lines of a turn; those without an anchor are only read."""

    lines: list[Line]
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True)
class Anchors:
    """Those of one turn: of the user's message, of the tool calls in order, of what agents said on the way, and of the
    answer. None where the turn was not watched."""

    user: Anchor | None = None
    calls: tuple[Anchor, ...] = ()
    texts: tuple[Anchor, ...] = ()
    answer: Anchor | None = None

    def call(self, made: int | None) -> Anchor | None:
        """That of the call that was made as this number."""
        return self.calls[made] if made is not None and made < len(self.calls) else None

    def text(self, number: int) -> Anchor | None:
        """That of what was said as this number."""
        return self.texts[number] if number < len(self.texts) else None


def anchors(index: int, turn: Turn | None) -> Anchors:
    """The anchors of turn `index`."""
    if turn is None or turn.spans is None or turn.actual is None:
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
                calls.append(Anchor(f"diff/{index}/call/{len(calls)}", places))
        if content_text(event.get("content")):
            texts.append(Anchor(f"diff/{index}/text/{len(texts)}", (here,)))
    answer = Anchor(f"diff/{index}/answer", (f"event/{index}/{len(events) - 1}", f"user/{index}"))
    return Anchors(Anchor(f"diff/{index}/user", (f"user/{index}",)), tuple(calls), tuple(texts), answer)


def pieces_of(lines: Iterable[Line], anchor: Anchor | None = None) -> Piece:
    """Lines as a piece."""
    return Piece(list(lines), anchor)


def add_pieces(document: Document, pieces: Iterable[Piece]) -> None:
    """Adds the parts of a turn; those with an anchor are items that lead to the trace."""
    for lines, anchor in pieces:
        if anchor is None or not lines:
            document.add(lines)
            continue
        folded = any(segment.style == "fold" for line in lines for segment in line)
        document.add_item(anchor.key, lines, opens=folded, targets=(Target("Trace", anchor.places),))
        for place in anchor.places:
            document.places.setdefault(place, document.places[anchor.key])
