"""Word-by-word comparison of two texts.

A text becomes pieces `(text, kind)`. Joined, the pieces are the text again. The kinds are "same",
"missing" (expected but absent) and "extra" (not expected). Texts in East Asian scripts are
compared character by character.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.criteria.alignment import lcs_pairs

Kind: TypeAlias = Literal["same", "missing", "extra"]
Piece: TypeAlias = tuple[str, Kind]
Span: TypeAlias = tuple[int, int]

# Ideographs, kana, Hangul and the scripts without blanks of South-East Asia, each with its combining marks.
_SINGLE = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_TOKEN = re.compile(rf"(\s*)({_SINGLE}|(?:(?!{_SINGLE})\w)+|[^\w\s]|$)")
_BLANKS = re.compile(r"(?!.*\n\s*\n)\s{0,3}", re.DOTALL)
_BLANKS_AND_MARKS = re.compile(r"(?!.*\n\s*\n)\W{0,3}", re.DOTALL)
LIMIT = 100_000
"""The number of characters of each text that are compared. No more are ever shown."""


class _Word(NamedTuple):
    """A word and the white space before it, as offsets in the text."""

    gap: int
    start: int
    end: int


@lru_cache(maxsize=16)
def compare(expected: str, actual: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the pieces of both texts. Words, punctuation and white space all count."""
    left, right = _words(expected[:LIMIT]), _words(actual[:LIMIT])
    pairs = lcs_pairs(_texts(expected, left), _texts(actual, right))
    uneven = list(_uneven_gaps(expected, actual, left, right, pairs))
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    missing = _spans(left, rows, {row for row, _ in uneven})
    extra = _spans(right, columns, {column for _, column in uneven})
    return tuple(_pieces(expected, missing, "missing", _BLANKS)), tuple(_pieces(actual, extra, "extra", _BLANKS))


def from_marks(marks: Any, text: str, kind: Kind) -> tuple[Piece, ...] | None:
    """Return the pieces from a metric's details, or None if they are missing or do not add up to `text`.

    The details are `[[text, "same" | kind | "space"], …]`. The metric does not count "space".
    """
    if not isinstance(marks, list):
        return None
    spans: list[Span] = []
    place = 0
    try:
        for part, mark in marks:
            end = place + len(part)
            if mark == kind:
                spans.append((place, end))
            place = end
        whole = "".join([part for part, _ in marks])
    except (TypeError, ValueError):
        return None
    return tuple(_pieces(text, spans, kind, _BLANKS_AND_MARKS)) if whole == text else None


def differs(pieces: Iterable[Piece]) -> bool:
    """Return whether any piece is on one side only."""
    return any(kind != "same" for _, kind in pieces)


def _words(text: str) -> list[_Word]:
    """Return the words in order.

    White space at the end of the text belongs to an empty last word.
    """
    words = [_Word(match.start(1), match.start(2), match.end(2)) for match in _TOKEN.finditer(text)]
    # The pattern matches the empty end of a text once more after a word, and twice more after blanks.
    while len(words) > 1 and words[-2].start == words[-2].end:
        words.pop()
    return words


def _texts(text: str, words: list[_Word]) -> list[str]:
    return [text[word.start : word.end] for word in words]


def _uneven_gaps(
    expected: str, actual: str, left: list[_Word], right: list[_Word], pairs: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of equal words that follow equal words after different white space."""
    before = (-1, -1)
    for row, column in pairs:
        if (row - 1, column - 1) == before:
            one, other = left[row], right[column]
            if expected[one.gap : one.start] != actual[other.gap : other.start]:
                yield row, column
        before = (row, column)


def _spans(words: list[_Word], matched: set[int], uneven: set[int]) -> Iterator[Span]:
    for index, word in enumerate(words):
        if index in uneven and word.gap < word.start:
            yield word.gap, word.start
        if index not in matched and word.start < word.end:
            yield word.start, word.end


def _pieces(text: str, spans: Iterable[Span], kind: Kind, small_gap: re.Pattern[str]) -> Iterator[Piece]:
    """Yield the text cut at the spans. Spans with at most `small_gap` between them are joined."""
    reached, open_span = 0, None
    for start, end in spans:
        if open_span is not None:
            if start - open_span[1] <= 3 and small_gap.fullmatch(text, open_span[1], start):
                open_span = (open_span[0], end)
                continue
            yield text[open_span[0] : open_span[1]], kind
            reached = open_span[1]
        if start > reached:
            yield text[reached:start], "same"
        open_span = (start, end)
    if open_span is not None:
        yield text[open_span[0] : open_span[1]], kind
        reached = open_span[1]
    if reached < len(text):
        yield text[reached:], "same"
