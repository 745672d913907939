"""Why a case did not pass, in words: one line for each reason, and the longer account by turns.

Safe for a terminal, like all text of the headless front ends.
"""

from collections.abc import Iterator

from workbench.cli.lines import error_text
from workbench.events import MetricResult
from workbench.store import CaseRecord
from workbench.text import one_line, plain


def reasons(record: CaseRecord) -> list[str]:
    """One line for each thing that kept the case from passing, the cause of an error first."""
    found = [error_text(record.error)] if record.error else []
    for result in record.metrics.values():
        # An error of the case that came from a metric already says so.
        if result.status == "error" and record.error is not None and record.error.kind in ("judge", "metric_crashed"):
            continue
        if result.status in ("failed", "error", "not_evaluated"):
            found.append(verdict(result))
    if not found and not record.finished:
        found.append("the run ended before it had a verdict")
    return found


def verdict(result: MetricResult) -> str:
    """`name 0.5 < 1.0: reason`, or `name error: reason` where there is no score to compare."""
    text = f"{one_line(result.name, limit=100)} {score_text(result)}"
    return f"{text}: {one_line(result.reason)}" if result.reason else text


def score_text(result: MetricResult) -> str:
    """`0.5 < 1.0`, `0.93 ≥ 0.8`, `3` (informational) or the status. Decimals are cut for people, but never so far
    that the two sides would say something else than the verdict."""
    score, threshold = result.score, result.threshold
    if result.status == "informational" and score is not None:
        return _short(score, 4)
    if result.status not in ("passed", "failed") or score is None or threshold is None:
        return result.status.replace("_", " ")
    digits = 3
    while digits < 17 and score != threshold and _short(score, digits) == _short(threshold, digits):
        digits += 1
    return f"{_short(score, digits)} {'≥' if result.status == 'passed' else '<'} {_short(threshold, digits)}"


def explanation(record: CaseRecord) -> Iterator[str]:
    """All that is known of a case without a pass: the criteria and where they come from, every verdict, and under it
    the turns that speak against it."""
    yield from _error(record)
    yield f"Criteria: {one_line(record.planned.criteria_source)}"
    for result in record.metrics.values():
        yield f"{result.status.upper()} {verdict(result)}"
        for number, turn in enumerate(record.turns, 1):
            part = turn.metrics.get(result.name)
            if part is not None and part.status in ("failed", "error"):
                yield f"  turn {number}: {verdict(part)}"
    for number, turn in enumerate(record.turns, 1):
        if turn.note:
            yield f"Turn {number}: {one_line(turn.note)}"


def _error(record: CaseRecord) -> Iterator[str]:
    if record.error is None:
        return
    yield error_text(record.error)
    if record.error.traceback:
        yield plain(record.error.traceback.rstrip("\n"))


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text
