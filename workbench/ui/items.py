"""Items of a pick list, and the search over them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from workbench.fast_dataclass import dataclass
from workbench.ui import fuzzy


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a pick list. All texts are safe.

    `kind` is dimmed before the label ("theme", "case"), `hint` is on the right. `help` is shown while the cursor is on
    the row. A heading cannot be picked. `why_not` is why the item has no effect now, or "". Such items are dimmed and
    found last.
    """

    label: str
    value: Any = None
    hint: str = ""
    help: str = ""
    kind: str = ""
    heading: bool = False
    why_not: str = ""


Search: TypeAlias = Callable[[str], Sequence[Item]]
"""Returns the items for the typed text, best first."""


def searching(items: Sequence[Item]) -> Search:
    """Return a search over fixed items.

    An empty text finds all items with their headings, other texts the best first. If no item has it, those are found
    whose help has all of its words.
    """
    pickable = [item for item in items if not item.heading]
    texts = [f"{item.kind} {item.label} {item.hint}".strip() for item in pickable]

    def search(query: str) -> Sequence[Item]:
        if not query.strip():
            return items
        found = [pickable[number] for number in fuzzy.best(query, texts, limit=200)]
        if not found:
            words = query.lower().split()
            found = [item for item in pickable if all(word in item.help.lower() for word in words)]
        return sorted(found, key=lambda item: bool(item.why_not))

    return search
