"""Numbers, dates, times and ids in texts, in a form that is equal for different spellings."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, get_args

FactKind: TypeAlias = Literal["number", "date", "time", "id", "count"]

_MONTH_NAMES: Final = (
    "jan january januar janvier enero|feb february februar février febrero|mar march märz mars marzo|"
    "apr april avril abril|may mai mayo|jun june juni juin junio|jul july juli juillet julio|"
    "aug august août agosto|sep sept september septembre septiembre|oct october okt oktober octobre octubre|"
    "nov november novembre noviembre|dec december dez dezember décembre diciembre"
)
_MONTHS: Final = {
    name: number for number, names in enumerate(_MONTH_NAMES.split("|"), start=1) for name in names.split()
}
_NUMBER_WORDS: Final = {
    word: number
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], start=2
    )
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DASHES: Final = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_MARKUP = re.compile(r"[*`|~]+")
_ITEM = re.compile(rf"(?mi)^[ \t]{{0,40}}(?:\d{{1,3}}[.)](?![ \t]*(?:{_MONTH})\b)|[-+•#>]+)[ \t]+")
"""The number or sign of a list item. It is not a fact."""
_FACT = re.compile(
    r"(?<![a-z0-9])(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)(?:t(?=\d))?"
    r"|(?<![a-z0-9])(?P<a>\d{1,2})(?P<sep>[./])(?P<b>\d{1,2})(?P=sep)(?P<y1>\d{4}|\d{2})(?![\d.,]\d|\d)"
    rf"|(?<![a-z0-9])(?P<d2>\d{{1,2}})(?:st|nd|rd|th|\.)?[ -]?(?:of |de )?(?P<m2>{_MONTH})\b\.?"
    r"(?:,?[ -](?:de |del )?(?P<y2>\d{4})(?!\d))?"
    rf"|\b(?P<m3>{_MONTH})\.?[ -](?:the )?(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?(?![a-z\d]|[:.,]\d)"
    r"(?:,? (?P<y3>\d{4})(?!\d))?"
    r"|(?<!\d)(?P<m4>\d{1,2})月(?P<d4>\d{1,2})日"
    r"|(?<![a-z0-9:])(?P<h>\d{1,2})[:.](?P<min>\d{2}) ?(?P<half>[ap])\.?m\b"
    r"|(?:(?<![a-z0-9:])|(?<=\dt))(?P<h1>\d{1,2}):(?P<min1>\d{2})(?::\d{2}(?:\.\d{1,9})?)?(?![\d:])"
    r"|(?<![a-z0-9.,])(?P<h2>\d{1,2}) ?(?P<half2>[ap])\.?m\b"
    r"|(?<![a-z0-9.,])(?P<h3>\d{1,2})(?: ?uhr(?: (?P<min3>\d{2})(?!\d))?|h(?P<min4>\d{2}))(?![a-z\d])"
    r"|(?<![a-z0-9])(?P<id>(?=[a-z0-9._-]{0,80}?\d)(?=[a-z0-9._-]{0,80}?[a-z])[a-z0-9]{1,64}(?:[-_.][a-z0-9]{1,64}){0,8})"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    rf"|\b(?P<word>{'|'.join(_NUMBER_WORDS)})\b",
    re.IGNORECASE,
)
_WITH_UNIT = re.compile(r"(?:usd|eur|gbp)?(\d+(?:[.,]\d+)*)(?:[-.]?[a-z]+)*", re.IGNORECASE)
"""A number with its unit (`5kg`, `24-hour`), not an id."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A number, date, time, id or length of a list (`count`).

    `values` has its meanings: several if the spelling is ambiguous (`1.200`). The value of a date is (month, day, year
    or None), of a time the minute of the day, and of an id its letters and digits. `text` is the spelling. `is_word`
    marks numbers such as `three`, which often state no fact.
    """

    kind: FactKind
    values: frozenset[Any]
    text: str
    is_word: bool = False

    @property
    def is_common(self) -> bool:
        """Whether it is a whole number below 100. Unrelated tools often return these."""
        return self.kind == "number" and all(value < 100 and value.is_integer() for value in self.values)


def facts_of(text: str) -> list[Fact]:
    """Return the facts of a text, in order."""
    plain = unicodedata.normalize("NFKC", text).translate(_DASHES).replace("\\n", "\n")
    plain = " ".join(_MARKUP.sub("", _ITEM.sub("\n", plain)).split()).replace("24/7", " ")
    return [fact for match in _FACT.finditer(plain) if (fact := _fact(match)) is not None]


def facts_in(value: Any) -> Iterator[Fact]:
    """Yield the facts of JSON data: those in keys and values, and how many items each list has."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            left += item
            yield Fact("count", frozenset({float(len(item))}), str(len(item)))
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield from facts_of(_digits(item) if isinstance(item, float) else str(item))


