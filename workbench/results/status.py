"""Verdicts as styled text: glyph and word, and scores beside their thresholds."""

from collections.abc import Iterable

from rich.text import Text

from workbench.events.events import MetricResult, MetricStatus
from workbench.results.faces import FACES, Status
from workbench.results.lines import Line
from workbench.text.counting import amount, compared, sign


def badge(status: Status) -> Line:
    """Return `✗ FAIL`."""
    face = FACES[status]
    return Text.styled(f"{face.glyph} {face.word.upper()}", face.variable)


def glyph(status: Status) -> Text:
    """Return `✗`."""
    return Text.styled(FACES[status].glyph, FACES[status].variable)


def worst(statuses: Iterable[MetricStatus]) -> MetricStatus | None:
    """Return the most important verdict, or None if there is none."""
    verdicts = [status for status in statuses if status not in ("informational", "not_applicable")]
    return min(verdicts, key=lambda status: FACES[status].rank, default=None)


def score_text(result: MetricResult) -> str:
    """Return `0.50 < 1.00`, `0.93 ≥ 0.80`, `3`, or nothing without a score."""
    score, threshold = result.score, result.threshold
    if score is None:
        return ""
    if threshold is None or result.status == "informational":
        return amount(score)
    shown, limit = compared(score, threshold, 2, 2)
    return f"{shown} {sign(score, threshold)} {limit}"
