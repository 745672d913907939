"""Numbers as text: with their nouns, percentages, thresholds, scores, and long lists.

A rounded score may seem to reach a threshold that it misses: 0.79996 is not 0.8. So scores are cut to a few decimals.
JSON keeps scores unchanged.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_FLOOR, Decimal


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 case`, `2 cases`, `1,234 cases`. `plural` is for nouns that do not take an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def counted_status(status: str, number: int, with_errors: int = 0) -> str:
    """Return `9 passed`, `1 error`, `2 errors`, `3 not evaluated`, or `4 failed (1 with errors)`."""
    text = f"{number:,} {status.replace('_', ' ')}{'s' * (status == 'error' and number != 1)}"
    return f"{text} ({with_errors} with errors)" if status == "failed" and with_errors else text


def few(names: Iterable[str], most: int = 3) -> str:
    """Return the first names and the number of the others: `a, b, c and 4 more`."""
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def exact(value: float) -> str:
    """Return a number with all its digits and no more: `1`, `0.8`, `0.37`, `0.1234567`."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def threshold(value: float) -> str:
    """Return a threshold as it is, with two decimals at least: `0.80`, `1.00`, `0.375`."""
    short = f"{value:.2f}"
    return short if float(short) == value else exact(value)


def percent(value: float) -> str:
    """Return `60%`, cut and not rounded: 0.999 is `99%`. Only a value of 0 is `0%`."""
    # 0.29 * 100 is slightly below 29.
    number = math.floor(value * 100 + 1e-9)
    if 0 < value < 1:
        number = min(max(number, 1), 99)
    return f"{number}%"


def exact_percent(value: float) -> str:
    """Return a rate that a user chose with its digits: `90%`, `99.5%`."""
    return f"{value * 100:g}%"


def cut_to_tenths(value: float) -> str:
    """Return `45` or `44.6`, cut to one decimal place."""
    # A sum of thirds may be slightly below a whole number.
    cut = math.floor(value * 10 + 1e-6) / 10
    return f"{cut:,.0f}" if cut == int(cut) else f"{cut:,.1f}"


PLACES = 4
"""Maximum decimals of a score."""
_HUGE = 1e15
"""From here on a number has no decimals and is shown as Python writes it."""


def cut_score(value: float, places: int = PLACES, least: int = 1) -> str:
    """Return a score with `least` to `places` decimals, the rest cut off: `0.7999`, `1.0`."""
    if not math.isfinite(value) or abs(value) >= _HUGE:
        return repr(float(value))
    return _padded(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR), least)


def compared(score: float, threshold: float, places: int = PLACES, least: int = 1) -> tuple[str, str]:
    """Return a score and its threshold for display side by side: `("0.7999", "0.8")`.

    The score is cut, so a missed threshold is visible. If the score reaches its threshold by less than that, the
    threshold is cut too.
    """
    shown = cut_score(score, places, least)
    if not math.isfinite(threshold) or abs(threshold) >= _HUGE or not math.isfinite(score):
        return shown, cut_score(threshold, places, least)
    if score >= threshold > float(shown):
        return shown, cut_score(threshold, places, least)
    return shown, _padded(Decimal(repr(float(threshold))), least)


def amount(value: float) -> str:
    """Return a figure that is not a share: `1,234`, `2`, `0.0331`."""
    if math.isfinite(value) and value == int(value) and abs(value) < _HUGE:
        return f"{int(value):,}"
    return cut_score(value)


def sign(score: float, threshold: float) -> str:
    """Return the sign between a score and its threshold."""
    return "≥" if score >= threshold else "<"


def _padded(value: Decimal, least: int) -> str:
    whole, _, decimals = f"{value if value else abs(value):f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(least, '0')}"
