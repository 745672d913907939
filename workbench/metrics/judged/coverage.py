"""Which passages of a text are in none of the sentences that a judge cut it into: nobody has checked those."""

import re
from bisect import bisect_left
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
MIN_WORDS = 3
"""Shorter gaps are numbering and the like."""


def passages_left_out(text: str, sentences: Sequence[str]) -> list[str]:
    """The passages of at least MIN_WORDS words, as they stand in the text. Sentences are compared by their words; one
    that is not in the text covers nothing."""
    places = [match.span() for match in _WORD.finditer(text)]
    words = [text[start:end].lower() for start, end in places]
    starts, length = [], 1
    for word in words:
        starts.append(length)
        length += len(word) + 1
    joined = f" {' '.join(words)} "
    covered = [False] * len(words)
    reached = 0
    for sentence in sentences:
        wanted = " ".join(word.lower() for word in _WORD.findall(sentence))
        if not wanted:
            continue
        found = joined.find(f" {wanted} ", reached)
        found = found if found >= 0 else joined.find(f" {wanted} ")
        if found >= 0:
            reached = found + len(wanted) + 1
            first, last = bisect_left(starts, found + 1), bisect_left(starts, reached)
            covered[first:last] = [True] * (last - first)
    return _gaps(text, places, covered)


def _gaps(text: str, places: Sequence[tuple[int, int]], covered: Sequence[bool]) -> list[str]:
    gaps = []
    first = None
    for index, inside in enumerate([*covered, True]):
        if not inside and first is None:
            first = index
        elif inside and first is not None:
            if index - first >= MIN_WORDS:
                gaps.append(text[places[first][0] : places[index - 1][1]])
            first = None
    return gaps
