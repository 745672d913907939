"""Models with an announced end, and replies from other models than requested.

The dates are those that each source announced. Add a row when a source announces another end.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

from workbench.worker.spans import model_name


class _End(NamedTuple):
    day: date
    source: str


class _Retiring(NamedTuple):
    successor: str
    ends: tuple[_End, ...]


def _api(year: int, month: int, day: int, then: str = "") -> _End:
    routed = f"; then answered by {then}" if then else ""
    return _End(date(year, month, day), f"Gemini API, ai.google.dev/gemini-api/docs/deprecations{routed}")


_VERTEX = _End(date(2026, 10, 20), "Vertex AI, model lifecycle")
_ADK = _End(date(2026, 10, 16), "release notes of adk-python 2.2.0")
_GEMINI_2_0 = _Retiring("gemini-3.5-flash", (_api(2026, 6, 1),))
_GEMINI_2_0_LITE = _Retiring("gemini-3.1-flash-lite", (_api(2026, 6, 1),))
RETIRING: Mapping[str, _Retiring] = {
    "gemini-2.0-flash": _GEMINI_2_0,
    "gemini-2.0-flash-001": _GEMINI_2_0,
    "gemini-2.0-flash-lite": _GEMINI_2_0_LITE,
    "gemini-2.0-flash-lite-001": _GEMINI_2_0_LITE,
    "gemini-2.5-flash": _Retiring("gemini-3.5-flash-lite", (_ADK, _VERTEX, _api(2026, 12, 1, "gemini-3.5-flash-lite"))),
    "gemini-2.5-pro": _Retiring("gemini-3.8-flash", (_VERTEX, _api(2026, 12, 1, "gemini-3.8-flash"))),
    "gemini-3-pro-preview": _Retiring("gemini-3.1-pro-preview", (_api(2026, 3, 9),)),
    "gemini-3.1-flash-lite-preview": _Retiring("gemini-3.1-flash-lite", (_api(2026, 5, 25),)),
}
"""Models → their successor and their ends, by name without provider and project."""
NAMES = re.compile("|".join(map(re.escape, RETIRING)).encode())
"""A pattern that finds a model of the table in a source file."""


def retirement(model: str, today: date | None = None) -> str:
    """Return `gemini-2.5-flash ended on 2026-10-20 (Vertex AI, …)`, or "" for a model without an announced end.

    `today` is the current day in UTC by default.
    """
    found = RETIRING.get(model_name(model))
    if found is None:
        return ""
    now = today or datetime.now(UTC).date()
    ends = (f"{'ended' if end.day <= now else 'ends'} on {end.day} ({end.source})" for end in found.ends)
    return f"{model_name(model)} {', '.join(ends)}"


def retires(who: str, model: str) -> str:
    """Return the warning that an agent, judge or simulated user has a retiring model, or "" if it does not retire."""
    ending = retirement(model)
    return f"{who} uses a model that retires: {ending}" if ending else ""


def successor_hint(model: str) -> str:
    """Return the advice to name the successor of a retiring model."""
    return f"Name {RETIRING[model_name(model)].successor} or another current model"
