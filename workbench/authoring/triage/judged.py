"""What was judged of a case, as it is put down beside what the user says of it."""

from typing import Literal, TypeAlias

from workbench.authoring.triage.entry import Entry, Judged
from workbench.dependencies.record import digest
from workbench.events import MetricResult
from workbench.history.judge_named import judge_in
from workbench.history.summary import texts, tool_steps
from workbench.json_values import mapping, string
from workbench.store import CaseRecord


def answer_of(record: CaseRecord) -> str:
    """A digest of what the agent said and which tools it called, turn by turn: equal for two executions that anybody
    would judge alike. Of a case that broke off also how."""
    turns = []
    for turn in record.turns:
        actual = mapping(turn.actual)
        calls = [call for call, result in tool_steps(actual) if result is None]
        turns.append([texts(actual.get("final_response")), calls])
    return digest([turns, None if record.error is None else record.error.kind])


def judged_case(record: CaseRecord) -> Judged:
    """The verdict over the case."""
    return Judged(record.state, answer_of(record), run=record.run_id)


def judged_criterion(record: CaseRecord, criterion: str) -> Judged:
    """The verdict of one criterion, which the case has."""
    result = record.metrics[criterion]
    return Judged(result.status, answer_of(record), result.score, result.threshold, _judge_name(result), record.run_id)


def judged_label(record: CaseRecord, criterion: str, label: str) -> Judged:
    """One label that a judge gave on the way to the verdict of a criterion."""
    result = record.metrics.get(criterion)
    return Judged(label, answer_of(record), judge=_judge_name(result) if result else "", run=record.run_id)


def _judge_name(result: MetricResult) -> str:
    """The model that judged; "" where none did."""
    return string(judge_in(result.details).get("model"))


Standing: TypeAlias = Literal["now", "earlier verdict", "earlier answer"]


def standing(entry: Entry, record: CaseRecord, answer: str) -> Standing:
    """Whether an entry is about what a record (with this answer) holds: the agent may have answered otherwise since, or
    the criterion may judge the same answer otherwise. A label stands as long as the answer does."""
    if entry.judged.answer != answer:
        return "earlier answer"
    result = record.metrics.get(entry.about.criterion)
    now = result.status if entry.about.criterion and result is not None else record.state
    same = bool(entry.about.part) or entry.judged.says == now
    return "now" if same else "earlier verdict"


def deciding_criterion(record: CaseRecord) -> str:
    """The criterion that a word on the case is about where it names none: the only one that failed or, if none did,
    the only one that decided; "" where there are several."""
    for status in ("failed", "passed"):
        found = [result.name for result in record.metrics.values() if result.status == status]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""
