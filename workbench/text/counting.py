"""Numbers as text: counts with nouns, percentages, thresholds, scores, and long lists.

Scores are cut and not rounded, because a rounded score may seem to reach a threshold that it misses: 0.79996 is not
0.8. In JSON, scores are unchanged.
"""

import math
import sys
from collections.abc import Iterable
from decimal import ROUND_FLOOR, Decimal


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 case`, `1,234 cases`. `plural` is for nouns with another plural."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def counted_status(status: str, number: int, with_errors: int = 0) -> str:
    """Return a count of cases with a status: `9 passed`, `2 errors`, `3 not evaluated`, `4 failed (1 with errors)`."""
    text = f"{number:,} {status.replace('_', ' ')}{'s' * (status == 'error' and number != 1)}"
    return f"{text} ({with_errors:,} with errors)" if status == "failed" and with_errors else text


def few(names: Iterable[str], most: int = 3) -> str:
    """Return the first `most` names and the number of further ones: `a, b, c and 4 more`."""
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def exact(value: float) -> str:
    """Return a short text of a number that loses no digit: `1`, `0.8`, `0.1234567`."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def threshold(value: float) -> str:
    """Return a threshold with all its digits and at least two decimals: `0.80`, `1.00`, `0.375`."""
    short = f"{value:.2f}"
    return short if float(short) == value else exact(value)


def percent(value: float) -> str:
    """Return a share as `60%`, cut and not rounded: 0.999 is `99%`. Only 0 is `0%`."""
    # 0.29 * 100 is slightly below 29.
    number = math.floor(value * 100 + 1e-9)
    if 0 < value < 1:
        number = min(max(number, 1), 99)
    return f"{number}%"


def exact_percent(value: float) -> str:
    """Return a rate chosen by the user as a percentage with all its digits: `90%`, `99.5%`."""
    return f"{value * 100:.10g}%"


def cut_to_tenths(value: float) -> str:
    """Return a number as `45` or `44.6`, cut to one decimal place."""
    # A sum of thirds may be slightly below a whole number.
    cut = math.floor(value * 10 + 1e-6) / 10
    return f"{cut:,.0f}" if cut == int(cut) else f"{cut:,.1f}"


PLACES = 4
"""Maximum number of decimals of a score."""
_HUGE = 1e15
"""From this value on, numbers are shown in Python's notation."""


def cut_score(value: float, places: int = PLACES, least: int = 1) -> str:
    """Return a score with `least` to `places` decimals, cut: `0.7999`, `1.0`. Huge numbers are in Python's notation."""
    if not abs(value) < _HUGE:  # Also NaN, and integers that no float can hold.
        return repr(value if abs(value) > sys.float_info.max else float(value))
    return _padded(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR), least)


def compared(score: float, threshold: float, places: int = PLACES, least: int = 1) -> tuple[str, str]:
    """Return a score and its threshold for display side by side: `("0.7999", "0.8")`.

    The score is cut, so that a missed threshold is visible. If the cut score would fall below a threshold that was
    reached, the threshold is cut, too.
    """
    shown = cut_score(score, places, least)
    if not math.isfinite(threshold) or abs(threshold) >= _HUGE or not math.isfinite(score):
        return shown, cut_score(threshold, places, least)
    if score >= threshold > float(shown):
        return shown, cut_score(threshold, places, least)
    return shown, _padded(Decimal(repr(float(threshold))), least)


def amount(value: float) -> str:
    """Return a quantity: `1,234`, `2`, `0.0331`."""
    if abs(value) < _HUGE and value == int(value):
        return f"{int(value):,}"
    return cut_score(value)


def sign(score: float, threshold: float) -> str:
    """Return the comparison sign between a score and its threshold."""
    return "≥" if score >= threshold else "<"


def _padded(value: Decimal, least: int) -> str:
    whole, _, decimals = f"{value if value else abs(value):f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(least, '0')}"
