"""Verdicts as lines: a summary line for a case, the scores of a turn, and the full result of each criterion."""

import re
from collections.abc import Iterator, Sequence

from workbench.events import MetricResult
from workbench.rendering.cells import cut
from workbench.rendering.faces import FACES
from workbench.rendering.judge_texts import turn_tags
from workbench.rendering.judged import is_shown_in
from workbench.rendering.lines import (
    Line,
    Segment,
    cut_line,
    flow,
    hang,
    hang_text,
    joined,
    safe,
    text_of,
    width_of,
    wrap,
)
from workbench.rendering.rows import View
from workbench.rendering.status import badge, glyph, score_text
from workbench.text import one_line

REASON_LINES = 2
_SUFFIX = re.compile("(_avg)?(_score)?(_v[0-9]+)?$")


def by_weight(results: Sequence[MetricResult]) -> list[MetricResult]:
    """Return the results, the worst first. Equal ones keep their order."""
    return sorted(results, key=lambda result: FACES[result.status].rank)


def chip(result: MetricResult, *, short: bool = False) -> Line:
    """Return `✗ response_match_score 0.61 < 0.80`, on one line."""
    return joined(_chip_parts(result, short=short), " ")


def _chip_parts(result: MetricResult, *, short: bool = False) -> tuple[Line, Line]:
    name = one_line(result.name, limit=60)
    if short:
        name = _SUFFIX.sub("", name) or name
    score = score_text(result) or FACES[result.status].word
    return (glyph(result.status), Segment(f" {name}")), (Segment(score, FACES[result.status].variable),)


def chips(results: Sequence[MetricResult], width: int) -> Line:
    """Return as many chips as fit on one line, the worst first, and the number of others."""
    ordered = by_weight(results)
    for count in range(len(ordered), 0, -1):
        more: Line = (Segment(f"  +{len(ordered) - count}", "muted"),) if count < len(ordered) else ()
        for short in (False, True):
            line = (*joined((chip(result, short=short) for result in ordered[:count]), "   "), *more)
            if width_of(line) <= width:
                return line
    return cut_line(chip(ordered[0], short=True), width) if ordered else ()


def turn_scores(results: Sequence[MetricResult], view: View) -> Iterator[Line]:
    """Yield the verdicts of one turn: failures on separate lines with reasons, then those that passed."""
    verdicts = [result for result in by_weight(results) if result.status not in ("informational", "not_applicable")]
    passed = [result for result in verdicts if result.status == "passed"]
    for result in verdicts:
        if result.status != "passed":
            yield from _head([*_chip_parts(result), *turn_tags(result)], " ", view)
            yield from hang([], _reason(result, view), 3)
    yield from _together(passed, view)


def _together(results: Sequence[MetricResult], view: View) -> Iterator[Line]:
    """Yield chips on one line if they fit with short names, else one per line."""
    for short in (False, True):
        line = joined((joined([chip(result, short=short), *turn_tags(result)], " ") for result in results), "   ")
        if width_of(line) < view.width:
            yield from ((Segment(" "), *part) for part in ([line] if line else []))
            return
    for result in results:
        yield from _head([*_chip_parts(result), *turn_tags(result)], " ", view)


def _reason(result: MetricResult, view: View) -> Iterator[Line]:
    if not result.reason:
        return
    body = [safe(result.reason, "muted")]
    lines = list(wrap(body, max(view.width - 4, 10)))
    if len(lines) > REASON_LINES and not view.full and _is_explained_below(result.name):
        last = f"{text_of(lines[REASON_LINES - 1])} …"
        lines[REASON_LINES - 1 :] = [(Segment(cut(last, view.width - 4, end=" …"), "muted"),)]
    yield from lines


def _is_explained_below(criterion: str) -> bool:
    """Return whether the turn itself shows the reason in detail, so that its beginning is enough here."""
    return is_shown_in(criterion, "calls") or is_shown_in(criterion, "words")


def verdict_head(
    result: MetricResult, view: View, *, reason: bool = True, marks: Sequence[Line] = ()
) -> Iterator[Line]:
    """Yield `✗ FAIL  response_match_score  0.61 < 0.80  ◐ split`, and the reason below it."""
    name = Segment(f"  {one_line(result.name, limit=200)}", "strong")
    score = (Segment(score_text(result), FACES[result.status].variable),)
    head: Line = (*badge(result.status), name)
    yield from _head([head, score, *marks], "  ", view)
    if reason and result.reason:
        yield from hang_text([], [safe(result.reason)], view.width - 1, 3)


def _head(parts: Sequence[Line], separator: str, view: View) -> Iterator[Line]:
    """Yield the parts on one line if they fit, else on several lines, broken between parts."""
    for index, line in enumerate(flow(parts, max(view.width - 3, 10), separator)):
        yield (Segment("   " if index else " "), *line)
