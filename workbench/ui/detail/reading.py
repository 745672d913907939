"""The state of a reader without its widget: the open pane, unfolded items, and jumps."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias

from workbench.results.document import Document, Item, Target
from workbench.results.lines import View
from workbench.results.panes import Pane, Read
from workbench.ui.detail.drawing import Layout

Planned: TypeAlias = Callable[[bool], Layout]
"""A function that returns the layout. Its argument is whether to leave room for an aside."""
TRACE = "Trace"
"""Name of the pane with a row for each event."""
_COPY_WIDTH = 1000
_CACHED = 8
"""Maximum number of cached documents, so that going back to a long one is fast."""
_RULE = re.compile("─{4,}")


@dataclass(frozen=True, slots=True)
class Place:
    """A place to go back to.

    `pane` is the title of the chosen pane, or "". `item` is the key of the item under the cursor. `top` is the first
    visible line. `full`: long texts are unfolded.
    """

    pane: str
    item: str
    top: int
    full: bool


Arrival: TypeAlias = tuple[Document, range, str]
"""The target of a jump: a document, the lines in it, and the key of their item, or ""."""


class Reading(Generic[Read]):
    """The state of a reader, which builds the documents to show. `panes_of` returns the panes of a subject."""

    def __init__(self, subject: Read, panes_of: Callable[[Read], tuple[Pane[Read], ...]]) -> None:
        self.subject, self._panes_of = subject, panes_of
        self.panes = panes_of(subject)
        self.full = False
        """Whether long texts are unfolded, in panes without items."""
        self._wanted = ""
        """The title of the pane chosen last, or "". It stays chosen while cases without it show their first pane."""
        self._opened: set[str] = set()
        """The keys of unfolded items in all panes."""
        self._places: list[Place] = []
        """The places before jumps, newest last."""
        self._cache: dict[tuple[str, View], Document] = {}

    @property
    def titles(self) -> tuple[str, ...]:
        """The names of the panes, in the order of their digits."""
        return tuple(pane.title for pane in self.panes)

    @property
    def pane(self) -> Pane[Read]:
        """The open pane."""
        if not self._wanted:
            return next((pane for pane in self.panes if pane.opens(self.subject)), self.panes[0])
        return next((pane for pane in self.panes if pane.title == self._wanted), self.panes[0])

    @property
    def away(self) -> bool:
        """Whether the current place was reached by a jump."""
        return bool(self._places)

    def take(self, subject: Read, *, same: bool = False) -> None:
        """Replace the subject. With `same`, it is a new state of the same subject.

        Another subject opens in the pane that the user chose, and not in one that a jump led to.
        """
        self.subject = subject
        self.refresh()
        if same:
            return
        if self._places:
            self._wanted = self._places[0].pane
        self.full = False
        self._places.clear()
        self._opened.clear()

    def refresh(self) -> None:
        """Update the panes and clear the cached documents, because the record may have changed in place."""
        self.panes = self._panes_of(self.subject)
        self._cache.clear()

    def choose(self, title: str) -> bool:
        """Open the pane with this title, also for later subjects. Return whether another pane was open."""
        before = self.pane.title
        self._wanted = title
        if title == before:
            return False
        self._places.clear()
        self.full = False
        return True

    def document(self, planned: Planned) -> Document:
        """Return the document of the open pane for the available size."""
        pane = self.pane
        document = self._built(pane, planned(pane.aside))
        # Without items there is no aside, so the document gets all the room.
        return document if document.items or not pane.aside else self._built(pane, planned(False))

    def _built(self, pane: Pane[Read], shares: Layout) -> Document:
        if shares.width <= 0:
            return Document()
        view = View(shares.width, self.full, opened=frozenset(self._opened), narrow=shares.narrow)
        document = self._cache.pop((pane.title, view), None) or pane.build(self.subject, view)
        self._cache[pane.title, view] = document
        if len(self._cache) > _CACHED:
            del self._cache[next(iter(self._cache))]
        return document

    def is_open(self, item: Item) -> bool:
        """Return whether the item is unfolded."""
        return item.key in self._opened

    def unfold(self, item: Item) -> bool:
        """Unfold an item. Return False if it has nothing to unfold."""
        if not item.opens or self.is_open(item):
            return False
        self._opened.add(item.key)
        return True

    def fold(self, item: Item) -> bool:
        """Fold an item. Return False if it is folded already."""
        if not self.is_open(item):
            return False
        self._opened.discard(item.key)
        return True

    def follow(self, item: Item, top: int, planned: Planned, *, only: str | None = None) -> Arrival | None:
        """Jump to the place of an item in another pane, or only in pane `only`. Return None if there is none."""
        here = Place(self._wanted, item.key, top, self.full)
        for target in item.targets:
            if (
                only in (None, target.pane)
                and target.pane in self.titles
                and (arrival := self._arrive(target, planned)) is not None
            ):
                self._places.append(here)
                return arrival
            self._wanted, self.full = here.pane, here.full
        return None

    def _arrive(self, target: Target, planned: Planned) -> Arrival | None:
        self._wanted, self.full = target.pane, False
        document = self.document(planned)
        place = next((name for name in target.places if name in document.places), None)
        if place is None:
            return None
        lines = document.places[place]
        item = document.items[document.item_at(lines.start)] if document.items else None
        if item is None or not item.start <= lines.start < item.end:
            return document, lines, ""
        self._opened |= {item.key, f"{item.key}/event"}  # In the trace, the target is the event of the row.
        document = self.document(planned)
        return document, document.places[place], item.key

    def back(self) -> Place | None:
        """Undo the last jump. Return the place before it, or None if there was no jump."""
        if not self._places:
            return None
        place = self._places.pop()
        self._wanted, self.full = place.pane, place.full
        return place

    def copied(self, item: Item | None, turn: int | None) -> tuple[str, str]:
        """Return a name and the full text of the item, else of the turn, else of the pane."""
        pane, key = self.pane, item.key if item is not None else ""
        document = pane.build(self.subject, View(_COPY_WIDTH, full=True, within=key, signs=True))
        number = document.item_named(key) if key else None
        if number is not None:
            found = document.items[number]
            # A part has the aside of the whole item.
            is_part = document.item_named(key.rpartition("/")[0]) is not None
            lines = [*document.whole(number), *(found.aside(_COPY_WIDTH) if found.aside and not is_part else ())]
            name = f"one of {pane.title}"
        elif pane.by_turns and turn is not None and turn < len(document.turns):
            start, *rest = document.turns[turn:]
            lines = document.lines[start if turn else 0 : rest[0] if rest else None]
            name = f"turn {turn + 1}"
        else:
            name, lines = pane.title, document.lines[:]
        text = "\n".join(_RULE.sub("──", line.plain).rstrip() for line in lines)
        return name, text.strip("\n")
