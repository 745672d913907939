"""final_response_match by rules: does an answer say what the reference says?

In this order: empty and equal texts; yes against no; quantities of the reference that the answer misses or has
otherwise; refusals; clauses that one affirms and the other denies; names; at last the share of the reference's words
that the answer has. What the question already says need not be said again.
"""

import re
from dataclasses import dataclass

from workbench.judge.heuristic.languages import language
from workbench.judge.heuristic.polarity import clauses, disagreements, leading
from workbench.judge.heuristic.quantities import Known, Quantity, quantities, without_quantities
from workbench.judge.heuristic.words import bare, every_word, plain

ENOUGH_WORDS = 0.34
"""Share of the reference's content words that must be in the answer where nothing else speaks for or against it."""
ENOUGH_WORDS_WITH_FIGURES = 0.2
"""The same where all figures of the reference are in the answer."""

FEW_WORDS = 2
"""A reference with a new figure and no more new words than this is about the figure."""

_BETWEEN_ITEMS = re.compile(r"\s*(?:[,;、，]|\b(?:and|or|und|oder|y|et|e|ou)\b)\s*")
_LEAST_ITEMS = 3
_LONGEST_ITEM = 3
_REFUSAL = re.compile(
    r"\b(?:i (?:cannot|can't|could not|couldn't|am unable to|do not know|don't know|am not able to)|unable to)\b"
    r"|\bno access\b"
    r"|\bich (?:kann|weiß) (?:\w+ ){0,4}nicht\b|\bno (?:puedo|sé)\b|\bje ne (?:peux|sais) pas\b|\bnão (?:posso|sei)\b"
    r"|わかりません|分かりません|できかねます|お答えできません|无法|不知道"
)
_NAME = re.compile(r"(?<![.!?:\n\w\"'(])[ \t]([A-ZÀ-ÖØ-ÞА-Я][\w'-]+)")


@dataclass(frozen=True, slots=True)
class Comparison:
    valid: bool
    reason: str


def compare(user: str, response: str, reference: str) -> Comparison:
    """Whether `response` serves the one who asked `user` as `reference` does."""
    answered, expected = bare(response), bare(reference)
    if not expected or not answered:
        same_emptiness = not expected and not answered
        return Comparison(same_emptiness, "both are empty" if same_emptiness else "one of the two is empty")
    if answered == expected:
        return Comparison(True, "the same text, but for case, blanks and punctuation")
    for rule in (_yes_and_no, _refusals, _figures, _said_otherwise, _items, _names):
        reason = rule(user, response, reference)
        if reason:
            return Comparison(False, reason)
    if f" {expected} " in f" {answered} ":
        return Comparison(True, "the answer holds the reference word for word")
    if _plain_yes_or_no(response, reference):
        return Comparison(True, "it says yes or no as the reference does")
    return _by_words(user, response, reference)


def _yes_and_no(user: str, response: str, reference: str) -> str:
    here, there = leading(response), leading(reference)
    if here is not None and there is not None and here != there:
        return "one begins with yes and the other with no"
    return ""


def _refusals(user: str, response: str, reference: str) -> str:
    if _REFUSAL.search(plain(response)) and not _REFUSAL.search(plain(reference)):
        return "the answer says that it cannot tell, and the reference tells"
    return ""


def _figures(user: str, response: str, reference: str) -> str:
    """The first quantity of the reference that the answer should have and has not."""
    asked, had = Known(quantities(user)), quantities(response)
    given = Known(had)
    for quantity in quantities(reference):
        if quantity in given or _hidden(quantity, had):
            continue
        others = [other for other in had if other.comparable(quantity) and other not in asked]
        if quantity in asked and not others:
            continue
        instead = f", and has {others[0].text!r}" if others else ""
        return f"the answer lacks {quantity.text!r}{instead}"
    return ""


def _hidden(quantity: Quantity, had: list[Quantity]) -> bool:
    """ "At seven" for 7 pm, or 7 pm for "at seven"."""
    hours = {int(key.split(":")[1]) % 12 for key in quantity.bare if key.startswith("clock:")}
    return any(f"n:{hour}" in other.bare and not other.unit for hour in hours for other in had)


def _said_otherwise(user: str, response: str, reference: str) -> str:
    alike, against = disagreements(list(clauses(reference)), list(clauses(response)))
    if against and against * 2 >= alike:
        return "one affirms what the other denies"
    return ""


def _items(user: str, response: str, reference: str) -> str:
    """The first item that the answer lacks, where the reference is a list."""
    pieces = [piece for piece in _BETWEEN_ITEMS.split(plain(reference).rstrip(".。")) if piece]
    if len(pieces) < _LEAST_ITEMS or any(len(piece.split()) > _LONGEST_ITEM for piece in pieces):
        return ""
    had = set(every_word(plain(response)))
    for piece in pieces:
        if had.isdisjoint(every_word(piece)) and not quantities(piece):
            return f"the answer lacks {piece!r} of the list"
    return ""


def _names(user: str, response: str, reference: str) -> str:
    """A name in the reference that the answer lacks while it has another one."""
    if language(reference) == "de" or language(response) == "de":
        return ""
    known = bare(user)
    there, here = capitals(reference, known), capitals(response, known)
    missing = [name for name in there if name not in bare(response)]
    if missing and len(missing) == len(there) and [name for name in here if name not in bare(reference)]:
        return f"the answer does not name {missing[0]!r}"
    return ""


def capitals(text: str, known: str) -> list[str]:
    """Names, as far as capital letters inside a sentence tell them (in German they do not)."""
    return [name for match in _NAME.findall(text) if (name := bare(match)) and name not in known]


def _plain_yes_or_no(response: str, reference: str) -> bool:
    """The answer begins with yes and the reference affirms, or with no and the reference denies."""
    says = leading(response)
    return says is not None and says == (not any(clause.denied for clause in clauses(reference)))


def _by_words(user: str, response: str, reference: str) -> Comparison:
    wanted = _words(without_quantities(reference))
    fresh = wanted - _words(user) or wanted or set(every_word(plain(reference)))
    had = _words(without_quantities(response)) | set(every_word(plain(response)))
    news = [quantity for quantity in quantities(reference) if quantity not in Known(quantities(user))]
    if news and len(fresh) <= FEW_WORDS:
        return Comparison(True, f"the answer has {news[0].text!r}, as the reference")
    if not fresh:
        return Comparison(bool(news), "all figures agree" if news else "there is nothing to compare")
    share = len(fresh & had) / len(fresh)
    enough = ENOUGH_WORDS_WITH_FIGURES if news else ENOUGH_WORDS
    spelled = f"{len(fresh & had)} of {len(fresh)} words that say something"
    return Comparison(share >= enough, f"the answer shares {spelled} with the reference")


def _words(text: str) -> set[str]:
    """The words that carry a text, opposites as what they deny."""
    return {word for clause in clauses(text) for word in clause.words}
