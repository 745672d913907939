"""Finding names by some of their letters, in order."""

import re
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=8)
def _pattern(query: str) -> re.Pattern[str]:
    letters = [re.escape(letter) for letter in query if not letter.isspace()]
    return re.compile("(" + ")[^\n]*?(".join(letters) + ")" if letters else "", re.IGNORECASE)


def positions(query: str, text: str) -> tuple[int, ...] | None:
    """Where the letters of `query` stand in `text`, blanks left out; None if they are not all there in that order. A
    whole piece is preferred to scattered letters."""
    piece = text.lower().find(query.strip().lower())
    if query.strip() and piece >= 0:
        return tuple(range(piece, piece + len(query.strip())))
    found = _pattern(query).search(text)
    return None if found is None else tuple(found.start(number + 1) for number in range(_pattern(query).groups))


def score(query: str, text: str) -> float | None:
    """How well `query` fits, larger is better; None if it does not. A piece at the start of a word beats one inside,
    neighbouring letters beat scattered ones, a short text beats a long one."""
    if not query.strip():
        return 0.0
    places = positions(query, text)
    if places is None:
        return None
    at_word = places[0] == 0 or not text[places[0] - 1].isalnum()
    gaps = places[-1] - places[0] + 1 - len(places)
    return 100.0 * at_word - 3.0 * gaps - 0.1 * len(text)


def best(query: str, texts: Sequence[str], limit: int) -> list[int]:
    """The numbers of the `limit` texts that fit best, best first."""
    scored = [(fit, -number) for number, text in enumerate(texts) if (fit := score(query, text)) is not None]
    return [-number for _, number in sorted(scored, reverse=True)[:limit]]
