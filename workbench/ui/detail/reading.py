"""Reading a case or a conversation: which pane, what is unfolded in it, and where to go back to. Without a widget."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias

from workbench.rendering.document import AsideWhen, Document, Item, Target
from workbench.rendering.lines import text_of
from workbench.rendering.panes import Pane, Read
from workbench.rendering.rows import View
from workbench.ui.detail.aside import Layout

Planned: TypeAlias = Callable[[AsideWhen], Layout]
"""How the room is shared with such an aside."""
TRACE = "Trace"
"""The pane that has a row for each event."""
_COPY_WIDTH = 1000
_KEPT = 8
"""Documents that are kept, so that going back to a long one costs nothing."""
_RULE = re.compile("─{4,}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reader is: a pane, the item under the cursor, the first line in sight."""

    pane: str
    item: str
    top: int
    full: bool


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a jump leads: a document, the lines in it that are meant, and the item that they are ("": none)."""

    document: Document
    lines: range
    item: str


class Reading(Generic[Read]):
    """Changes by what the user asks for, and makes the documents to be shown. `panes_of` are the panes of a subject."""

    def __init__(self, subject: Read, panes_of: Callable[[Read], tuple[Pane[Read], ...]]) -> None:
        self.subject, self._panes_of = subject, panes_of
        self.panes = panes_of(subject)
        self.full = False
        self._wanted = ""
        """The pane that was asked for last; a case that has none such shows the one that opens by itself."""
        self._opened: set[str] = set()
        """The items of any pane that are unfolded."""
        self._places: list[Place] = []
        """Where to go back to, the newest last."""
        self._kept: dict[tuple[str, View], Document] = {}

    @property
    def titles(self) -> tuple[str, ...]:
        """The panes of the subject, in the order of their digits."""
        return tuple(pane.title for pane in self.panes)

    @property
    def pane(self) -> Pane[Read]:
        """The pane that is open."""
        own = next((pane for pane in self.panes if pane.opens), self.panes[0])
        return next((pane for pane in self.panes if pane.title == self._wanted), own)

    @property
    def away(self) -> bool:
        """Whether there is somewhere to go back to."""
        return bool(self._places)

    def take(self, subject: Read, *, same: bool = False) -> None:
        """Read another subject, or (`same`) another state of it. Another one opens in the pane that was asked for: not
        in one that was only jumped to."""
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
        """The record may have changed in place."""
        self.panes = self._panes_of(self.subject)
        self._kept.clear()

    def choose(self, n: int) -> bool:
        """Opens the pane with digit `n`; whether it is another one."""
        if not 1 <= n <= len(self.panes) or self.panes[n - 1] is self.pane:
            return False
        self._places.clear()
        self._wanted, self.full = self.panes[n - 1].title, False
        return True

    def document(self, planned: Planned) -> Document:
        """The pane, laid out for the room there is."""
        pane = self.pane
        document = self._built(pane, planned(pane.aside))
        # Without items there is nothing to tell beside them, and all the room is the document's.
        return document if document.items or pane.aside == "never" else self._built(pane, planned("never"))

    def _built(self, pane: Pane[Read], shares: Layout) -> Document:
        if shares.width <= 0:
            return Document()
        view = View(shares.width, self.full, opened=frozenset(self._opened), aside=shares.beside)
        document = self._kept.pop((pane.title, view), None) or pane.build(self.subject, view)
        self._kept[pane.title, view] = document
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return document

    # Unfolding and jumping

    def is_open(self, item: Item) -> bool:
        """Whether the item is unfolded."""
        return item.key in self._opened

    def unfold(self, item: Item) -> bool:
        """Unfolds an item; False if there is nothing more of it."""
        if not item.opens or self.is_open(item):
            return False
        self._opened.add(item.key)
        return True

    def fold(self, item: Item) -> bool:
        """Folds an item; False if it is folded."""
        if not self.is_open(item):
            return False
        self._opened.discard(item.key)
        return True

    def follow(self, item: Item, top: int, planned: Planned, *, only: str | None = None) -> Arrival | None:
        """Goes to where the item came from, in whichever pane that is, or in this one `only`; None if there is no such
        place."""
        here = Place(self.pane.title, item.key, top, self.full)
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
        self._wanted, self.full = target.pane, target.pane == "Log"
        document = self.document(planned)
        place = next((name for name in target.places if name in document.places), None)
        if place is None:
            return None
        if not document.items:
            return Arrival(document, document.places[place], "")
        item = document.items[document.item_at(document.places[place].start)]
        if not item.start <= document.places[place].start < item.end:
            return Arrival(document, document.places[place], "")
        self._opened.add(item.key)
        document = self.document(planned)
        return Arrival(document, document.places[place], item.key)

    def back(self) -> Place | None:
        """Takes the reader back to where the last jump began; None if there was none."""
        if not self._places:
            return None
        place = self._places.pop()
        self._wanted, self.full = place.pane, place.full
        return place

    # Copying

    def copied(self, item: Item | None, turn: int | None) -> tuple[str, str]:
        """What is copied, and its text in full: of the item, of the turn, or of a pane that has neither."""
        pane, key = self.pane, item.key if item is not None else ""
        document = pane.build(self.subject, View(_COPY_WIDTH, full=True, stacked=True, within=key))
        number = document.item_named(key) if key else None
        if number is not None:
            found = document.items[number]
            # What is told beside a part of an item is told of the whole.
            is_part = document.item_named(key.rpartition("/")[0]) is not None
            lines = [*document.whole(number), *(found.aside(_COPY_WIDTH) if found.aside and not is_part else ())]
            name = f"one of {pane.title}"
        elif pane.by_turns and turn is not None and turn < len(document.turns):
            start, *rest = document.turns[turn:]
            lines = document.lines[start if turn else 0 : rest[0] if rest else None]
            name = f"turn {turn + 1}"
        else:
            name, lines = pane.title, document.lines[:]
        text = "\n".join(_RULE.sub("──", text_of(line)).rstrip() for line in lines)
        return name, text.strip("\n")
