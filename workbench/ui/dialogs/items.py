"""Items of a pick list, and the search over them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from workbench.fast_dataclass import dataclass
from workbench.ui.dialogs import fuzzy


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a pick list. All texts are safe.

    `kind` is dimmed before the label ("case"), `hint` is on the right. `help` is shown while the cursor is on the row.
    A heading cannot be picked. `why_not` is why the item has no effect now, or "". Such items are dimmed and found
    last. `also` has further words that find the item.
    """

    label: str
    value: Any = None
    hint: str = ""
    help: str = ""
    kind: str = ""
    heading: bool = False
    why_not: str = ""
    also: str = ""

    @property
    def name(self) -> str:
        """All that its row shows of itself: kind, label and hint."""
        return f"{self.kind} {self.label} {self.hint}".strip()

    def words(self) -> tuple[frozenset[str], ...]:
        """Return the words that find it: those of its row, the further ones, and those of its help."""
        return tuple(map(fuzzy.words, (self.name, self.also, self.help)))


_UNFIT = -1000.0
"""The score of a label that lacks the letters, because they are in the hint."""
Search: TypeAlias = Callable[[str], Sequence[Item]]
"""Returns the items for the typed text, best first."""


def searching(items: Sequence[Item], more: Search = lambda query: ()) -> Search:
    """Return a search over fixed items, followed by what `more` finds.

    An empty text finds all items with their headings. Other texts find the items with all of their words: in kind,
    label or hint, else in `also`, else in the help. If none has them, letters in order find labels, too.
    """
    pickable = [item for item in items if not item.heading]
    names = [item.name for item in pickable]
    texts = [item.words() for item in pickable]

    def search(query: str) -> Sequence[Item]:
        if not query.strip():
            return items
        ranks = (fuzzy.word_rank(query, of_item) for of_item in texts)
        named = sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None)
        found = sorted((pickable[number] for _, number in named), key=lambda item: bool(item.why_not))
        if found:
            return [*found, *more(query)]
        scattered = [*(pickable[number] for number in fuzzy.best(query, names, limit=200)), *more(query)]
        return sorted(scattered, key=lambda item: (bool(item.why_not), -(fuzzy.score(query, item.label) or _UNFIT)))

    return search
