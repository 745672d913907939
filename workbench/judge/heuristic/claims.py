"""Rules for hallucinations_v1: does the agent's knowledge support a sentence?

A sentence is looked up in the record of its order, invoice or the like: all tool calls of the turn with its identifier,
and their results. It is supported if all its figures and words are there. It is contradictory if the record has another
figure or `false` there. It is unsupported if one of its figures or names is in no record. Everything else is unclear,
which hallucinations_v1 reads as no label.
"""

import calendar
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.judge.heuristic.figures import Figure, with_unit_of_key
from workbench.judge.heuristic.texts import Known, Token, figures, leaves, plain, shown, tokens, turns, without_courtesy

_SHORT = 4
"""Maximum words of a value that is looked up word by word. Rules do not understand longer texts."""
_LONGEST, _MOST_SENTENCES = 50_000, 200
_CALENDAR = frozenset(map(str.lower, (*calendar.day_name, *calendar.month_name)))
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w'-]+")
_ENGLISH = frozenset(("the", "is", "it", "was", "your", "you", "and", "for", "this", "are", "of"))


@dataclass(frozen=True, slots=True)
class Claim:
    """Label of a sentence: a label of hallucinations_v1, or `unclear`."""

    label: str
    rationale: str
    supporting_excerpt: str = ""
    contradicting_excerpt: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a tool's JSON with its key. `denied` marks a value such as `"paid": false`."""

    quote: str
    tokens: Sequence[Token]
    denied: bool = False


@dataclass
class _Record:
    """Arguments and results of a tool call."""

    tool: str
    values: list[Value] = field(default_factory=list)

    @property
    def tokens(self) -> list[Token]:
        return [token for value in self.values if not value.denied for token in value.tokens]

    @cached_property
    def known(self) -> Known:
        return Known(self.tokens)


class Evidence:
    """Knowledge of the agent at the time of a text. `context` has the shape of the question's data."""

    def __init__(self, context: Sequence[Mapping[str, Any]]) -> None:
        self.records: list[_Record] = []
        calls: dict[Any, _Record] = {}
        pieces = [piece for piece in context if piece.get("kind") != "tools"]
        for piece in pieces:
            kind, name = piece.get("kind"), str(piece.get("name") or "")
            key = piece.get("call_id") or name
            if kind == "call":
                calls[key] = _Record(name, list(_values(piece)))
            elif kind == "result":
                record = calls.pop(key) if key in calls else _Record(name)
                record.values += _values(piece)
                self.records.append(record)
        known = "\n".join(str(piece.get("text") or "") for piece in pieces)
        """The figures, for lookup."""
        self.words = frozenset(re.findall(r"\w+", plain(known)))
        self.figures = [token for record in self.records for token in record.tokens if isinstance(token, Figure)]
        self.figures += [figure for piece in pieces if piece.get("kind") not in ("call", "result")
                         for figure in figures(str(piece.get("text") or ""))]  # fmt: skip

    @cached_property
    def known(self) -> Known:
        """The figures, to look others up."""
        return Known(self.figures)

    def about(self, ids: list[Figure]) -> list[_Record]:
        """Return the records that contain one of the identifiers.

        Without identifiers, return all records, or none if a tool was called twice: it is unclear which result is
        meant.
        """
        if ids:
            return [record for record in self.records if any(each in record.known for each in ids)]
        twice = any(count > 1 for count in Counter(record.tool for record in self.records).values())
        return [] if twice else self.records


