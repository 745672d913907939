"""Items of a pick list, and the search for them by words."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a pick list, which returns `value` if it is picked. All texts are safe.

    `kind` is a dimmed word before the label, such as "case", and `hint` a text on the right. `help` is shown while the
    cursor is on the row. A heading cannot be picked. `why_not` is the reason why the item has no effect now, or "".
    Items with a reason are dimmed and found last. `also` has further search words.
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
        """The text of the row: kind, label and hint."""
        return f"{self.kind} {self.label} {self.hint}".strip()


Search: TypeAlias = Callable[[str], Sequence[Item]]
"""A function that returns the items for a typed text, best first."""


def searching(items: Sequence[Item], more: Search = lambda query: ()) -> Search:
    """Return a search over fixed items and the results of `more`.

    An empty text finds all fixed items, with headings. Other texts find the items that contain all of their words: in
    the row, in `also` or in the help, in this order.
    """
    pickable = [item for item in items if not item.heading]
    texts = [tuple(map(words_in, (item.name, item.also, item.help))) for item in pickable]

    def search(query: str) -> Sequence[Item]:
        if not query.strip():
            return items
        ranks = (word_rank(query, of_item) for of_item in texts)
        named = sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None)
        found = sorted((pickable[number] for _, number in named), key=lambda item: bool(item.why_not))
        return [*found, *more(query)]

    return search


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, with and without punctuation."""
    small = text.lower()
    return frozenset([*small.split(), *re.findall(r"[^\W_]+", small)])


def word_rank(query: str, texts: Sequence[frozenset[str]]) -> tuple[int, int] | None:
    """Return how well the words of `query` match, smaller is better, or None if one of them does not match.

    `texts` are the words of several texts, the most important first. A whole word in any text is better than the start
    of a word, and that is better than a part of a word in the first text. The word that matches worst is compared
    first.
    """
    ranks = [_rank(wanted, texts) for wanted in query.lower().split()]
    known = [rank for rank in ranks if rank is not None]
    return (max(known, default=0), sum(known)) if len(known) == len(ranks) else None


def _rank(wanted: str, texts: Sequence[frozenset[str]]) -> int | None:
    fits = [wanted in text for text in texts]
    fits += [any(word.startswith(wanted) for word in text) for text in texts]
    fits += [any(wanted in word for word in texts[0])]
    return fits.index(True) if True in fits else None
