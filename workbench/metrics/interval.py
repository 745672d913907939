"""The interval of values that a custom metric declares in its `metric_info` (ADK's `Interval`)."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.model.spelling import get


class Interval(NamedTuple):
    """Numbers between two ends. An end is included unless it is open."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        return above and (value < self.high if self.high_open else value <= self.high)

    def __str__(self) -> str:
        return f"{'(' if self.low_open else '['}{self.low:g}, {self.high:g}{')' if self.high_open else ']'}"

    @property
    def is_empty(self) -> bool:
        """Whether it contains no number."""
        return not (self.low < self.high or (self.low == self.high and not (self.low_open or self.high_open)))


def declared_interval(config: Mapping[str, Any]) -> Interval | None:
    """Return the interval of an entry of `custom_metrics`, or None if it declares none."""
    found: Any = config
    for key in ("metric_info", "metric_value_info", "interval"):
        found = get(found, key)
    if not isinstance(found, dict):
        return None
    low, high = (_number(get(found, key)) for key in ("min_value", "max_value"))
    opened = (_is_set(get(found, key)) for key in ("open_at_min", "open_at_max"))
    return None if low is None or high is None else Interval(low, high, *opened)


def _number(value: Any) -> float | None:
    """Return a number as ADK reads it, also from text."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_set(value: Any) -> bool:
    """Return a flag as ADK reads it."""
    return value in (True, 1) or (isinstance(value, str) and value.lower() in ("true", "t", "yes", "y", "on", "1"))
