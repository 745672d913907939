"""Judged verdicts of a case, as triage entries record them."""

from typing import Literal, TypeAlias

from workbench.editing.triage.entry import Entry, Judged
from workbench.events.events import MetricResult
from workbench.store.execution import Execution
from workbench.store.judge_details import judge_in
from workbench.text.json_values import string


def judged_case(record: Execution) -> Judged:
    """Return the verdict on the case."""
    return Judged(record.state, record.answer, run=record.run_id)


def judged_criterion(record: Execution, criterion: str) -> Judged:
    """Return the verdict of one of the case's criteria."""
    result = record.scores[criterion]
    return Judged(result.status, record.answer, result.score, result.threshold, _judge_name(result), record.run_id)


def judged_label(record: Execution, criterion: str, label: str) -> Judged:
    """Return one label that a judge gave for a criterion."""
    result = record.scores.get(criterion)
    return Judged(label, record.answer, judge=_judge_name(result) if result else "", run=record.run_id)


def _judge_name(result: MetricResult) -> str:
    """Return the judge's model, or ""."""
    return string(judge_in(result.details).get("model"))


Standing: TypeAlias = Literal["now", "earlier verdict", "earlier answer"]


def standing(entry: Entry, record: Execution) -> Standing:
    """Return whether an entry applies to an execution.

    The agent may have given another answer since, or the criterion another verdict. A label applies as long as the
    answer is the same.
    """
    if entry.judged.answer != record.answer:
        return "earlier answer"
    result = record.scores.get(entry.about.criterion)
    now = result.status if entry.about.criterion and result is not None else record.state
    same = bool(entry.about.part) or entry.judged.says == now
    return "now" if same else "earlier verdict"


def deciding_criterion(record: Execution) -> str:
    """Return the criterion meant by an entry that names only the case.

    It is the only criterion that failed, or else the only one that passed. If there are several, return "".
    """
    for status in ("failed", "passed"):
        found = [result.name for result in record.scores.values() if result.status == status]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""


def by_judge(record: Execution, criterion: str) -> bool:
    """Return whether a judge gave the verdict on a criterion, or with "" the one on the case.

    A judge is a model or rules.
    """
    if criterion:
        return bool(judge_in(record.scores[criterion].details))
    return any(result.status == record.state and judge_in(result.details) for result in record.scores.values())
