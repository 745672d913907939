"""Items of a pick list, and the search for them by words, or by letters of a name."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

_COMPARED = 300
"""Maximum number of characters of a text that are compared. Names are shorter."""


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

    def found_by(self) -> tuple[frozenset[str], ...]:
        """Return the search words of the row, of `also` and of the help, in this order."""
        return tuple(map(words_in, (self.name, self.also, self.help)))


_UNFIT = -1000.0
"""The score of an item whose label alone does not match, because some of the letters are in its kind or hint."""
Search: TypeAlias = Callable[[str], Sequence[Item]]
"""A function that returns the items for a typed text, best first."""


def searching(items: Sequence[Item], more: Search = lambda query: ()) -> Search:
    """Return a search over fixed items and the results of `more`.

    An empty text finds all fixed items, with headings. Other texts find the items that contain all of their words: in
    the row, in `also` or in the help, in this order. If there are none, rows that contain all letters in order are
    found.
    """
    pickable = [item for item in items if not item.heading]
    names = [item.name for item in pickable]
    texts = [item.found_by() for item in pickable]

    def search(query: str) -> Sequence[Item]:
        if not query.strip():
            return items
        ranks = (word_rank(query, of_item) for of_item in texts)
        named = sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None)
        found = sorted((pickable[number] for _, number in named), key=lambda item: bool(item.why_not))
        others = more(query)
        found += [item for item in others if word_rank(query, item.found_by()) is not None]
        if found:
            return found
        scattered = [*(pickable[number] for number in best(query, names, limit=200)), *others]
        return sorted(scattered, key=lambda item: (bool(item.why_not), -(score(query, item.label) or _UNFIT)))

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


def marked(query: str, text: str, *, scattered: bool) -> tuple[int, ...]:
    """Return the positions in `text` that match the words of `query`, or its letters in order if `scattered`."""
    within = _small(text[:_COMPARED])
    if scattered:
        return _positions(_small(query.strip()), within) or ()
    words = _small(query).split()
    found = {place + letter for word in words if (place := within.find(word)) >= 0 for letter in range(len(word))}
    return tuple(sorted(found))


def score(query: str, text: str) -> float | None:
    """Return how well the letters of `query` match, larger is better, or None if they do not.

    A match at the start of a word is better than one inside a word. Adjacent letters are better than scattered ones.
    A short text is better than a long one.
    """
    wanted, within = _small(query.strip()), _small(text[:_COMPARED])
    if not wanted:
        return 0.0
    places = _positions(wanted, within)
    if not places:
        return None
    at_word = places[0] == 0 or not within[places[0] - 1].isalnum()
    gaps = places[-1] - places[0] + 1 - len(places)
    return 100.0 * at_word - 3.0 * gaps - 0.1 * len(within)


def best(query: str, texts: Sequence[str], limit: int) -> list[int]:
    """Return the indices of at most `limit` matching texts, best first."""
    scored = [(fit, -number) for number, text in enumerate(texts) if (fit := score(query, text)) is not None]
    return [-number for _, number in sorted(scored, reverse=True)[:limit]]


def _small(text: str) -> str:
    """Return a text in lower case. If that would move its letters, return it unchanged."""
    small = text.lower()
    return small if len(small) == len(text) else text


def _positions(wanted: str, within: str) -> tuple[int, ...] | None:
    piece = within.find(wanted)
    if piece >= 0:
        return tuple(range(piece, piece + len(wanted)))
    found: list[int] = []
    place = -1
    for letter in wanted:
        if not letter.isspace():
            place = within.find(letter, place + 1)
            if place < 0:
                return None
            found.append(place)
    return tuple(found)