def _digits(number: float) -> str:
    """Return all digits of a number, without an exponent: 1e22 has 23 of them, and 2.0 is `2`."""
    digits = format(Decimal(repr(number)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


class Sources:
    """A collection of facts in which others can be looked up."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._known: dict[FactKind, set[Any]] = {kind: set() for kind in get_args(FactKind)}
        self._parts: set[float] = set()
        """Numbers that are part of an id: the 18 of A-18."""
        self.add(facts)

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts."""
        for fact in facts:
            self._known[fact.kind] |= fact.values
            if fact.kind == "id":
                self._parts.update(_numbers_of(fact.text))

    def __contains__(self, fact: Fact) -> bool:
        known = self._known[fact.kind]
        if fact.kind == "date":
            return any(_is_same_day(value, other) for value in fact.values for other in known)
        return not fact.values.isdisjoint(known)

    def may_have(self, fact: Fact) -> bool:
        """Return whether a fact may occur here by chance.

        A number may be the length of a list or a part of an ID. A date may consist of numbers.
        """
        if fact.kind == "number":
            return not fact.values.isdisjoint(self._known["count"] | self._parts)
        return fact.kind == "date" and any(self._known["number"] >= {value[0], value[1]} for value in fact.values)

    def may_compute(self, fact: Fact) -> bool:
        """Return whether a fact might be computed from those here: a sum, a day later, an ID with another prefix."""
        if fact.kind == "id":
            return any(number in self._known["number"] for number in _numbers_of(fact.text))
        return any(self._known[kind] for kind in ("number", "date", "time"))


def _is_same_day(one: tuple[int, int, int | None], other: tuple[int, int, int | None]) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or None in (one[2], other[2]))


def _numbers_of(text: str) -> Iterator[float]:
    return (float(digits) for digits in re.findall(r"\d{1,30}", text))


def _fact(match: re.Match[str]) -> Fact | None:
    text = match.group().strip(" .")
    if match.lastgroup == "id":
        unit = _WITH_UNIT.fullmatch(match["id"])
        if unit is None:
            return Fact("id", frozenset({re.sub(r"[-_.]", "", text.casefold())}), text)
        return Fact("number", _meanings(unit[1]), text)
    if match.lastgroup == "number":
        return Fact("number", _meanings(text), text)
    if match.lastgroup == "word":
        return Fact("number", frozenset({float(_NUMBER_WORDS[text.casefold()])}), text, is_word=True)
    of = {name: found and found.casefold() for name, found in match.groupdict().items()}
    days, minute = frozenset(_days(of)), _minute(of)
    if days:
        return Fact("date", days, text)
    if minute is not None:
        return Fact("time", frozenset({minute}), text)
    # 99:99 is neither a time nor a date.
    return Fact("id", frozenset({text}), text)


def _days(of: dict[str, str | None]) -> Iterator[tuple[int, int, int | None]]:
    """Yield the possible days of a match, as (month, day, year or None). `5/12/2026` is in May or in December."""
    readings = (
        (of["m"], of["d"], of["y"]),
        (of["b"], of["a"], of["y1"]),
        (of["a"] if of["sep"] == "/" else None, of["b"], of["y1"]),
        (of["m2"], of["d2"], of["y2"]),
        (of["m3"], of["d3"], of["y3"]),
        (of["m4"], of["d4"], None),
    )
    for month_text, day_text, year_text in readings:
        if month_text is None or day_text is None:
            continue
        month = _MONTHS.get(month_text) or int(month_text)
        day, year = int(day_text), None if year_text is None else int(year_text)
        if 1 <= month <= 12 and 1 <= day <= 31:
            yield month, day, year + 2000 if year is not None and year < 100 else year


def _minute(of: dict[str, str | None]) -> int | None:
    hour_text = of["h"] or of["h1"] or of["h2"] or of["h3"]
    if hour_text is None:
        return None
    hour, minute = int(hour_text), int(of["min"] or of["min1"] or of["min3"] or of["min4"] or 0)
    half = of["half"] or of["half2"]
    if half is not None:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 60 + minute if minute < 60 and hour * 60 + minute <= 24 * 60 else None


def _meanings(written: str) -> frozenset[float]:
    """Return the possible meanings of a number: "12,50" is 12.5, "1.200" is 1.2 or 1200."""
    if written.isdigit():
        return frozenset({float(written)})
    *whole, last = re.split("[.,]", written)
    joined = float("".join((*whole, last)))
    decimal = float(f"{''.join(whole)}.{last}")
    separators = set(re.findall("[.,]", written))
    if len(whole) > 1 and len(separators) == 1:
        return frozenset({joined})
    if len(whole) == 1 and len(last) == 3 and whole[0] != "0":
        return frozenset({decimal, joined})
    return frozenset({decimal})
