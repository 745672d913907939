"""response_match_score: how many words do the agent's answer and the expected answer share?

A turn scores the F-measure of ROUGE-1, a case the mean of its turns. Stems come from the rouge_score package and the
F-measure uses its formula, so scores equal ADK's to the last bit. This module splits and counts words itself, because
ADK spends most of its time there. Importing it is cheap: rouge_score is loaded with the first score.

Text of thoughts counts, as in ADK. An answer without words scores 0, even if the expected answer has no words either.

Details of a turn: `precision`, `recall`, `f`; `matched` and `missing`, words of the expected answer as written;
`extra`, words of the agent's answer; `expected_marks` and `actual_marks`. Marks are the text cut into [piece, mark],
where mark is `same`, `missing` (expected), `extra` (actual) or `space` (between words); the joined pieces are the text.
Texts of more than `MAX_EXPLAINED` characters have no words and no marks; `unexplained` says why. Details of the case:
`turns`, their number, and `lowest_turn`, counted from 0.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from workbench.criteria.base import Scored, ScoreRequest, mean, scored_result, turn_pairs
from workbench.criteria.description import CriterionDescription
from workbench.criteria.json_difference import equal_pairs, lcs_pairs
from workbench.criteria.rouge_words import Word, rouge_words, stemmer, words_with_offsets
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import content_text
from workbench.text.json_values import string
from workbench.text.safe_text import one_line

MAX_STEMS = 100_000
MAX_EXPLAINED = 100_000
_WORDS_NAMED = 5
DESCRIPTION = CriterionDescription(
    name="response_match_score",
    title="Answer shares words",
    short_name="response match",
    short="resp",
    measures="How many words the final answer shares with the expected one (ROUGE-1, F-measure).",
    when_to_use="As a cheap check, without a judge, that an answer contains the facts of the reference. For answers "
    "that may be worded freely, use a judged criterion.",
    how_to_read="1 means the same words, 0 no words in common. Order does not matter, and word endings hardly do. "
    "A correct paraphrase often scores 0.4 to 0.7. A turn without an expected answer scores 0.",
    score="workbench.criteria.response_match:score",
    cause="workbench.criteria.response_match:answer_cause",
    needs_reference=True,
    scenarios="no",
    looks_at=frozenset({"answer"}),
    shown_in=frozenset({"words"}),
    presets=MappingProxyType({"regression in CI": 0.8}),
)


class Rouge(NamedTuple):
    """ROUGE-1 of one pair of texts."""

    precision: float
    recall: float
    f: float


def rouge_1(expected: str, actual: str) -> Rouge:
    """Return precision, recall and F-measure of the common words. A word counts as often as both texts contain it."""
    reference = (_cached_counts if len(expected) <= 20_000 else _counts)(expected)
    left = dict(reference)
    got = _stems(actual)
    shared = 0
    for stem in got:
        if left.get(stem):
            left[stem] -= 1
            shared += 1
    precision = shared / max(len(got), 1)
    recall = shared / max(reference.total(), 1)
    # In the order of rouge_score's `scoring.fmeasure`, whose module would import numpy.
    f_measure = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return Rouge(precision, recall, f_measure)


def score(request: ScoreRequest) -> Scored:
    """Score each turn and their mean, and record which words matched.

    Raises:
        NotScorableError: There is no reference, or the two conversations differ in length.
    """
    criterion = request.criterion
    turns = tuple(_turn(criterion, expected, actual) for expected, actual in turn_pairs(request))
    scores = [turn.score for turn in turns if turn.score is not None]
    overall = mean(scores)
    details: dict[str, Any] = {"turns": len(turns)}
    reason = ""
    if scores:
        lowest = details["lowest_turn"] = scores.index(min(scores))
        reason = turns[lowest].reason
        if reason and len(turns) > 1:
            reason = f"turn {lowest + 1}: {reason}"
    return Scored(scored_result(criterion, overall, reason, details), turns)


def _turn(criterion: Criterion, expected: dict[str, Any], actual: dict[str, Any]) -> MetricResult:
    wanted, got = (content_text(invocation.get("final_response")) for invocation in (expected, actual))
    rouge = rouge_1(wanted, got)
    details = {**rouge._asdict(), **explain(wanted, got)}
    return scored_result(criterion, rouge.f, "" if rouge.f == 1.0 else _reason(details), details)


def explain(expected: str, actual: str) -> dict[str, Any]:
    """Return the words and marks for the details of a turn, as the module describes them."""
    if max(len(expected), len(actual)) > MAX_EXPLAINED:
        note = f"a text of more than {MAX_EXPLAINED:,} characters is scored, but not explained word by word"
        names = ("matched", "missing", "extra", "expected_marks", "actual_marks")
        return {**{name: [] for name in names}, "unexplained": note}
    wanted, got = words_with_offsets(expected), words_with_offsets(actual)
    stems = [_STEMS[word.text] for word in wanted], [_STEMS[word.text] for word in got]
    # Words in the same order are matched first, then any others as often as the score counts them.
    pairs = lcs_pairs(*stems)
    pairs += equal_pairs(*stems, pairs).items()
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    return {
        "matched": [expected[word.start : word.end] for index, word in enumerate(wanted) if index in rows],
        "missing": [expected[word.start : word.end] for index, word in enumerate(wanted) if index not in rows],
        "extra": [actual[word.start : word.end] for index, word in enumerate(got) if index not in columns],
        "expected_marks": _marks(expected, wanted, rows, "missing"),
        "actual_marks": _marks(actual, got, columns, "extra"),
    }


def _marks(text: str, found: Sequence[Word], matched: set[int], other: str) -> list[list[str]]:
    """Cut the text into [piece, mark]. Adjacent words with the same mark form one piece."""
    spans: list[tuple[int, int, str]] = []
    for index, word in enumerate(found):
        start, end, mark = word.start, word.end, "same" if index in matched else other
        while spans and (start < spans[-1][1] or (start == spans[-1][1] and mark == spans[-1][2])):
            before = spans.pop()
            start, mark = before[0], before[2] if before[2] == mark else other
        spans.append((start, end, mark))
    pieces: list[list[str]] = []
    reached = 0
    for start, end, mark in spans:
        if start > reached:
            pieces.append([text[reached:start], "space"])
        pieces.append([text[start:end], mark])
        reached = end
    return pieces if reached == len(text) else [*pieces, [text[reached:], "space"]]


def _reason(details: dict[str, Any]) -> str:
    if "unexplained" in details:
        return str(details["unexplained"])
    matched, missing, extra = (details[key] for key in ("matched", "missing", "extra"))
    expected = len(matched) + len(missing)
    if not expected:
        return "the expected answer has no words, so the score is always 0"
    if not matched and not extra:
        return f"the agent's answer has no words; expected {expected}"
    parts = [f"{len(matched)} of {expected} expected words found"]
    if missing:
        parts.append(f"{len(missing)} missing ({_some(missing)})")
    if extra:
        parts.append(f"{len(extra)} not expected ({_some(extra)})")
    return ", ".join(parts)


def _some(found: Sequence[str]) -> str:
    named = ", ".join(one_line(word, limit=30) for word in found[:_WORDS_NAMED])
    return f"{named}, …" if len(found) > _WORDS_NAMED else named


class _Stems(dict[str, str]):
    """Cache of the form in which a word is compared: the Porter stem of an ASCII word, other words unchanged.

    Stemming takes nine tenths of rouge_score's time, and words recur.
    """

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_STEMS:
            self.clear()
        stem = self[word] = stemmer()(word) if word.isascii() else word
        return stem


_STEMS = _Stems()


def _stems(text: str) -> list[str]:
    return list(map(_STEMS.__getitem__, rouge_words(text)))


def _counts(text: str) -> Counter[str]:
    return Counter(_stems(text))


# The same reference recurs with each repeat and each save.
_cached_counts = lru_cache(maxsize=512)(_counts)


_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|oktober|nov(?:ember)?|dec(?:ember)?|dezember)"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|yesterday|heute|morgen|gestern"
_CURRENCY = r"(?:[$€£¥₹]|\b(?:usd|eur|gbp|jpy|chf|euros?|dollars?|pounds?|yen|cents?)\b|円|ユーロ|ドル)"
_NUMBER = r"\d{1,20}(?:[.,:]\d{1,20}){0,4}"
"""All repetitions have limits, because a text may be long and of any form."""
_NAME = r"(?-i:(?<=[\w,;] )(?!I['’])[A-Z][\w'’-]{1,60})"
"""A capitalised word inside a sentence. In a text with many of them, as in German, they are no names."""
_KINDS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (missing, other, re.compile(pattern, re.IGNORECASE))
    for missing, other, pattern in (
        ("a link", "another link", r"https?://\S+|\bwww\.\S+|[\w.+-]{1,64}@[\w-]+\.[\w.-]+"),
        (
            "a date",
            "another date",
            rf"\b\d{{4}}-\d\d?-\d\d?\b|\b\d\d?[./]\d\d?[./]\d{{2,4}}\b|\b\d\d?(?:st|nd|rd|th|\.)?(?: of)? {_MONTH}\b"
            rf"(?:,? \d{{4}})?|\b{_MONTH}\.? \d\d?(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\d\d?月\d\d?日|\b(?:{_DAY})\b",
        ),
        ("a time", "another time", r"\b\d\d?:\d\d(?::\d\d)?(?: ?[ap]m\b)?|\b\d\d? ?(?:[ap]m|uhr)\b|\d\d?時"),
        ("an amount", "another amount", rf"{_CURRENCY} ?{_NUMBER}|{_NUMBER} ?{_CURRENCY}|{_NUMBER} ?(?:%|percent\b)"),
        ("an id", "another id", r"\b[a-z]+[-_]?\d[\w-]*"),
        ("a number", "another number", _NUMBER),
        ("a name", "another name", _NAME),
        ("a negation", "another negation", r"\b(?:not|no|never|none|cannot|nicht|kein\w*|nie)\b|\b\w+n['’]t\b"),
    )
)
"""Kinds of facts, the most informative first: the words if one is missing, those if it differs, and the pattern."""
_FILL_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for with from that this these those you your our their its his her was were are has have had been "
        "will would can could may should shall please also then than there here but about into over out any all some "
        "more very der die das und für mit von ist sind hat haben wird den dem ein eine einen ihr ihre sie",
    )
)
"""Common words, whose absence does not explain a failure."""
_MOST = 0.8
"""The share of common words from which on one of two answers says more than the other."""


def answer_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `answer lacks a date`, `answer has another amount`, `answer is worded differently` and the like, or "".

    ROUGE-1 knows which words are missing, not what they mean. So a cause names a link, date, time, amount, id, number,
    name or negation of the expected text that has a missing word. Otherwise, it names one or two missing words, or says
    how much the answers have in common.
    """
    failed = next((turn for turn in turns if turn.status == "failed"), None)
    if failed is None or "matched" not in failed.details:
        return ""
    details = failed.details
    matched, missing, extra = (len(details[key]) for key in ("matched", "missing", "extra"))
    if details.get("unexplained"):
        return "answer is too long to compare by word"
    if not matched and not extra:
        return "answer is empty"
    if not matched and not missing:
        return "expected answer is empty"
    recall, precision = matched / (matched + missing), matched / max(matched + extra, 1)
    if recall < 0.25:
        return "answer shares few words with the expected one"
    share = "answer says less than expected" if precision >= _MOST else "answer is worded differently"
    share = "answer says more than expected" if recall >= _MOST else share
    return _fact(details) or _words(details["missing"]) or share