def label(sentences: Sequence[str], context: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return a claim for each sentence."""
    if len(sentences) > _MOST_SENTENCES or sum(len(str(piece.get("text"))) for piece in context) > _LONGEST:
        return [Claim("unclear", "the text or its context is too long for rules")] * len(sentences)
    evidence = Evidence(context)
    return [_label(sentence, evidence) for sentence in sentences]


def _label(sentence: str, evidence: Evidence) -> Claim:
    rest = without_courtesy(sentence)
    claimed = tokens(rest)
    if not claimed:
        return Claim("not_applicable", "a question, a courtesy, or nothing that can be looked up")
    own = [token for token in claimed if isinstance(token, Figure)]
    records = evidence.about([figure for figure in own if figure.kind == "id"])
    absent = next((figure for figure in own if figure not in evidence.known), None)
    if absent:
        return _absent(absent, claimed, records, evidence)
    name = _strange_name(sentence, evidence)
    if name:
        return Claim("unsupported", f"{name!r} is nowhere in the context")
    turning = turns(rest)
    return (
        Claim("unclear", f"rules cannot tell what {turning[0]!r} changes") if turning else _in_record(claimed, records)
    )


def _in_record(claimed: Sequence[Token], records: Sequence[_Record]) -> Claim:
    values = [value for record in records for value in record.values]
    there = _known(records)
    if any(isinstance(token, Figure) and token.kind != "id" and token in there for token in claimed):
        # A tool's name is the subject of its figures: the days of `track_parcel` are those of a parcel.
        there = _known(records, with_tools=True)
    missing = [token for token in claimed if token not in there]
    for value in values:
        if value.denied and missing and all(token in Known(value.tokens) for token in missing):
            return Claim("contradictory", "a tool result denies it", contradicting_excerpt=value.quote)
    if missing:
        return Claim("unclear", f"no tool result with its other words has {shown(missing[0])!r}")
    wanted = Known(claimed)
    best = max(values, key=lambda value: sum(_weight(token) for token in value.tokens if token in wanted))
    return Claim("supported", "all its figures and words are in the tool results", supporting_excerpt=best.quote)


def _known(records: Sequence[_Record], *, with_tools: bool = False) -> Known:
    found = [token for record in records for token in record.tokens]
    return Known([*found, *(token for record in records for token in tokens(record.tool) if with_tools)])


def _weight(token: Token) -> int:
    """Return the weight of a token: a figure counts more than a word or an identifier."""
    return 3 if isinstance(token, Figure) and token.kind != "id" else 1


def _absent(figure: Figure, claimed: Sequence[Token], records: Sequence[_Record], evidence: Evidence) -> Claim:
    """Return the label of a sentence with a figure that is nowhere in the context."""
    if figure.kind == "amount" and not figure.unit:
        return Claim("unclear", f"{figure.text!r} is nowhere in the context, and has no unit")
    others = [other for other in evidence.figures if other.comparable(figure)]
    if not others:
        return Claim("unsupported", f"{figure.text!r} is nowhere in the context")
    there = _known(records, with_tools=True)
    rest = [token for token in claimed if token != figure]
    if len({other.values for other in others}) == 1 and rest and all(token in there for token in rest):
        quotes = (value.quote for record in records for value in record.values if others[0] in Known(value.tokens))
        quote = next(quotes, "")
        if quote:
            return Claim("contradictory", f"the tools say {others[0].text!r}", contradicting_excerpt=quote)
    return Claim("unclear", f"{figure.text!r} is nowhere in the context, and may follow from other figures")


def _strange_name(sentence: str, evidence: Evidence) -> str:
    """Return a name that the context does not contain. Only for English: other languages capitalise more than names."""
    if not _ENGLISH & set(plain(sentence).split()):
        return ""
    names = (name for name in _NAME.findall(sentence) if plain(name) not in {"i", "i'm", "i'll", "i've", *_CALENDAR})
    return next((name for name in names if not set(re.findall(r"\w+", plain(name))) <= evidence.words), "")


def _values(piece: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the values of a piece of JSON that rules understand."""
    text = str(piece.get("text") or "")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    for key, item in leaves(value):
        quote = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(item, ensure_ascii=False)}" if key else str(item)
        name = plain(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key))
        if isinstance(item, bool):
            yield Value(quote, tokens(name), denied=not item)
        elif isinstance(item, str) and (len(item.split()) > _SHORT or turns(item)):
            yield Value(quote, figures(item))
        else:
            claimed = with_unit_of_key(name, str(item)) if isinstance(item, int | float) else str(item)
            yield Value(quote, [*tokens(claimed), *tokens(name)])
