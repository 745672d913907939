"""Texts as the words that carry them: what is left when case, accents, endings, small words and markup are gone."""

import re
import unicodedata
from collections.abc import Iterator

from workbench.judge.heuristic.languages import SETS
from workbench.judge.heuristic.synonyms import GROUPS

_MARKUP = re.compile(r"[*`#>|~_]+")
_QUOTES = str.maketrans("‘’‚“”„«»", '\'\'\'"""""')
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_KANA = "\u3041-\u309f"
_KATAKANA = "\u30a0-\u30ff"
_HAN = "\u3005\u4e00-\u9fff"
_HANGUL = "\uac00-\ud7a3"
_MARKED = "\u0900-\u0dff\u0e00-\u0e7f"
_WORD = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<katakana>[{_KATAKANA}]+)|(?P<kana>[{_KANA}]+)|(?P<hangul>[{_HANGUL}]+)"
    rf"|(?P<other>(?:[^\W\d_{_HAN}{_KANA}{_KATAKANA}{_HANGUL}]|[{_MARKED}])+)"
)
_ENDINGS = ("ingly", "ee", "edly", "ing", "ied", "ies", "ed", "es", "en", "em", "er", "ly", "e", "d", "n")
_LEAST = 4
_LONGEST = 40


def plain(text: str) -> str:
    """One form for what looks the same: NFKC, lower case, straight quotes and dashes, no markup, single blanks."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).translate(_DASHES)
    return " ".join(_MARKUP.sub(" ", text).casefold().split())


def bare(text: str) -> str:
    """`plain`, with punctuation gone too."""
    return " ".join(re.sub(r"[^\w\s]|_", " ", plain(text)).split())


def stem(word: str) -> str:
    """A word of an alphabet without accents and its ending: "arrives", "arrived" and "arriving" are "arriv"."""
    word = "".join(c for c in unicodedata.normalize("NFD", word[:_LONGEST]) if not unicodedata.combining(c))
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _LEAST and word[-1] == word[-2] else word


def words_at(text: str) -> Iterator[tuple[int, str, bool]]:
    """(where it stands, stem, whether it is a small word) of each word of a text that went through `plain`. Chinese
    characters come as pairs, katakana as a whole, hangul by its first two syllables; hiragana is left out, for it is
    mostly grammar."""
    for match in _WORD.finditer(text):
        run, at = match.group(), match.start()
        if match.lastgroup == "han":
            for i in range(max(1, len(run) - 1)):
                yield at + i, run[i : i + 2], False
        elif match.lastgroup == "katakana":
            yield at, run.rstrip("ー") or run, False
        elif match.lastgroup == "hangul":
            yield at, run[:2], False
        elif match.lastgroup == "other":
            word = run if run in _SMALL else same(stem(run))
            yield at, word, word in _SMALL


def every_word(text: str) -> list[str]:
    """The stems of all words of a plain text, small ones too, in order."""
    return [word for _, word, _ in words_at(text)]


def content_words(text: str) -> list[str]:
    """`every_word` without the small ones."""
    return [word for _, word, small in words_at(text) if not small]


def same(word: str) -> str:
    """The first of the group of synonyms of a stem, or the stem itself."""
    return _SYNONYMS.get(word, word)


_SMALL = frozenset(
    form for words in SETS.values() for word in words for form in (word, stem(word)) if len(word) < _LONGEST
) - {"may", "mai"}
_SYNONYMS = {stem(word): stem(group.split()[0]) for group in GROUPS for word in group.split()}
