"""What a criterion said of a case in earlier runs: a sparkline of its scores, and a mark for each verdict."""

from collections.abc import Iterator, Sequence

from workbench.history.case_rows import EarlierRun
from workbench.rendering.faces import FACES, Status
from workbench.rendering.lines import Line, Segment, flow, hang
from workbench.rendering.rows import GUTTER, View

_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 2
"""Fewer runs tell nothing that the verdict does not."""


def earlier_lines(name: str, earlier: Sequence[EarlierRun], view: View) -> Iterator[Line]:
    """One line, or two where there is little room; nothing as long as only one run has judged the case so. The oldest
    run is on the left."""
    judged = [found for run in reversed(earlier) if (found := _of_run(name, run)) is not None]
    if len(judged) < _LEAST:
        return
    scores = [score for score, _ in judged if score is not None]
    low, high = min([0.0, *scores]), max([1.0, *scores])
    bars = tuple(Segment(_bar(score, low, high), FACES[status].variable) for score, status in judged)
    marks = tuple(Segment(FACES[status].glyph, FACES[status].variable) for _, status in judged)
    passed = sum(status == "passed" for _, status in judged)
    told = (Segment(f"passed {passed} of {len(judged)}", "muted"),)
    lead = [Segment("   runs", "label")]
    yield from hang(lead, flow([bars, marks, told], max(view.width - GUTTER, 10), "  "), GUTTER)


def _of_run(name: str, run: EarlierRun) -> tuple[float | None, Status] | None:
    """What a run said: score and verdict."""
    metrics = [row["metrics"][name] for row in run.rows if name in row.get("metrics", {})]
    metrics = [metric for metric in metrics if metric[2] in FACES]
    if not metrics:
        return None
    scores = [metric[0] for metric in metrics if metric[0] is not None]
    # Of repeats the mean, and the verdict that decided.
    worst = min((metric[2] for metric in metrics), key=lambda status: FACES[status].rank)
    return (sum(scores) / len(scores) if scores else None), worst


def _bar(score: float | None, low: float, high: float) -> str:
    if score is None:
        return "·"
    return _BARS[round((score - low) / (high - low) * (len(_BARS) - 1))]
