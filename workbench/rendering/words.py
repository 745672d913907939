"""Two texts word by word: which pieces are the same, which stand on one side only.

A text is shown as pieces `(text, kind)` that give the text back when they are joined. The kinds: "same", "missing"
(expected, not said) and "extra" (said, not expected). Texts of East Asia are compared character by character.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.metrics.alignment import lcs_pairs

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
"""Characters of each text that are compared: as many as are ever shown."""


class _Word(NamedTuple):
    """A word and the white space before it, as places in the text."""

    gap: int
    start: int
    end: int


@lru_cache(maxsize=16)
def compare(expected: str, actual: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The pieces of both texts by our own comparison: words, marks of punctuation and white space all count."""
    left, right = _words(expected[:LIMIT]), _words(actual[:LIMIT])
    pairs = lcs_pairs(_texts(expected, left), _texts(actual, right))
    uneven = list(_uneven_gaps(expected, actual, left, right, pairs))
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    missing = _spans(left, rows, {row for row, _ in uneven})
    extra = _spans(right, columns, {column for _, column in uneven})
    return tuple(_pieces(expected, missing, "missing", _BLANKS)), tuple(_pieces(actual, extra, "extra", _BLANKS))


def from_marks(marks: Any, text: str, kind: Kind) -> tuple[Piece, ...] | None:
    """The pieces a metric left in its details (`[[text, "same" | kind | "space"], …]`; "space" is what it does not
    count), or None if there are none or they do not give `text` back."""
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
    """Whether any piece stands on one side only."""
    return any(kind != "same" for _, kind in pieces)


def _words(text: str) -> list[_Word]:
    """The words in order; the white space at the end stands before an empty word."""
    words = [_Word(match.start(1), match.start(2), match.end(2)) for match in _TOKEN.finditer(text)]
    # Where the text ends with a word, the pattern matches the empty end as well; where it ends with blanks, twice.
    while len(words) > 1 and words[-2].start == words[-2].end:
        words.pop()
    return words


def _texts(text: str, words: list[_Word]) -> list[str]:
    return [text[word.start : word.end] for word in words]


def _uneven_gaps(
    expected: str, actual: str, left: list[_Word], right: list[_Word], pairs: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The pairs of equal words, next to equal words, that are not parted by the same white space."""
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
    """The text cut at the spans; those with no more than `small_gap` between them are one."""
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