def _words(missing: Sequence[str]) -> str:
    """Return a cause that names the missing words, or "" if only common words are missing, or too many."""
    telling = dict.fromkeys(word for word in map(str.lower, missing) if len(word) > 2 and word not in _FILL_WORDS)
    return f"answer lacks {', '.join(f'“{word}”' for word in telling)}" if 0 < len(telling) <= 2 else ""


def _fact(details: dict[str, Any]) -> str:
    """Return a cause that names the first kind of fact with a missing word, or ""."""
    expected = _Marked(details["expected_marks"], "missing")
    for missing, other, pattern in _KINDS:
        if expected.has(pattern) and not (missing == "a name" and expected.share(pattern) > 0.25):
            actual = _Marked(details["actual_marks"], "extra")
            return f"answer has {other}" if actual.has(pattern) else f"answer lacks {missing}"
    return ""


class _Marked:
    """A text, and the places of its pieces with a given mark."""

    def __init__(self, marks: Sequence[Sequence[str]], mark: str) -> None:
        self._text = "".join(string(piece) for piece, _ in marks)
        self._starts: list[int] = []
        self._ends: list[int] = []
        place = 0
        for piece, own in marks:
            if own == mark:
                self._starts.append(place)
                self._ends.append(place + len(piece))
            place += len(piece)

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a match of the pattern overlaps a marked piece."""
        return bool(self._starts) and any(map(self._is_marked, pattern.finditer(self._text)))

    def share(self, pattern: re.Pattern[str]) -> float:
        """Return the share of the text's words that match."""
        return sum(1 for _ in pattern.finditer(self._text)) / max(len(self._text.split()), 1)

    def _is_marked(self, match: re.Match[str]) -> bool:
        number = bisect_left(self._starts, match.end()) - 1
        return number >= 0 and self._ends[number] > match.start()
