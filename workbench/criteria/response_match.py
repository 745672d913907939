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

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from workbench.criteria.alignment import lcs_pairs
from workbench.criteria.base import Scored, ScoreRequest, mean, status_of, turn_pairs
from workbench.criteria.description import CriterionDescription
from workbench.criteria.rouge_words import Word, rouge_words, stemmer, words_with_offsets
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import content_text
from workbench.text.safe_text import one_line

MAX_STEMS = 100_000
MAX_EXPLAINED = 100_000
_LONG_TEXT = 20_000
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
    cause="workbench.criteria.answer_cause:answer_cause",
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
    """Return the shares of common words. A word counts as often as both texts contain it."""
    reference = _cached_reference(expected) if len(expected) <= _LONG_TEXT else _reference(expected)
    left = dict(reference.counts)
    got = _stems(actual)
    shared = 0
    for stem in got:
        if left.get(stem):
            left[stem] -= 1
            shared += 1
    precision = shared / max(len(got), 1)
    recall = shared / max(reference.total, 1)
    return Rouge(precision, recall, _f_measure(precision, recall))


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
    status = status_of(overall, criterion.threshold)
    return Scored(MetricResult(criterion.name, status, overall, criterion.threshold, reason, details), turns)


def _turn(criterion: Criterion, expected: dict[str, Any], actual: dict[str, Any]) -> MetricResult:
    wanted, got = (content_text(invocation.get("final_response")) for invocation in (expected, actual))
    rouge = rouge_1(wanted, got)
    details = {**rouge._asdict(), **explain(wanted, got)}
    reason = "" if rouge.f == 1.0 else _reason(details)
    status = status_of(rouge.f, criterion.threshold)
    return MetricResult(criterion.name, status, rouge.f, criterion.threshold, reason, details)


def explain(expected: str, actual: str) -> dict[str, Any]:
    """Return `matched`, `missing`, `extra`, `expected_marks` and `actual_marks`, as described above."""
    if max(len(expected), len(actual)) > MAX_EXPLAINED:
        note = f"a text of more than {MAX_EXPLAINED:,} characters is scored, but not explained word by word"
        return {
            "matched": [],
            "missing": [],
            "extra": [],
            "expected_marks": [],
            "actual_marks": [],
            "unexplained": note,
        }
    wanted, got = words_with_offsets(expected), words_with_offsets(actual)
    rows, columns = _matches([_STEMS[word.text] for word in wanted], [_STEMS[word.text] for word in got])
    return {
        "matched": [expected[word.start : word.end] for index, word in enumerate(wanted) if index in rows],
        "missing": [expected[word.start : word.end] for index, word in enumerate(wanted) if index not in rows],
        "extra": [actual[word.start : word.end] for index, word in enumerate(got) if index not in columns],
        "expected_marks": _marks(expected, wanted, rows, "missing"),
        "actual_marks": _marks(actual, got, columns, "extra"),
    }


def _matches(expected: list[str], actual: list[str]) -> tuple[set[int], set[int]]:
    """Return which occurrences count as matched, as indexes on both sides.

    Words in the same order come first, then any others, until each word is matched as often as the score counts it.
    """
    pairs = lcs_pairs(expected, actual)
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    free: dict[str, list[int]] = defaultdict(list)
    for column in range(len(actual) - 1, -1, -1):
        if column not in columns:
            free[actual[column]].append(column)
    for row, word in enumerate(expected):
        if row not in rows and free.get(word):
            rows.add(row)
            columns.add(free[word].pop())
    return rows, columns


def _marks(text: str, found: Sequence[Word], matched: set[int], other: str) -> list[list[str]]:
    """Cut the text into [piece, mark]. Neighbours with the same mark and nothing between them are one piece."""
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


def _f_measure(precision: float, recall: float) -> float:
    """Compute the F-measure in the same order as rouge_score's `scoring.fmeasure`, whose module would import numpy."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


class _Stems(dict[str, str]):
    """Cache from a word to its compared form: the Porter stem of an ASCII word, other words unchanged.

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


class _Reference(NamedTuple):
    counts: Counter[str]
    total: int


def _reference(text: str) -> _Reference:
    counts = Counter(_stems(text))
    return _Reference(counts, counts.total())


# The same reference recurs with each repeat and each save.
_cached_reference = lru_cache(maxsize=512)(_reference)
