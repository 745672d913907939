"""One-line reasons why a case did not pass, and the criteria by which it was judged.

All text is safe for a terminal.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench.criteria.description import JUDGE, RUBRICS
from workbench.events.events import CaseError, MetricResult
from workbench.files.faults import snake
from workbench.results.error import user_frames
from workbench.results.plain_lines import error_text, marks
from workbench.results.texts import compact
from workbench.store.execution import CaseRecord, Execution
from workbench.text.counting import amount, compared, sign
from workbench.text.safe_text import one_line


def reasons(record: CaseRecord) -> list[str]:
    """Return one line for each reason why the case did not pass, the deciding ones first.

    If the agent's reaction to an injected fault is known, it is the only reason.
    """
    if record.handling is not None:
        from workbench.results.faults import handling_text  # Few runs inject faults.

        return [handling_text(record.handling)]
    broke = [error_text(record.error)] if record.error else []
    found = [] if record.state == "failed" else broke
    for result in record.metrics.values():
        # An error of the case that came from a metric already says so.
        error = record.error if result.status == "error" else None
        kinds = ("judge", "quota", "metric_crashed")
        if error is not None and error.kind in kinds and error.message.startswith(f"{result.name}: "):
            continue
        if result.status in ("failed", "error", "not_evaluated"):
            found.append(verdict(result, marks(record, result)))
    if record.state == "failed" and all(result.status != "failed" for result in record.metrics.values()):
        found.append("the failing verdict was not stored with the run")
    if record.state == "failed":
        found += broke
    # Notes say, for instance, that a model was blocked.
    noted = ((number, turn.note) for number, turn in enumerate(record.turns, 1) if turn.note)
    if record.state != "passed":
        found += [one_line(note if len(record.turns) == 1 else f"turn {number}: {note}") for number, note in noted]
    return found


def verdict(result: MetricResult, tags: Sequence[str] = ()) -> str:
    """Return `name 0.5 < 1.0 (function): reason`, or `name error: reason` if there is no score to compare.

    `tags` are the result of `workbench.results.plain_lines.marks`.
    """
    text = f"{one_line(result.name, limit=100)} {score_text(result)}"
    if tags:
        text += f" ({', '.join(tags)})"
    return f"{text}: {one_line(result.reason)}" if result.reason else text


def score_text(result: MetricResult) -> str:
    """Return the score beside its threshold: `0.5 < 1.0`, `0.93 ≥ 0.8`, `3.0` if informational, or else the status."""
    score, threshold = result.score, result.threshold
    if result.status == "informational" and score is not None:
        return amount(score)
    if result.status not in ("passed", "failed") or score is None or threshold is None:
        return result.status.replace("_", " ")
    shown, limit = compared(score, threshold)
    return f"{shown} {sign(score, threshold)} {limit}"


def error_hints(error: CaseError, root: str) -> Iterator[str]:
    """Yield the place in the user's code that raised the error, relative to `root`, and the hint, if they are known."""
    if frames := user_frames(error, root):
        yield f"at {frames[-1].text(root)}"
    if error.hint:
        yield one_line(error.hint, limit=1000)


def other_criteria(record: Execution) -> str:
    """Return how the criteria of a verdict differ from the criteria in the file, or "" if they are the same."""
    return "; ".join(one_line(sentence, limit=300) for sentence in record.planned.criteria_changed)


def criteria_and_source(record: CaseRecord) -> str:
    """Return the criteria of a case and their source, or only the source if the case was never judged."""
    text, source = criteria_text(record), one_line(record.planned.criteria_source, limit=1000)
    return f"{text} ({source})" if text else source


def matched_by_location(records: Iterable[Execution]) -> list[str]:
    """Return a sentence for each agent that was matched to its evalsets by location."""
    files: dict[str, dict[str, None]] = {}
    for record in records:
        if record.planned.matched_by == "location":
            files.setdefault(record.ref.agent, {})[record.ref.evalset_file] = None
    return [
        f"{one_line(agent, limit=100)} was matched by location: {one_line(', '.join(found), limit=1000)}"
        for agent, found in files.items()
    ]


def criteria_text(record: CaseRecord) -> str:
    """Return the criteria of a case: `tool_trajectory_avg_score 1.0 (match_type IN_ORDER)`, or "" if never judged."""
    return ", ".join(_criterion(name, value) for name, value in record.criteria.items())


def _criterion(name: str, value: Any) -> str:
    settings = dict(value) if isinstance(value, dict) else {"threshold": value}
    threshold = settings.pop("threshold", None)
    shown = [
        f"{key} {one_line(compact(setting) if isinstance(setting, dict | list) else str(setting), limit=80)}"
        for key, setting in settings.items()
        if setting is not None and snake(key) not in (JUDGE, RUBRICS)  # These do not fit on a line.
    ]
    parts = [one_line(name, limit=100)]
    parts += [] if threshold is None else [one_line(str(threshold), limit=40)]
    parts += [f"({one_line(', '.join(shown))})"] if shown else []
    return " ".join(parts)
