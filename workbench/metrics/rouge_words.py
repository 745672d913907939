"""Words of a text as ADK's response_match_score counts them, with their offsets.

The text is converted to Unicode form NFKC and lower case. Each CJK ideograph, kana and Hangul syllable is a word. In
Thai, Lao, Khmer and Myanmar a word starts at each character that is not a combining mark. Elsewhere letters, digits and
combining marks form words. Everything else separates words.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_EACH_A_WORD = ((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF))
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
_ASCII_WORD = re.compile("[a-z0-9]+")
_WORD = re.compile("e|sw*|w+")


class Word(NamedTuple):
    """A word as it is compared (before stemming), and its slice of the original text."""

    text: str
    start: int
    end: int


def words(text: str) -> list[str]:
    """Return the normalised words of `text`, in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).lower()
    return [folded[match.start() : match.end()] for match in _WORD.finditer(folded.translate(_CLASSES))]


def words_with_offsets(text: str) -> list[Word]:
    """Return the words with their offsets. Two words made from one character (the digits of ½) share its offsets."""
    if text.isascii():
        return [Word(match.group(), *match.span()) for match in _ASCII_WORD.finditer(text.lower())]
    folded, starts, ends = _folded(text)
    return [
        Word(folded[match.start() : match.end()], starts[match.start()], ends[match.end() - 1])
        for match in _WORD.finditer(folded.translate(_CLASSES))
    ]


class _Classes(dict[int, str]):
    """Class of each character: e is a word, s starts one, w continues one, - separates. Filled on first use."""

    def __missing__(self, code: int) -> str:
        mark = unicodedata.category(chr(code)).startswith("M")
        if any(low <= code <= high for low, high in _EACH_A_WORD):
            kind = "e"
        elif any(low <= code <= high for low, high in _UNSPACED):
            kind = "w" if mark else "s"
        else:
            kind = "w" if mark or chr(code).isalnum() else "-"
        self[code] = kind
        return kind


_CLASSES = _Classes()


def _folded(text: str) -> tuple[str, list[int], list[int]]:
    """Return `text` in NFKC and lower case, with the start and end in `text` of each resulting character."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    normal = unicodedata.normalize("NFKC", text)
    clusters = _clusters(text)
    if "".join(unicodedata.normalize("NFKC", text[start:end]) for start, end in clusters) != normal:
        clusters = [(0, len(text))]
    for start, end in clusters:
        # Only İ grows in lower case; a final sigma depends on its neighbours but keeps its length.
        part = "".join(character.lower() for character in unicodedata.normalize("NFKC", text[start:end]))
        parts.append(part)
        starts += [start] * len(part)
        ends += [end] * len(part)
    return normal.lower(), starts, ends


def _clusters(text: str) -> list[tuple[int, int]]:
    """Return the slices of `text` that normalise independently: a character and all that may combine with it."""
    starts = [place for place, character in enumerate(text) if place == 0 or not _combines(character)]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


@lru_cache(maxsize=4096)
def _combines(character: str) -> bool:
    """Return whether the character may join the one before it: marks, and the vowels and finals of Hangul."""
    first = unicodedata.normalize("NFKD", character)[:1]
    return unicodedata.category(first).startswith("M") or "\u1160" <= first <= "\u11ff"
