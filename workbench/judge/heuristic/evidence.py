"""What an agent knew, cut into passages that can be quoted and looked up by word and by quantity."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from workbench.judge.heuristic.polarity import Clause, clauses
from workbench.judge.heuristic.quantities import Known, Quantity, quantities, without_quantities
from workbench.judge.heuristic.sentences import sentences
from workbench.judge.heuristic.words import content_words, plain

_LEAF = re.compile(r"(?P<key>\"(?:[^\"\\]|\\.)*\")\s*:\s*(?P<value>\S.*)|(?P<item>\"(?:[^\"\\]|\\.)*\"|[^\s,\[\]{}]+)")
_DENIED_VALUES = frozenset(("false", "null", '"no"', '"none"', '"false"', '"aucun"', '"nein"', '"keine"', '"いいえ"'))
_AFFIRMED_VALUES = frozenset(("true", '"yes"', '"true"', '"ja"', '"はい"'))
_TOGETHER = 12
"""Passages that are looked at as one: a record, a paragraph or two."""
_OPENINGS = frozenset(("{", "[", "{}", "[]"))
_SHORT = 20
"""So short is a value that is a number; its key may be its unit: `"days": 9`."""
_CANDIDATES = 40
_POSTINGS = 400
_RARE_WORDS = 8
_NOT_EVIDENCE = frozenset({"tools"})


@dataclass(frozen=True, slots=True)
class Passage:
    """`quote` stands in the context as it is."""

    quote: str
    words: frozenset[str]
    quantities: tuple[Quantity, ...]
    clauses: tuple[Clause, ...]


@dataclass(slots=True)
class Group:
    """Passages that stand together, or a tool call and its result. `first_hand` is False for what the user said."""

    passages: list[Passage]
    first_hand: bool = True
    words: frozenset[str] = field(default_factory=frozenset)
    known: Known = field(default_factory=lambda: Known(()))

    def __post_init__(self) -> None:
        self.words = frozenset().union(*(passage.words for passage in self.passages))
        self.known = Known(quantity for passage in self.passages for quantity in passage.quantities)


class Evidence:
    """All groups of a context, with an index. Making it takes time in proportion to its length; a look-up looks at no
    more than a fixed number of groups."""

    def __init__(self, context: Sequence[Mapping[str, Any]]) -> None:
        self.groups = list(_groups(context))
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_quantity: dict[str, list[int]] = defaultdict(list)
        self._by_unit: dict[str, list[int]] = defaultdict(list)
        for number, group in enumerate(self.groups):
            for word in group.words:
                self._by_word[word].append(number)
            for unit in {quantity.unit for passage in group.passages for quantity in passage.quantities}:
                self._by_unit[unit].append(number)
            for key in {key for passage in group.passages for quantity in passage.quantities for key in quantity.bare}:
                self._by_quantity[key].append(number)

    def weight(self, word: str) -> float:
        """A word that few groups have tells more than one that most have."""
        return math.log(2 + len(self.groups) / (1 + len(self._by_word.get(word, ()))))

    def candidates(self, words: Iterable[str], wanted: Sequence[Quantity]) -> list[Group]:
        """The groups that share most with a sentence, the best first; of words that nearly all have only the first
        groups that have them."""
        votes: Counter[int] = Counter()
        rare = sorted(words, key=lambda word: (len(self._by_word.get(word, ())), word))[:_RARE_WORDS]
        keys = [key for quantity in islice(wanted, _RARE_WORDS) for key in quantity.bare]
        for found in [self._by_word.get(word, []) for word in rare] + [self._by_quantity.get(key, []) for key in keys]:
            votes.update(found[:_POSTINGS])
        for unit in {quantity.unit for quantity in islice(wanted, _RARE_WORDS)} - {""}:
            for number in self._by_unit.get(unit, [])[:_CANDIDATES]:
                votes[number] += 0
        best = sorted(votes, key=lambda number: (-votes[number], number))[:_CANDIDATES]
        return [self.groups[number] for number in best]


def _groups(context: Sequence[Mapping[str, Any]]) -> Iterable[Group]:
    calls: dict[Any, list[Passage]] = {}
    for piece in context:
        kind, name, text = str(piece.get("kind")), str(piece.get("name") or ""), str(piece.get("text") or "")
        if kind in _NOT_EVIDENCE:
            continue
        passages = list(_passages(text))
        if kind == "call":
            calls[piece.get("call_id") or name] = [_passage(name, plain(name)), *passages]
        if kind == "result":
            passages = [*calls.get(piece.get("call_id") or name, [])[:_TOGETHER], *passages]
        for start in range(0, len(passages), _TOGETHER):
            yield Group(passages[start : start + _TOGETHER], first_hand=kind != "user")


def _passages(text: str) -> Iterable[Passage]:
    """Of JSON a line is a passage, of prose a sentence; a long text inside JSON is cut into sentences too."""
    if not text.lstrip().startswith(("{", "[")):
        for sentence in sentences(text):
            yield _passage(sentence, sentence)
        return
    for line in text.splitlines():
        line = line.strip().removesuffix(",")
        match = _LEAF.fullmatch(line)
        if match is None:
            continue
        key = _decoded(match["key"]) if match["key"] else ""
        value = match["value"] if match["key"] else match["item"]
        if value not in _OPENINGS:
            yield from _leaf(line, key, value)


def _leaf(quote: str, key: str, value: str) -> Iterable[Passage]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key)
    said = _decoded(value) if value.startswith('"') else value
    if value.casefold() in _AFFIRMED_VALUES:
        yield _passage(quote, name)
    elif value.casefold() in _DENIED_VALUES:
        yield _denied(quote, name)
    else:
        if quantities(said) and not quantities(said)[0].unit and len(said) < _SHORT:
            said = f"{said} {name}"
            yield _passage(quote, said)
            return
        cut = sentences(said)
        if len(cut) <= 1:
            yield _passage(quote, f"{name}: {said}")
        for sentence in cut if len(cut) > 1 else ():
            yield _passage(sentence if sentence in quote else quote, sentence)


def _decoded(value: str) -> str:
    try:
        return str(json.loads(value))
    except ValueError:
        return value.strip('"')


def _passage(quote: str, text: str) -> Passage:
    words = frozenset(content_words(without_quantities(text)))
    said = tuple(clauses(text))
    return Passage(quote, words.union(*(clause.words for clause in said)), tuple(quantities(text)), said)


def _denied(quote: str, name: str) -> Passage:
    words = frozenset(content_words(plain(name)))
    return Passage(quote, words, (), (Clause(words, words),))
