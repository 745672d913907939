"""Numbers, amounts, dates, times of day and identifiers, as values that compare across spellings and units."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from workbench.judge.heuristic.numerals import han_value, number_values
from workbench.judge.heuristic.units import (
    ARTICLES,
    MONEY,
    MONTHS,
    MULTIPLIERS,
    NUMBER_WORDS,
    UNITS,
)
from workbench.judge.heuristic.words import plain

QuantityKind = Literal["date", "clock", "amount", "id"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """`bare` are its possible values without their unit, `exact` with it (several where the spelling is ambiguous);
    `unit` is what an amount measures ("time", "eur") or the year of a date, "" where that is not said; `text` how it
    is written."""

    kind: QuantityKind
    bare: frozenset[str]
    exact: frozenset[str]
    unit: str
    text: str

    def same(self, other: "Quantity") -> bool:
        if self.unit and other.unit:
            return bool(self.exact & other.exact)
        return bool(self.bare & other.bare)

    def comparable(self, other: "Quantity") -> bool:
        """Whether a difference between the two is a contradiction rather than talk of two things."""
        if self.kind != other.kind or self.kind == "date":
            return self.kind == other.kind
        money = self.unit in MONEY and other.unit in MONEY
        return money or self.unit == other.unit


class Known:
    """Quantities, to look others up among them at once."""

    def __init__(self, quantities: Iterable[Quantity]) -> None:
        self._exact: set[str] = set()
        self._bare: set[str] = set()
        self._bare_without_unit: set[str] = set()
        for quantity in quantities:
            self._exact |= quantity.exact
            self._bare |= quantity.bare
            if not quantity.unit:
                self._bare_without_unit |= quantity.bare

    def __contains__(self, quantity: Quantity) -> bool:
        if not quantity.unit:
            return bool(quantity.bare & self._bare)
        return bool(quantity.exact & self._exact or quantity.bare & self._bare_without_unit)


_Found = Callable[[re.Match[str]], Quantity | None]
_MONTH = "|".join(f"(?P<m{n}>{names})" for n, names in enumerate(MONTHS, start=1))
_NUM = r"(?:\d{1,3}(?:[,.'\u00a0\u202f ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
_HAN = "[〇一二三四五六七八九十百千两兩]{1,8}"
_HAN_COUNTERS = "日|時|分|円|人|個|月|年|つ|回|名|泊|枚|本|週|か月|ヶ月|倍|度|天|元|个|小时|点|次|位|件|晚"
_UNIT = "|".join(f"(?P<u{n}>{form})" for n, (_, _, form) in enumerate(UNITS))
_ANY_UNIT = "|".join(form for _, _, form in UNITS)
_SYMBOLS = {"€": "eur", "$": "usd", "£": "gbp", "¥": "jpy"}
_MULTIPLIER = "|".join(
    sorted((re.escape(word) for word in MULTIPLIERS if len(word) > 1 or ord(word) > 255), key=len, reverse=True)
)
_COUNT = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_ONE = "|".join(sorted(ARTICLES, key=len, reverse=True))
_EDGE = r"(?![a-zà-ÿа-я])"


def quantities(text: str) -> list[Quantity]:
    """All of a text, in no particular order; takes time in proportion to its length."""
    return list(_quantities(text))


@lru_cache(maxsize=16)
def _quantities(text: str) -> tuple[Quantity, ...]:
    """Kept for a little while: the rules look at the same few texts again and again."""
    text = plain(text)
    found: list[Quantity] = []

    def take(reader: _Found) -> Callable[[re.Match[str]], str]:
        def replace(match: re.Match[str]) -> str:
            quantity = reader(match)
            if quantity is None:
                return match.group()
            found.append(quantity)
            return " " * len(match.group())

        return replace

    for pattern, reader in _READERS:
        text = pattern.sub(take(reader), text)
    return tuple(found)


def without_quantities(text: str) -> str:
    """The plain text, with blanks where quantities stood."""
    text = plain(text)
    for pattern, reader in _READERS:
        text = pattern.sub(lambda match, read=reader: " " if read(match) else match.group(), text)  # type: ignore[misc]
    return text


def _date(year: str | None, month: int, day: int, text: str, *, swap: bool = False) -> Quantity | None:
    pairs = [(month, day), (day, month)] if swap else [(month, day)]
    days = [(m, d) for m, d in pairs if 1 <= m <= 12 and 1 <= d <= 31]
    bare = frozenset(f"date:{m}-{d}" for m, d in days)
    exact = frozenset(f"date:{year}-{m}-{d}" for m, d in days)
    return Quantity("date", bare, exact, year or "", text.strip()) if days else None


def _iso(match: re.Match[str]) -> Quantity | None:
    return _date(match[1], int(match[2]), int(match[3]), match.group())


def _numeric(match: re.Match[str]) -> Quantity | None:
    """12.03.2025 has its day first; of 3/12/2025 nobody knows."""
    year = match[4] if len(match[4]) == 4 else f"20{match[4]}"
    return _date(year, int(match[3]), int(match[1]), match.group(), swap=match[2] == "/")


def _named(match: re.Match[str]) -> Quantity | None:
    month = next(n for n in range(1, 13) if match[f"m{n}"])
    return _date(match["year"], month, int(match["day"]), match.group())


def _clock(hours: int, minutes: int, half: str, text: str, *, loose: bool = False) -> Quantity | None:
    if half.startswith(("p", "午後", "下午", "오후")) and hours < 12:
        hours += 12
    elif half.startswith(("a", "午前", "上午", "오전")) and hours == 12:
        hours = 0
    if hours > 24 or minutes > 59:
        return None
    keys = {f"clock:{hours % 24}:{minutes}"}
    if loose and not half and hours <= 12:
        keys.add(f"clock:{(hours + 12) % 24}:{minutes}")
    return Quantity("clock", frozenset(keys), frozenset(), "", text.strip())


def _digital(match: re.Match[str]) -> Quantity | None:
    return _clock(int(match[1]), int(match[2]), match[3] or "", match.group())


def _asian(match: re.Match[str]) -> Quantity | None:
    minutes = 30 if match[3] in ("半", "半分") else int(match[3].rstrip("分")) if match[3] else 0
    hours = int(match[2]) if match[2].isdigit() else han_value(match[2])
    return _clock(hours, minutes, match[1] or "", match.group(), loose=True)


def _spoken(match: re.Match[str]) -> Quantity | None:
    word = match["hour"]
    hour = int(word) if word.isdigit() else int(NUMBER_WORDS[word])
    minutes = {"half past": 30, "quarter past": 15, "quarter to": 45}.get(match["part"] or "", 0)
    if match["part"] == "quarter to":
        hour -= 1
    return _clock(hour, minutes, match["suffix"] or "", match.group(), loose=True)


def _noon(match: re.Match[str]) -> Quantity | None:
    return _clock(0 if match.group() in ("midnight", "mitternacht") else 12, 0, "", match.group())


def _identifier(match: re.Match[str]) -> Quantity | None:
    return Quantity("id", frozenset({f"id:{match.group()}"}), frozenset(), "", match.group())


def _prefixed(match: re.Match[str]) -> Quantity | None:
    values = number_values(match[2])
    factor = MULTIPLIERS.get((match[3] or "").strip(), 1.0)
    return _amount(values, factor, _SYMBOLS[match[1]], 1.0, match.group())


def _measured(match: re.Match[str]) -> Quantity | None:
    if match["num"]:
        values = number_values(match["num"])
    elif match["han"]:
        values = [float(han_value(match["han"]))]
    else:
        word = match["word"]
        values = [NUMBER_WORDS.get(word, 1.0)]
    at = next(n for n in range(len(UNITS)) if match[f"u{n}"]) if match["unit"] else None
    if match["half"] and at is not None:
        values = [value + 0.5 for value in values]
    factor = MULTIPLIERS.get((match["multiplier"] or "").strip(), 1.0)
    dimension, unit_factor = (UNITS[at][0], UNITS[at][1]) if at is not None else ("", 1.0)
    return _amount(values, factor, dimension, unit_factor, match.group())


def _amount(values: list[float], factor: float, dimension: str, unit_factor: float, text: str) -> Quantity:
    values = [value * factor for value in values]
    bare = frozenset(f"n:{value:.9g}" for value in values)
    if dimension == "fahrenheit":
        exact = frozenset(f"celsius:{(value - 32) / 1.8:.4g}" for value in values)
        return Quantity("amount", bare, exact, "celsius", text.strip())
    exact = frozenset(f"{dimension}:{value * unit_factor:.9g}" for value in values) if dimension else frozenset()
    return Quantity("amount", bare, exact, dimension, text.strip())


_READERS: list[tuple[re.Pattern[str], _Found]] = [
    (re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)"), _iso),
    (re.compile(r"(?<!\d)(\d{4})年\s?(\d{1,2})月\s?(\d{1,2})[日号]"), _iso),
    (
        re.compile(r"(?<!\d)()(\d{1,2})月\s?(\d{1,2})[日号]"),
        lambda match: _date(None, int(match[2]), int(match[3]), match.group()),
    ),
    (re.compile(r"(?<![\d./])(\d{1,2})([./])(\d{1,2})\2(\d{4}|\d{2})(?![\d./]\d)"), _numeric),
    (
        re.compile(
            rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|º)?\s?(?:day of |de |of )?(?:{_MONTH})\b\.?"
            rf"(?:,?\s?(?:de |of )?(?P<year>\d{{4}})(?!\d))?"
        ),
        _named,
    ),
    (
        re.compile(
            rf"\b(?:{_MONTH})\.?\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.,]\d)(?:,?\s(?P<year>\d{{4}})(?!\d))?"
        ),
        _named,
    ),
    (
        re.compile(r"(?<![\d:.])(\d{1,2})[:h](\d{2})(?::\d{2})?(?![\d:])\s?([ap]\.?m\b\.?)?(?:\s?(?:uhr|h)\b)?"),
        _digital,
    ),
    (re.compile(r"(?<![\d:.])(\d{1,2})\.(\d{2})\s?([ap]\.?m\b\.?|uhr\b)"), _digital),
    (
        re.compile(rf"(午前|午後|上午|下午|오전|오후)?\s?(\d{{1,2}}|{_HAN})[時点시](?!間|\d{{3}})(\d{{1,2}}分|半)?"),
        _asian,
    ),
    (
        re.compile(
            rf"(?<![\d:.,])(?:\b(?P<part>half past|quarter past|quarter to)\s)(?P<hour>\d{{1,2}}|{_COUNT}){_EDGE}"
            r"(?P<suffix>\s?[ap]\.?m\b\.?)?"
        ),
        _spoken,
    ),
    (
        re.compile(
            rf"(?<![\d:.,a-z])(?P<part>)(?P<hour>\d{{1,2}}|{_COUNT})\s?(?:(?P<suffix>[ap]\.?m\b\.?)|o'clock\b|uhr\b)"
        ),
        _spoken,
    ),
    (re.compile(r"\b(?:noon|midday|midnight|mitternacht)\b"), _noon),
    (re.compile(r"(?<![a-z0-9])[a-z]+(?:-[a-z]+){0,4}-?\d[a-z0-9]*(?:-[a-z0-9]+){0,8}"), _identifier),
    (re.compile(r"(?<![\w.])\d+(?:\.\d+){2,8}(?![\w])"), _identifier),
    (re.compile(rf"([€$£¥])\s?({_NUM})(\s?(?:{_MULTIPLIER})|[mk]\b)?"), _prefixed),
    (
        re.compile(
            rf"(?:(?<![\d])(?P<num>(?:(?<![^\s(:])-)?{_NUM})|(?P<han>{_HAN})(?={_HAN_COUNTERS})"
            rf"|(?<![^\W\d_])(?P<word>(?:{_COUNT}){_EDGE}|(?:{_ONE})(?=\s(?:{_ANY_UNIT}){_EDGE})))"
            rf"(?P<multiplier>\s?(?:{_MULTIPLIER}))?"
            rf"(?:[\s-]?(?P<unit>{_UNIT}){_EDGE}(?P<half> and a half\b)?)?"
        ),
        _measured,
    ),
]
