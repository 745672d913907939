"""Why a case did not pass, in words: one line for each reason, and by which criteria it was judged.

Safe for a terminal, like all text of the headless front ends.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench.events import CaseError, MetricResult
from workbench.rendering.plain_lines import error_text, marks
from workbench.scores import amount, compared, sign
from workbench.store import CaseRecord
from workbench.text import one_line

_OF_METRICS = ("judge", "quota", "metric_crashed")
_FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d+), in (.+)$', re.MULTILINE)


def reasons(record: CaseRecord) -> list[str]:
    """One line for each thing that kept the case from passing, the cause of an error first."""
    found = [error_text(record.error)] if record.error else []
    for result in record.metrics.values():
        # An error of the case that came from a metric already says so.
        if result.status == "error" and record.error is not None and record.error.kind in _OF_METRICS:
            continue
        if result.status in ("failed", "error", "not_evaluated"):
            found.append(verdict(result, marks(record, result)))
    if record.state == "failed" and all(result.status != "failed" for result in record.metrics.values()):
        found.append("the verdict by which it failed is not in what is kept of the run")
    found += _notes(record)
    return found


def _notes(record: CaseRecord) -> Iterator[str]:
    """What was odd in a turn of a case that did not pass, such as a model that was blocked."""
    if record.state == "passed":
        return
    for number, turn in enumerate(record.turns, 1):
        if turn.note:
            yield one_line(turn.note if len(record.turns) == 1 else f"turn {number}: {turn.note}")


def verdict(result: MetricResult, said: Sequence[str] = ()) -> str:
    """`name 0.5 < 1.0 (heuristic): reason`, or `name error: reason` where there is no score to compare; `said` is what
    `workbench.rendering.plain_lines.marks` found."""
    text = f"{one_line(result.name, limit=100)} {score_text(result)}"
    if said:
        text += f" ({', '.join(said)})"
    return f"{text}: {one_line(result.reason)}" if result.reason else text


def score_text(result: MetricResult) -> str:
    """Return `0.5 < 1.0`, `0.93 ≥ 0.8`, `3.0` (informational) or the status."""
    score, threshold = result.score, result.threshold
    if result.status == "informational" and score is not None:
        return amount(score)
    if result.status not in ("passed", "failed") or score is None or threshold is None:
        return result.status.replace("_", " ")
    shown, limit = compared(score, threshold)
    return f"{shown} {sign(score, threshold)} {limit}"


def way_out(error: CaseError, root: str) -> Iterator[str]:
    """Where in the files below `root` the error was raised, and what can be done about it, as far as that is known."""
    folder = root.rstrip("/") + "/"
    frames = [frame for frame in _FRAME.findall(error.traceback) if frame[0].startswith(folder)]
    if frames:
        file, line, function = frames[-1]
        yield one_line(f"at {file.removeprefix(folder)}:{line} in {function}")
    if error.hint:
        yield one_line(error.hint, limit=1000)


def other_criteria(record: CaseRecord) -> str:
    """Return which criteria of a verdict are not those of the file; "" if all are."""
    return "; ".join(one_line(sentence, limit=300) for sentence in record.planned.criteria_changed)


def criteria_and_source(record: CaseRecord) -> str:
    """Which criteria apply to a case, and why those."""
    text, source = criteria_text(record), one_line(record.planned.criteria_source, limit=1000)
    return f"{text} ({source})" if text else source


def matched_by_location(records: Iterable[CaseRecord]) -> list[str]:
    """A sentence for each agent that was found by its location only, with its evalsets."""
    files: dict[str, dict[str, None]] = {}
    for record in records:
        if record.planned.matched_by == "location":
            files.setdefault(record.ref.agent, {})[record.ref.evalset_file] = None
    return [
        f"{one_line(agent, limit=100)} was matched by location: {one_line(', '.join(found), limit=1000)}"
        for agent, found in files.items()
    ]


def criteria_text(record: CaseRecord) -> str:
    """The criteria of a case and what is set for them: `tool_trajectory_avg_score 1.0 (match_type IN_ORDER)`. Empty
    where the case never came to be judged."""
    return ", ".join(_criterion(name, value) for name, value in record.criteria.items())


def _criterion(name: str, value: Any) -> str:
    settings = dict(value) if isinstance(value, dict) else {"threshold": value}
    threshold = settings.pop("threshold", None)
    parts = [one_line(name, limit=100)]
    if threshold is not None:
        parts.append(one_line(str(threshold), limit=40))
    simple = [f"{key} {setting}" for key, setting in settings.items() if isinstance(setting, (str, int, float))]
    if simple:
        parts.append(f"({one_line(', '.join(simple))})")
    return " ".join(parts)
