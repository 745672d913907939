"""Fuzzy search: find names by some of their letters, in order."""

from collections.abc import Sequence

_COMPARED = 300
"""Characters of a text that are compared. Names are shorter."""


def positions(query: str, text: str) -> tuple[int, ...] | None:
    """Return the positions of the letters of `query` in `text`, or None unless all occur in order.

    Blanks in `query` are ignored. A connected piece is preferred to scattered letters.
    """
    return _positions(_small(query.strip()), _small(text[:_COMPARED]))


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
