"""Texts in the form that the rules compare: normalised spelling, tokens, turning words, courtesies and sentences."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from workbench.judge.heuristic.figures import Figure, figures_at

Token: TypeAlias = str | Figure
"""A word (stemmed, with one word for all synonyms) or a figure."""

_SIGNS = str.maketrans({**dict.fromkeys("‘’‚", "'"), **dict.fromkeys("“”„«»", '"'), **dict.fromkeys("‐‑‒–—−", "-")})
_MARKUP = re.compile(r"[*`#>|~_]+")
_WORD = re.compile(r"[\u3005\u4e00-\u9fff]+|[\u30a0-\u30ff]+|[^\W\d_\u3005\u3040-\u30ff\u4e00-\u9fff]+")
_SMALL_WORDS = (
    "a an the is are was were be been am i you he she it we they me us them my your his her its our their of in on at "
    "by for with over as and so do does did done has have had will shall can here there what which who when where how "
    "then very just also please yes about into up some any each too s t ll re ve d m get let like want to 後"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_SAME = {
    word: group.split()[0]
    for group in (
        "arrive parcel package shipment delivery deliver 届",
        "refund reimburse repay",
        "cost price fee",
        "send sent",
        "picture photo image",
    )
    for word in group.split()
}
_PHRASES = (
    (re.compile(r"\bsend(?:ing|s)? (.{1,40}?) back\b"), r"refund \1 sent"),
    (re.compile(r"\bmoney back\b"), "refund"),
    (re.compile(r"\bon (?:its|the|their) way\b"), "sent"),
)
_TURNING = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|\w+n't|without|unless|except|excluding|only|but|however|"
    r"although|though|instead|rather|hardly|barely|rarely|seldom|almost|nearly|until|before|after|than|from|if|or|"
    r"to(?! (?:you|be)\b)|will|shall|"
    r"false|wrong|actually|former|formerly|previously|once|maybe|perhaps|might|may|could|should|would|"
    r"nicht|kein\w*|nie|niemals|ohne|aber|nur|nunca|sin|pero|pas|jamais|sans|mais|não|sem|non|не|нет|без|но)\b"
    r"|ない|ません|なく|なかった|ずに|不|没|无|未|않|없|못"
)
_COURTESY = re.compile(
    r"^(?:hello|hi|hey|welcome|good (?:morning|afternoon|evening|day))\b( there)?"
    r"|\bthank(?:s| you)(?: (?:so|very) much)?(?: for (?:asking|your (?:patience|question|message)|waiting))?\b"
    r"|\b(?:i am|i'm|we are|we're) (?:so |very |really )?sorry\b|\bsorry\b|\b(?:my|our) apologies\b"
    r"|\b(?:i|we) apologi[sz]e\b|\b(?:you're|you are) welcome\b"
    r"|\bone moment\b(?:,? (?:\w+ )?(?:i|we|\w+) will (?:look|check|see)\b)?|\bhave a (?:nice|good|great) day\b"
    r"|^let me (?:look|check|see)\b|\bit's\b|^(?:yes|certainly|of course|sure)\b"
)
_QUESTION = re.compile(r"[?？][\"')\s]*$|(?:ですか|ますか|でしょうか|ください)。?$")
_LEADING = (
    re.compile(r"\W*(?:yes|yeah|ja|sí|oui|sim|да|はい)(?!\w)"),
    re.compile(r"\W*(?:no|nope|nein|não|non|нет|いいえ)(?!\w)"),
)
_ITEM = re.compile(r"[ \t]{0,40}(?:[-*+•・●]|\d{1,3}[.)]|#{1,6})[ \t]+")
_END = re.compile(r"(?:(?<![.!?…])[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]+[」』）]?)\s*")
_NOUN = re.compile(
    r"\b(?:order|parcel|package|shipment|delivery|invoice|ticket|booking|reservation|case|room|flight|account|customer|"
    r"product|item|article|number|no\.?|id|bestellung|rechnung|sendung|commande|pedido) $|注文$"
)
"""Nouns that name an identifier. A verb in that place is part of the claim: "cancelled A-7"."""
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|cf|fig|approx|z\.b|d\.h|bzw|nr|ca|inc|ltd|\w))\.$", re.IGNORECASE
)


def plain(text: str) -> str:
    """Return one form for texts that look the same: lower case, straight quotes, no markup, single blanks."""
    return " ".join(_MARKUP.sub(" ", unicodedata.normalize("NFKC", text).translate(_SIGNS)).casefold().split())


def bare(text: str) -> str:
    """Return `plain` without punctuation, except signs beside digits and question marks, which change the meaning."""
    return " ".join(re.sub(r"(?<!\d)[^\w\s?](?!\d)|(?<=\d)[.,](?=\s|$)", " ", plain(text)).split())


def tokens(text: str) -> list[Token]:
    """Return the figures and the significant words of a text, in order.

    Hiragana is grammar and left out. The noun of an identifier is also left out: "order A-7" is A-7.
    """
    text = plain(text)
    for pattern, instead in _PHRASES:
        text = pattern.sub(instead, text)
    found: list[Token] = []
    reached = 0
    for start, end, figure in figures_at(text):
        found += _words(text[reached:start])
        if figure.kind == "id" and found and _names_identifier(text[reached:start]):
            found.pop()
        found.append(figure)
        reached = end
    return found + _words(text[reached:])


def figures(text: str) -> list[Figure]:
    """Return the figures of a text, in order."""
    return [figure for _, _, figure in figures_at(plain(text))]


def turns(text: str) -> list[str]:
    """Return the words that change the meaning of others: negations, exceptions, comparisons, order in time."""
    return _TURNING.findall(plain(text))


def without_courtesy(sentence: str) -> str:
    """Return what a sentence claims besides greetings, thanks and apologies, or "" for questions."""
    text = plain(sentence)
    return "" if _QUESTION.search(text) else " ".join(_COURTESY.sub(" ", text).split())


def leading(text: str) -> bool | None:
    """Return True if a text begins with yes, False if with no, None otherwise."""
    yes, no = (pattern.match(plain(text[:40])) for pattern in _LEADING)
    return True if yes else False if no else None


def asks(text: str) -> bool:
    """Return whether a text ends with a question."""
    return bool(_QUESTION.search(plain(text)))


def shown(token: Token) -> str:
    """Return a token as reasons show it."""
    return token if isinstance(token, str) else token.text


class Known:
    """Set of tokens with constant-time lookup. A figure is in it if one with the same meaning is."""

    def __init__(self, found: Iterable[Token]) -> None:
        self._words: set[str] = set()
        self._figures: dict[str | float, list[Figure]] = defaultdict(list)
        for token in found:
            if isinstance(token, str):
                self._words.add(token)
            else:
                for key in token.keys:
                    self._figures[key].append(token)

    def __contains__(self, token: Token) -> bool:
        if isinstance(token, str):
            return token in self._words
        return any(token.same(other) for key in token.keys for other in self._figures.get(key, ()))


def sentences(text: str) -> list[str]:
    """Split a text into sentences, in time linear in its length. Lines and list items end sentences too."""
    found: list[str] = []
    for line in text.splitlines():
        line = line[match.end() :] if (match := _ITEM.match(line)) else line
        start = 0
        for end in _END.finditer(line):
            if end.group()[0] != "." or not _ABBREVIATION.search(line[max(start, end.start() - 8) : end.start() + 1]):
                found.append(line[start : end.end()])
                start = end.end()
        found.append(line[start:])
    return [sentence for piece in found if (sentence := piece.strip())]


def leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each plain value inside a JSON value with its key. null is left out."""
    left = [("", value)]
    while left:
        key, item = left.pop()
        if isinstance(item, Mapping):
            left.extend((str(name), inner) for name, inner in item.items())
        elif isinstance(item, list | tuple):
            left.extend((key, inner) for inner in item)
        elif item is not None:
            yield key, item


def _words(text: str) -> list[Token]:
    words = (_stem(word) for word in _WORD.findall(_TURNING.sub(" ", text)) if word not in _SMALL)
    return [_SYNONYMS.get(word, word) for word in words]


def _names_identifier(before: str) -> bool:
    """Return whether the text before an identifier ends with the noun for it."""
    return _NOUN.search(before[-40:]) is not None


def _stem(word: str) -> str:
    for ending, least in (("ing", 4), ("ed", 4), ("es", 4), ("s", 3), ("e", 4), ("d", 4)):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word


_SYNONYMS = {_stem(word): _stem(first) for word, first in _SAME.items()}
