"""Numbers with their nouns, percentages, thresholds, and long lists, as shown to users."""

import math
from collections.abc import Iterable


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
