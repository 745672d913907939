"""Figures of a text: numbers with units, dates and identifiers, comparable across spellings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

FigureKind = Literal["amount", "date", "id"]

MONEY = ("eur", "usd", "money")
"""Units of money. `money` is an amount without a currency, as in `"price": 12.5`."""
_UNITS = (
    ("time", 1, r"seconds?|secs?|sekunden?|秒間?"),
    ("time", 60, r"minutes?|mins?|minuten?|分間?"),
    ("time", 3600, r"hours?|hrs?|stunden?|時間"),
    ("time", 86400, r"days?|tage?n?|días?|jours?|日間?"),
    ("time", 604800, r"weeks?|wochen?|週間?"),
    ("percent", 1, r"%|percent|per cent|prozent"),
    ("eur", 1, r"€|eur|euros?|ユーロ"),
    ("usd", 1, r"\$|usd|dollars?"),
    ("money", 1, r"money"),
)
_SYMBOLS = {"€": "eur", "$": "usd"}
_KEYS = re.compile(r"\b(?:price|amount|total|cost|fee|sum|refund(?:ed)?|paid)\b")
_WORDS = "one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: number for number, word in enumerate(_WORDS.split(), start=1)}
_HAN = {digit: number for number, digit in enumerate("一二三四五六七八九十", start=1)}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_UNIT = "|".join(f"(?P<u{at}>{form})" for at, (_, _, form) in enumerate(_UNITS))
_FIGURE = re.compile(
    r"(?<!\d)(?P<iso>\d{4}-\d{2}-\d{2})(?!\d)"
    rf"|(?<![\d.])(?P<day1>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month1>{_MONTH})\b(?:,? (?P<year1>\d{{4}}))?"
    rf"|\b(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.,]\d)(?:,? (?P<year2>\d{{4}}))?"
    r"|(?<![a-z0-9-])(?P<id>[a-z]{1,20}(?:-[a-z]{1,20}){0,3}-?\d[a-z0-9]{0,30}(?:-[a-z0-9]{1,20}){0,4})"
    r"|(?:(?P<symbol>[€$]) ?)?(?:(?P<num>(?<![\d.,])(?:(?<![\w)]) ?-)?\d{1,30}(?:[.,]\d{1,30}){0,6})"
    rf"|\b(?P<word>{'|'.join(NUMBERS)})\b|(?<![{''.join(_HAN)}])(?P<han>[{''.join(_HAN)}])(?=日|時間|分|週))"
    rf"(?:[ -]?(?:{_UNIT})(?![a-z]))?"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit, a date or an identifier.

    `values` holds several values if the spelling is ambiguous ("1.200"). `text` is the spelling.
    """

    kind: FigureKind
    values: frozenset[str | float]
    unit: str
    text: str

    def same(self, other: "Figure") -> bool:
        """Return whether both can mean the same. A missing unit matches every unit, a missing year every year."""
        if self.kind == other.kind == "date":
            mine, theirs = str(*self.values), str(*other.values)
            return mine.endswith(theirs) or theirs.endswith(mine)
        fits = self.comparable(other) or (self.kind == other.kind == "amount" and not (self.unit and other.unit))
        return fits and bool(self.values & other.values)

    def comparable(self, other: "Figure") -> bool:
        """Return whether both measure the same thing, so that different values contradict each other."""
        money = "money" in (self.unit, other.unit) and self.unit in MONEY and other.unit in MONEY
        return self.kind == other.kind and (self.unit == other.unit or money)

    @property
    def keys(self) -> Iterator[str | float]:
        """Lookup keys of figures that may mean the same: the day of a date, else the values."""
        return (value[-5:] if self.kind == "date" and isinstance(value, str) else value for value in self.values)


def figures_at(text: str) -> Iterator[tuple[int, int, Figure]]:
    """Yield start, end and figure for each figure of a text that `texts.plain` returned."""
    for match in _FIGURE.finditer(text):
        figure = _figure(match)
        if figure is not None:
            yield match.start(), match.end(), figure


def with_unit_of_key(key: str, number: str) -> str:
    """Return the text of a JSON number with the unit that its key names: `9 days` for `"days": 9`."""
    if _KEYS.search(key):
        return f"{number} money"
    unit = next((word for word in reversed(key.split()) if re.fullmatch(_UNIT, word)), "")
    return f"{number} {unit}" if unit else number


def _figure(match: re.Match[str]) -> Figure | None:
    text = match.group().strip()
    if match["iso"]:
        return Figure("date", frozenset({match["iso"]}), "", text)
    month = match["month1"] or match["month2"]
    if month:
        day = f"{_MONTHS.index(month[:3]) + 1:02}-{int(match['day1'] or match['day2']):02}"
        year = match["year1"] or match["year2"]
        return Figure("date", frozenset({f"{year}-{day}"} if year else {day}), "", text)
    if match["id"]:
        return Figure("id", frozenset({match["id"]}), "", text)
    return _amount(match, text)


def _amount(match: re.Match[str], text: str) -> Figure:
    if match["num"]:
        values = _values(match["num"])
    else:
        values = {float(NUMBERS.get(match["word"] or "", 0) or _HAN[match["han"]])}
    at = next((at for at in range(len(_UNITS)) if match[f"u{at}"]), None)
    unit, factor = (_UNITS[at][0], _UNITS[at][1]) if at is not None else (_SYMBOLS.get(match["symbol"] or "", ""), 1)
    return Figure("amount", frozenset(round(value * factor, 9) for value in values), unit, text)


def _values(written: str) -> set[float]:
    """Return the possible meanings of a number: "12,50" is 12.5, "1.200" is 1.2 or 1200."""
    digits = written.replace(" ", "")
    joined = float(re.sub("[.,]", "", digits))
    *whole, last = re.split("[.,]", digits)
    if not whole:
        return {joined}
    decimal = float(f"{''.join(whole)}.{last}")
    separators = set(re.findall("[.,]", digits))
    if len(whole) > 1 and len(separators) == 1:
        return {joined}
    if len(whole) == 1 and len(last) == 3 and whole[0] != "0":
        return {decimal, joined}
    return {decimal}
