"""claims by rules: is a sentence supported by what the agent knew?

A sentence is laid beside the passages that share most words and quantities with it. It is contradicted where a passage
about the same thing has another figure, or denies what the sentence affirms; supported where all its figures and enough
of its words are found; else unsupported. `disputed` is never said: that takes understanding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.judge.heuristic.courtesy import claims_nothing
from workbench.judge.heuristic.evidence import Evidence, Group, Passage
from workbench.judge.heuristic.polarity import Clause, clauses, disagreements
from workbench.judge.heuristic.quantities import Quantity, quantities, without_quantities

ENOUGH = 0.5
"""Share of a sentence's words, weighted by how rare they are, that the best group of passages must have."""

ENOUGH_TOGETHER = 0.65
"""The same for the few best groups together: the answer may join what two tools returned."""

_NEAR = 3
_FIGURE_WEIGHT = 2.0
_OTHER_SCRIPT = 0.25
"""Words of a Japanese answer are hardly found in English records: there the figures have to tell."""
_ONE_FACT = 2
"""A passage of so few words is about nothing else than what it shares with the sentence."""

Label = Literal["supported", "unsupported", "contradictory", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Claim:
    label: Label
    rationale: str
    supporting: str = ""
    contradicting: str = ""


@dataclass(frozen=True, slots=True)
class _Sentence:
    words: frozenset[str]
    quantities: tuple[Quantity, ...]
    clauses: tuple[Clause, ...]


def label(sentences: Sequence[str], context: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """A claim for each sentence; `context` is in the shape of the question's data."""
    evidence = Evidence(context)
    return [_label(sentence, evidence) for sentence in sentences]


def _label(text: str, evidence: Evidence) -> Claim:
    nothing = claims_nothing(text)
    if nothing:
        return Claim("not_applicable", nothing)
    sentence = _read(text)
    candidates = evidence.candidates(sentence.words, sentence.quantities)
    scored = sorted(((_score(sentence, group, evidence), group) for group in candidates), key=lambda pair: -pair[0])
    if not scored:
        return Claim("unsupported", "no passage shares a word or a figure with it")
    share, group = scored[0]
    denied = _denial(sentence, group)
    if denied is not None:
        return Claim("contradictory", "a passage on the same thing says the opposite", contradicting=denied.quote)
    missing = [quantity for quantity in sentence.quantities if not any(quantity in other.known for _, other in scored)]
    for quantity in missing:
        other = _other_figure(sentence, quantity, [group for _, group in scored[:_NEAR]])
        if other is not None:
            reason = f"{quantity.text!r} is not in the context, and a passage on the same thing has another figure"
            return Claim("contradictory", reason, contradicting=other.quote)
    if missing:
        return Claim("unsupported", f"{missing[0].text!r} is not in the context")
    best = _closest(sentence, group)
    near = [group for _, group in scored[:_NEAR]]
    together = _score(sentence, Group([passage for group in near for passage in group.passages]), evidence)
    if share >= ENOUGH or together >= ENOUGH_TOGETHER:
        share = max(share, together)
        return Claim("supported", f"its figures and {share:.0%} of its words are there", supporting=best.quote)
    return Claim("unsupported", f"only {share:.0%} of its words are found together in the context")


def _read(text: str) -> _Sentence:
    said = tuple(clauses(without_quantities(text)))
    words: frozenset[str] = frozenset().union(*(clause.words for clause in said))
    return _Sentence(words, tuple(quantities(text)), tuple(clauses(text)))


def _score(sentence: _Sentence, group: Group, evidence: Evidence) -> float:
    """The weighted share of the sentence's words and quantities that a group has."""
    total = found = 0.0
    comparable = _latin(sentence.words) or not _latin(group.words)
    for word in sentence.words:
        weight = evidence.weight(word) * (1.0 if comparable else _OTHER_SCRIPT)
        total += weight
        found += weight if word in group.words else 0.0
    for quantity in sentence.quantities:
        total += _FIGURE_WEIGHT
        found += _FIGURE_WEIGHT if quantity in group.known else 0.0
    share = found / total if total else 0.0
    return share if group.first_hand else share * 0.8


def _latin(words: frozenset[str]) -> bool:
    """Whether all words are in the Latin alphabet (without accents, as stems are)."""
    return all(word.isascii() for word in words)


def _closest(sentence: _Sentence, group: Group) -> Passage:
    def shared(passage: Passage) -> int:
        found = [quantity for quantity in sentence.quantities if any(map(quantity.same, passage.quantities))]
        figures = sum(1 if quantity.kind == "id" else 3 for quantity in found)
        return figures + len(sentence.words & passage.words)

    return max(group.passages, key=shared)


def _denial(sentence: _Sentence, group: Group) -> Passage | None:
    """A passage that denies what the sentence affirms, or the other way round."""
    for passage in group.passages:
        if not sentence.words & passage.words:
            continue
        alike, against = disagreements(list(sentence.clauses), list(passage.clauses))
        if against and against >= alike and (alike or len(passage.words) <= _ONE_FACT):
            return passage
    return None


def _other_figure(sentence: _Sentence, quantity: Quantity, groups: list[Group]) -> Passage | None:
    """A passage that has another figure where the sentence has this one: it shares words with the sentence, and the
    figure measures the same, or does not say what it measures."""
    best: tuple[int, Passage] | None = None
    for group in groups:
        for passage in group.passages:
            shared = len(sentence.words & passage.words)
            for other in passage.quantities:
                close = other.comparable(quantity) and (shared or quantity.unit)
                loose = other.kind == quantity.kind and not (other.unit and quantity.unit) and shared
                if (close or loose) and (best is None or shared > best[0]):
                    best = (shared, passage)
    return best[1] if best else None
