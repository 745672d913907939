"""Finding names by some of their letters, in order."""

from collections.abc import Sequence

_LOOKED_AT = 300
"""Characters of a text that count: names are shorter, and what is longer is no name."""


def positions(query: str, text: str) -> tuple[int, ...] | None:
    """Where the letters of `query` stand in `text`, blanks left out; None if they are not all there in that order. A
    whole piece is preferred to scattered letters."""
    return _positions(_small(query.strip()), _small(text[:_LOOKED_AT]))


def score(query: str, text: str) -> float | None:
    """How well `query` fits, larger is better; None if it does not. A piece at the start of a word beats one inside,
    neighbouring letters beat scattered ones, a short text beats a long one."""
    wanted, within = _small(query.strip()), _small(text[:_LOOKED_AT])
    if not wanted:
        return 0.0
    places = _positions(wanted, within)
    if not places:
        return None
    at_word = places[0] == 0 or not within[places[0] - 1].isalnum()
    gaps = places[-1] - places[0] + 1 - len(places)
    return 100.0 * at_word - 3.0 * gaps - 0.1 * len(within)


def best(query: str, texts: Sequence[str], limit: int) -> list[int]:
    """The numbers of the `limit` texts that fit best, best first."""
    scored = [(fit, -number) for number, text in enumerate(texts) if (fit := score(query, text)) is not None]
    return [-number for _, number in sorted(scored, reverse=True)[:limit]]


def _small(text: str) -> str:
    """In small letters, unless that would move the others: a few have no small letter of one character."""
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
