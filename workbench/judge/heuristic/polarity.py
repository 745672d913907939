"""Whether a clause says that something is so, or that it is not."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.judge.heuristic.languages import PREPOSITIONS, language
from workbench.judge.heuristic.synonyms import OPPOSITES
from workbench.judge.heuristic.words import plain, same, stem, words_at

_NEGATORS = {
    "en": r"\b(?:not|no|never|none|nothing|nobody|neither|nor|cannot|without|nowhere|\w+n't)\b",
    "de": r"\b(?:nicht|kein\w*|nie|niemals|nichts|ohne|weder|nein)\b",
    "es": r"\b(?:no|nunca|jamás|ning[uú]n\w*|nada|sin|tampoco)\b",
    "fr": r"\b(?:ne|pas|jamais|aucune?|sans|rien|non)\b|\bn'",
    "pt": r"\b(?:não|nunca|nenhum\w*|sem|nem|nada)\b",
    "it": r"\b(?:non|nessun\w*|senza|niente)\b",
    "nl": r"\b(?:niet|geen|nooit|niets|zonder|nee)\b",
    "ru": r"\b(?:не|нет|никогда|без|ни)\b",
    "ja": r"ない|ません|なかった|なく|ずに|不可|なし\b|無し|いいえ",
    "zh": r"不|没|无|未|别",
    "ko": r"않|없|못|아니|(?<!\w)안 ",
}
_HARMLESS = {
    "en": r"\bnot only\b|\bno (?:later|more|less|fewer|longer|earlier|other) than\b|\bnot more than\b"
    r"|\bno(?:t a)? problems?\b|\bwithout (?:any )?problems?\b|\bno matter\b|\bno doubt\b|\bno worries\b",
    "de": r"\bnicht nur\b|\bkein problem\b|\bohne probleme\b",
    "es": r"\bno (?:solo|sólo)\b|\bsin problemas?\b",
    "fr": r"\bsans problème\b|\bpas de problème\b",
    "ja": r"(?:申し訳|もうしわけ)(?:あり|ござい)ません|すみません|少ない|かもしれ(?:ない|ません)"
    r"|なければなりません|(?:問題|間違い)(?:ない|ありません)",
    "zh": r"不久|不过|不但|不仅|无论|未来|不错|不客气|特别|没问题|别人",
}
_CLAUSE = re.compile(
    r"[.!?;:,。！？、，；\n]+|\b(?:but|however|although|aber|pero|mais|mas|ma|но)\b|(?:ですが|ますが|けど|但是?)"
)
_YES = re.compile(r"\W*(?:yes|yeah|sure|certainly|of course|ja|sí|si|oui|sim|sì|да|はい|ええ|有|是的?|네|예)(?!\w)")
_NO = re.compile(r"\W*(?:no|nope|nein|non|não|нет|いいえ|没有|不是?|아니\w*|nee)(?!\w)")
_OPPOSITE = {stem(word): same(stem(yes)) for yes, noes in OPPOSITES for word in noes.split()}
_UNKNOWN = rf"{_NEGATORS['en']}|{_NEGATORS['de']}"
_OPPOSED = frozenset(_OPPOSITE.values())
_WEIGHT_OF_OPPOSITES = 2
_AT_THE_END = ("ja", "ko")
_REACH = 3
_NEAR = 12


@dataclass(frozen=True, slots=True)
class Clause:
    """The content words of a clause, opposites replaced by what they deny, and which of them it denies."""

    words: frozenset[str]
    denied: frozenset[str]


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of a text that have content words."""
    tongue = language(text)
    for piece in _CLAUSE.split("\n".join(map(plain, text.splitlines()))):
        if piece and (clause := _clause(piece, tongue)).words:
            yield clause


def _clause(piece: str, tongue: str) -> Clause:
    found = list(words_at(piece))
    reached = _reached(piece, found, tongue)
    words: set[str] = set()
    denied: set[str] = set()
    for at, word, small in found:
        if small:
            continue
        positive = _OPPOSITE.get(word, word)
        words.add(positive)
        if (at in reached) != (positive != word):
            denied.add(positive)
    return Clause(frozenset(words), frozenset(denied))


def _reached(piece: str, found: list[tuple[int, str, bool]], tongue: str) -> set[int]:
    """Where the words stand that a negation of the clause is about: the next few after it, up to a preposition, and
    where none follows, or in languages that deny at the end, the last ones before it."""
    harmless = _HARMLESS.get(tongue)
    if harmless:
        piece = re.sub(harmless, lambda match: " " * len(match.group()), piece)
    pattern = re.compile(_NEGATORS.get(tongue) or _UNKNOWN)
    starts = [at for at, _, _ in found]
    reached: set[int] = set()
    for negation in pattern.finditer(piece):
        after = [] if tongue in _AT_THE_END else _next(found, bisect_left(starts, negation.end()))
        reached.update(after or _last(found, bisect_left(starts, negation.start())))
    return reached


def _next(found: list[tuple[int, str, bool]], first: int) -> list[int]:
    taken: list[int] = []
    for at, word, small in found[first : first + _NEAR]:
        if taken and (len(taken) == _REACH or word in PREPOSITIONS):
            break
        if not small:
            taken.append(at)
    return taken


def _last(found: list[tuple[int, str, bool]], end: int) -> list[int]:
    return [at for at, _, small in found[max(0, end - _NEAR) : end] if not small][-_REACH:]


def leading(text: str) -> bool | None:
    """True for a text that begins with yes, False with no, None with neither."""
    text = plain(text[:60])
    return True if _YES.match(text) else False if _NO.match(text) else None


def disagreements(one: list[Clause], other: list[Clause]) -> tuple[int, int]:
    """(shared words that both say alike, those that one affirms and the other denies). A word that has an opposite
    weighs more than one that is denied by a negation beside it."""
    here, there = _said(one), _said(other)
    alike = against = 0
    for word, ways in here.items():
        if word not in there:
            continue
        weight = _WEIGHT_OF_OPPOSITES if word in _OPPOSED else 1
        if ways & there[word]:
            alike += weight
        else:
            against += weight
    return alike, against


def _said(some: list[Clause]) -> dict[str, set[bool]]:
    """In which ways each word is said: affirmed, denied or, in two clauses, both."""
    ways: dict[str, set[bool]] = {}
    for clause in some:
        for word in clause.words:
            ways.setdefault(word, set()).add(word in clause.denied)
    return ways
