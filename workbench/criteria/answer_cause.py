"""The cause of a failed comparison of words: the first kind of fact that the answer lacks, without its value.

ROUGE-1 knows which words are missing, not what they mean. So a cause names only what can be seen in the expected text:
a link, date, time, amount, id, number, name or negation that has a missing word. Without any of them, one or two
missing words are named, and the shares of common words tell how other answers differ.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from workbench.events.events import MetricResult
from workbench.text.json_values import string

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
_MANY_NAMES = 0.25
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
"""Kinds of facts, the most telling first: the words for a missing one, those for another one, and the pattern."""
_FILL_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for with from that this these those you your our their its his her was were are has have had been "
        "will would can could may should shall please also then than there here but about into over out any all some "
        "more very der die das und für mit von ist sind hat haben wird den dem ein eine einen ihr ihre sie",
    )
)
"""Words whose absence tells nothing."""
_WORDS_NAMED = 2
_FEW, _MOST = 0.25, 0.8
"""Shares of common words."""


def answer_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `answer lacks a date`, `answer has another amount`, `answer is worded differently` and the like, or ""."""
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
    if recall < _FEW:
        return "answer shares few words with the expected one"
    return _fact(details) or _words(details["missing"]) or _shares(recall, precision)


def _words(missing: Sequence[str]) -> str:
    """Return the missing words that tell something, or "" if there are none, or too many."""
    telling = dict.fromkeys(word for word in map(str.lower, missing) if len(word) > 2 and word not in _FILL_WORDS)
    return f"answer lacks {', '.join(f'“{word}”' for word in telling)}" if 0 < len(telling) <= _WORDS_NAMED else ""


def _shares(recall: float, precision: float) -> str:
    if recall >= _MOST:
        return "answer says more than expected"
    return "answer says less than expected" if precision >= _MOST else "answer is worded differently"


def _fact(details: dict[str, Any]) -> str:
    """Return the first kind of fact that has a missing word, or ""."""
    expected = _Marked(details["expected_marks"], "missing")
    for missing, other, pattern in _KINDS:
        if expected.has(pattern) and not (missing == "a name" and expected.share(pattern) > _MANY_NAMES):
            actual = _Marked(details["actual_marks"], "extra")
            return f"answer has {other}" if actual.has(pattern) else f"answer lacks {missing}"
    return ""


class _Marked:
    """A text with the places of its pieces that have one mark."""

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
