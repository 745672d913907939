"""Verdicts as segments: glyph and word, and scores beside their thresholds."""

import math
from collections.abc import Iterable

from workbench.events import MetricResult, MetricStatus
from workbench.ui.render.lines import Line, Segment
from workbench.ui.status import FACES, Status

_HUGE = 1e12


def badge(status: Status) -> Line:
    """`✗ FAIL`."""
    face = FACES[status]
    return (Segment(f"{face.glyph} {face.word.upper()}", face.variable),)


def glyph(status: Status) -> Segment:
    """`✗`."""
    return Segment(FACES[status].glyph, FACES[status].variable)


def worst(statuses: Iterable[MetricStatus]) -> MetricStatus | None:
    """The status that a reader must see first, or None if there is none that is a verdict."""
    verdicts = [status for status in statuses if status not in ("informational", "not_applicable")]
    return min(verdicts, key=lambda status: FACES[status].rank, default=None)


def score_text(result: MetricResult) -> str:
    """`0.50 < 1.00`, `0.93 ≥ 0.80`, `3` or, without a score, nothing. Decimals are cut for people, but never so far
    that both sides look equal when they are not."""
    score, threshold = result.score, result.threshold
    if score is None:
        return ""
    if threshold is None or result.status == "informational":
        return figure(score)
    if max(abs(score), abs(threshold)) >= _HUGE:
        return f"{score:g} {'≥' if score >= threshold else '<'} {threshold:g}"
    digits = 2
    while digits < 17 and score != threshold and f"{score:.{digits}f}" == f"{threshold:.{digits}f}":
        digits += 1
    sign = "≥" if score >= threshold else "<"
    return f"{score:.{digits}f} {sign} {threshold:.{digits}f}"


def figure(value: float) -> str:
    """A figure that is no share: whole numbers without decimals, others with three at most."""
    if abs(value) >= _HUGE:
        return f"{value:g}"
    if math.isfinite(value) and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3f}".rstrip("0")
