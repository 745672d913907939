"""Judged verdicts of a case, as triage entries record them."""

from typing import Literal, TypeAlias

from workbench.authoring.triage.entry import Entry, Judged
from workbench.dependencies.record import digest
from workbench.events import MetricResult
from workbench.history.summary import texts, tool_steps
from workbench.json_values import mapping, string
from workbench.judge.judge_details import judge_in
from workbench.store import CaseRecord


def answer_of(record: CaseRecord) -> str:
    """Return a digest of the agent's answers and tool calls, turn by turn.

    It is equal for two executions with the same judgement. It includes the error of a case that broke off.
    """
    turns = []
    for turn in record.turns:
        actual = mapping(turn.actual)
        calls = [call for call, result in tool_steps(actual) if result is None]
        turns.append([texts(actual.get("final_response")), calls])
    return digest([turns, None if record.broken_by is None else record.broken_by.kind])


def judged_case(record: CaseRecord) -> Judged:
    """Return the verdict on the case."""
    return Judged(record.state, answer_of(record), run=record.run_id)


def judged_criterion(record: CaseRecord, criterion: str) -> Judged:
    """Return the verdict of one of the case's criteria."""
    result = record.metrics[criterion]
    return Judged(result.status, answer_of(record), result.score, result.threshold, _judge_name(result), record.run_id)


def judged_label(record: CaseRecord, criterion: str, label: str) -> Judged:
    """Return one label that a judge gave for a criterion."""
    result = record.metrics.get(criterion)
    return Judged(label, answer_of(record), judge=_judge_name(result) if result else "", run=record.run_id)


def _judge_name(result: MetricResult) -> str:
    """Return the judge's model, or ""."""
    return string(judge_in(result.details).get("model"))


Standing: TypeAlias = Literal["now", "earlier verdict", "earlier answer"]


def standing(entry: Entry, record: CaseRecord, answer: str) -> Standing:
    """Return whether an entry applies to a record with this answer.

    The agent may have given another answer since, or the criterion another verdict. A label applies as long as the
    answer is the same.
    """
    if entry.judged.answer != answer:
        return "earlier answer"
    result = record.metrics.get(entry.about.criterion)
    now = result.status if entry.about.criterion and result is not None else record.state
    same = bool(entry.about.part) or entry.judged.says == now
    return "now" if same else "earlier verdict"


def deciding_criterion(record: CaseRecord) -> str:
    """Return the criterion meant by an entry that names only the case.

    It is the only criterion that failed, or else the only one that passed. If there are several, return "".
    """
    for status in ("failed", "passed"):
        found = [result.name for result in record.scores.values() if result.status == status]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""


def by_judge(record: CaseRecord, criterion: str) -> bool:
    """Return whether a judge gave the verdict on a criterion, or with "" the one on the case.

    A judge is a model or rules.
    """
    if criterion:
        return bool(judge_in(record.scores[criterion].details))
    return any(result.status == record.state and judge_in(result.details) for result in record.scores.values())
