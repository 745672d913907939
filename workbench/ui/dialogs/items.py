"""Items of a pick list, and the search over them: by words, else by some letters of a name, in order."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

_COMPARED = 300
"""Characters of a text that are compared. Names are shorter."""


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

    def found_by(self) -> tuple[frozenset[str], ...]:
        """Return the words that find it: those of its row, the further ones, and those of its help."""
        return tuple(map(words_in, (self.name, self.also, self.help)))


_UNFIT = -1000.0
"""The score of a label that lacks the letters, because they are in the hint."""
Search: TypeAlias = Callable[[str], Sequence[Item]]
"""Returns the items for the typed text, best first."""


def searching(items: Sequence[Item], more: Search = lambda query: ()) -> Search:
    """Return a search over fixed items, followed by what `more` finds.

    An empty text finds all items with their headings. Other texts find the items with all of their words: in kind,
    label or hint, else in `also`, else in the help. If none has them, letters in order find labels, too. The same holds
    for what `more` finds.
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
    """Return the words of a text: what stands between blanks, and its parts without punctuation."""
    small = text.lower()
    return frozenset([*small.split(), *re.findall(r"[^\W_]+", small)])


def word_rank(query: str, texts: Sequence[frozenset[str]]) -> tuple[int, int] | None:
    """Return how well the words of `query` fit, smaller is better, or None if one of them fits nowhere.

    `texts` are the words of several texts, the most important first. A whole word in any of them beats the beginning
    of a word, which beats a piece of a word in the first text. The word that fits worst decides first.
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
    """Return the positions in `text` of the words of `query`, or with `scattered` of its letters in order."""
    within = _small(text[:_COMPARED])
    if scattered:
        return _positions(_small(query.strip()), within) or ()
    words = _small(query).split()
    found = {place + letter for word in words if (place := within.find(word)) >= 0 for letter in range(len(word))}
    return tuple(sorted(found))


def score(query: str, text: str) -> float | None:
    """Return how well `query` fits, larger is better, or None if it does not.

    A piece at the start of a word beats one inside. Neighbouring letters beat scattered ones. A short text beats a long
    one.
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
    """Return the indices of the `limit` texts that fit best, best first."""
    scored = [(fit, -number) for number, text in enumerate(texts) if (fit := score(query, text)) is not None]
    return [-number for _, number in sorted(scored, reverse=True)[:limit]]


def _small(text: str) -> str:
    """Lowercase a text, unless that would change its length and move its letters."""
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
