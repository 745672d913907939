"""Scores as text: cut to a few decimals, never rounded up.

A rounded score may seem to reach a threshold that it misses: 0.79996 is not 0.8. JSON keeps scores unchanged.
"""

import math
from decimal import ROUND_FLOOR, Decimal

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
