"""The pane "Judge": every question to a judge, the replies word for word, and their cost."""

from collections.abc import Iterator
from itertools import groupby

from workbench.counting import counted
from workbench.events import MetricResult
from workbench.execution import CaseRecord
from workbench.json_values import mapping, string
from workbench.judge.judge_details import votes_differ
from workbench.metrics.registry import descriptions
from workbench.rendering.document import Document, Subject
from workbench.rendering.faces import FACES, SPLIT, VERDICTS, Status
from workbench.rendering.judge_texts import (
    cost_words,
    judged_results,
    leading_vote,
    mark,
    verdict_mark,
    vote_words,
)
from workbench.rendering.judged import JudgeQuestion, judge_of, judge_questions, reply_verdicts, results
from workbench.rendering.lines import BLANK, Line, Segment, flow, hang, heading, joined, safe
from workbench.rendering.replies import question_lines
from workbench.rendering.rows import View, label, part, under
from workbench.rendering.triaged import overridden
from workbench.text import one_line

_ABOUT = {
    "final_response_match": "does the answer match the reference?",
    "rubrics": "which rubrics are met?",
    "sentences": "what are the sentences of the text?",
    "claims": "what supports the sentences?",
    "user_message": "does the user's message follow the plan?",
    "simulated_user": "what does the user say next?",
    "score": "which score does your prompt give?",
}


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane, criterion by criterion, turn by turn."""
    document = Document()
    decisive: list[tuple[int, int]] = []
    for record, result in judged_results(document, subject.record, _is_relevant, view):
        document.add(_account(record, result, view))
        for turn, items in groupby(judge_questions(record, result.name), key=lambda item: item.turn):
            decisive.append((FACES[_status(record, result, turn)].rank, len(document.items)))
            _add_turn(document, subject, result, turn, list(items), view)
        document.add(_service(record, result, view))
    # The question that decided the verdict is the evidence.
    document.opening_item = min(decisive)[1] if decisive else 0
    return document


def _status(record: CaseRecord, result: MetricResult, turn: int | None) -> Status:
    """Return the verdict that questions about a turn, or the whole case, belong to."""
    return result.status if turn is None else record.turns[turn].metrics[result.name].status


def _account(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    questions = [item.question for item in judge_questions(record, result.name)]
    if questions:
        many = counted(len(questions), "question")
        yield from under(label("cost"), flow([(Segment(many, "muted"),), *cost_words(questions)], view.room))


def _add_turn(
    document: Document, subject: Subject, result: MetricResult, turn: int | None, items: list[JudgeQuestion], view: View
) -> None:
    assert subject.record is not None
    details = result.details if turn is None else subject.record.turns[turn].metrics[result.name].details
    ending: Line = ()
    leading = leading_vote(details)
    if leading:
        ending = joined([(verdict_mark(leading),), *([(mark(SPLIT),)] if votes_differ(details) else [])], "  ", "")
    title = "whole case" if turn is None else f"turn {turn + 1}"
    document.begin_turn([heading(title, view.width, ending)])
    document.add(under(label("verdict"), flow(vote_words(details, leading), view.room)))
    for place, item in enumerate(items):
        if place:
            document.add([BLANK])
        opened = view.is_open(item.key)
        kind = string(item.question.get("kind"))
        mine = overridden(subject, result.name, None if turn is None else turn + 1, "verdict", kind)
        lines = [*_question_head(item, view, mine), *question_lines(item.question, opened, view)]
        document.add_item(item.key, lines, opens=True)


def _question_head(item: JudgeQuestion, view: View, mine: Line) -> Iterator[Line]:
    """Yield `does the answer match the reference?  3 × ✓ valid`, and the cost."""
    kind = string(item.question.get("kind"))
    about = _ABOUT.get(kind) or one_line(kind, limit=60) or "a question"
    head: list[Line] = [(Segment(about, "strong"),)]
    for verdict, many in reply_verdicts(item.question).items():
        if verdict in VERDICTS:
            head.append((Segment(f"{many} × ", "muted"), verdict_mark(verdict)))
    yield from hang([], flow([*head, *cost_words([item.question]), mine[:1]], max(view.width - 1, 10)), 1)


def _service(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the explanations of Google's evaluation service for each turn. It gets no questions of ours."""
    for index, _, turn in results(record, result.name):
        explanation = string(turn.details.get("explanation"))
        fault = mapping(turn.details.get("error"))
        if not explanation and not fault:
            continue
        yield heading(f"turn {index + 1}", view.width)
        if explanation:
            yield from part("service", [safe(explanation)], view)
        if fault:
            message = f"{string(fault.get('kind'))} {string(fault.get('code'))}: {string(fault.get('message'))}"
            yield from part("error", [safe(message, "status-error")], view)


def _is_relevant(record: CaseRecord, result: MetricResult) -> bool:
    """Return whether this criterion asks a judge or a service."""
    info = descriptions().get(result.name)
    if info is not None and (info.needs_judge or info.needs_service):
        return True
    if judge_of(result) or any(True for _ in judge_questions(record, result.name)):
        return True
    return any(string(turn.details.get("explanation")) for _, _, turn in results(record, result.name))


def applies(subject: Subject, criteria: frozenset[str]) -> bool:
    """Return whether a case has this pane."""
    record = subject.record
    rows = descriptions()
    if any(name in rows and (rows[name].needs_judge or rows[name].needs_service) for name in criteria):
        return True
    return record is not None and any(_is_relevant(record, result) for result in record.metrics.values())
