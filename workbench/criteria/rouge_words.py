"""Words of a text as ADK's response_match_score counts them, with their offsets.

The text is converted to Unicode form NFKC and lower case. Each CJK ideograph, kana and Hangul syllable is a word. In
Thai, Lao, Khmer and Myanmar a word starts at each character that is not a combining mark. Elsewhere letters, digits and
combining marks form words. Everything else separates words.
"""

import importlib
import importlib.util
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from types import ModuleType
from typing import NamedTuple

# rouge_score needs one file of nltk, the Porter stemmer. The whole of nltk takes 0.26 s of CPU and 39 MiB more in each
# process that scores, and 1.2 s and 158 MiB more where scikit-learn is installed (nltk 3.10.4, November 2026).
_PACKAGES = ("nltk", "nltk.stem")
_TOKENIZERS = "rouge_score.tokenizers"


@cache
def stemmer() -> Callable[[str], str]:
    """Return a function from an ASCII word to its stem, exactly as rouge_score computes it.

    Raises:
        ImportError: rouge_score or nltk is not installed.
    """
    tokeniser = _tokenizers().DefaultTokenizer(use_stemmer=True)
    return lambda word: tokeniser.tokenize(word)[0]


def _tokenizers() -> ModuleType:
    if _TOKENIZERS in sys.modules or "nltk" in sys.modules:
        return importlib.import_module(_TOKENIZERS)
    try:
        with _empty_nltk_packages():
            return importlib.import_module(_TOKENIZERS)
    except (ImportError, AttributeError):  # An nltk whose stemmer needs more.
        return importlib.import_module(_TOKENIZERS)


@contextmanager
def _empty_nltk_packages() -> Iterator[None]:
    try:
        for name in _PACKAGES:
            spec = importlib.util.find_spec(name)
            if spec is None or spec.submodule_search_locations is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.modules[name] = importlib.util.module_from_spec(spec)
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGES[0]]:
            del sys.modules[name]


_EACH_A_WORD = ((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF))
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
_ASCII_WORD = re.compile("[a-z0-9]+")
_WORD = re.compile("e|sw*|w+")


class Word(NamedTuple):
    """A normalised word (NFKC, lower case, not stemmed), and its slice of the original text."""

    text: str
    start: int
    end: int


def rouge_words(text: str) -> list[str]:
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
