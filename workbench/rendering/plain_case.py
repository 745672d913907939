"""A case in plain text, for terminals and logs without a screen: the lines of its panes without styles."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.execution import CaseRecord
from workbench.metrics.description import Shown
from workbench.rendering import claims, diff, judge_pane, rubrics, score_pane, simulator
from workbench.rendering.document import Document, Subject
from workbench.rendering.frozen import frozen_mark
from workbench.rendering.judged import is_shown_in
from workbench.rendering.lines import BLANK, Line, hang, heading, text_of
from workbench.rendering.panes import criteria_of
from workbench.rendering.rows import View, remark
from workbench.rendering.title import title, verdict

_ASIDE = 6


def plain_case(record: CaseRecord, width: int) -> Iterator[str]:
    """Yield everything that the screen shows of a case, in safe lines of at most `width` cells (24 at least)."""
    for line in case_lines(record, width):
        yield text_of(line).rstrip()


def case_lines(record: CaseRecord, width: int) -> Iterator[Line]:
    """Yield styled lines of a case: title and verdict, the diff turn by turn, the scores and the judges' results.

    Only the prompts to judges are folded.
    """
    subject, view = Subject(record), View(max(width, 24), full=True)
    ending = verdict(subject)
    name = title(subject, view.width - sum(len(segment.text) for segment in ending) - 8)
    lines: list[Line] = [heading(name, view.width, ending)]
    if mark := frozen_mark(record.frozen):
        lines += remark(mark, view)
    lines += diff.build(subject, view).lines
    lines += [(), *score_pane.score_lines(subject, view, explained=False), *_judged_lines(subject, view), ()]
    yield from lines


def _judged_lines(subject: Subject, view: View) -> Iterator[Line]:
    """Yield the judges' results, each part after a blank line. The prompts are only in the report."""
    if subject.record is None or not subject.record.metrics:
        return
    criteria, brief = criteria_of(subject), View(view.width, stacked=True)
    documents: list[Document] = []
    if claims.applies(subject, criteria):
        documents.append(_with_asides(claims.build(subject, view), view))
    if rubrics.applies(subject, criteria):
        documents.append(rubrics.build(subject, view))
    voted = _only_voted(subject)
    if judge_pane.applies(voted, criteria_of(voted)):
        documents.append(judge_pane.build(voted, brief))
    if simulator.applies(subject, criteria):
        documents.append(simulator.build(subject, brief))
    for document in documents:
        yield BLANK
        yield from _without_hints(document.lines)


def _only_voted(subject: Subject) -> Subject:
    """Return the case with only those judged criteria that have no pane of their own."""
    record = subject.record
    assert record is not None
    own: tuple[Shown, ...] = ("claims", "rubrics", "simulator")
    metrics = {
        name: result for name, result in record.metrics.items() if not any(is_shown_in(name, where) for where in own)
    }
    return Subject(replace(record, scores=metrics, criteria={}), subject.entry, subject.case)


def _with_asides(document: Document, view: View) -> Document:
    """Return the document with the details of each item below it."""
    whole, end = Document(), 0
    for item in document.items:
        whole.add(document.lines[end : item.end])
        end = item.end
        if item.aside is not None:
            details = list(item.aside(max(view.width - _ASIDE, 20)))
            whole.add(hang([], details[1:], _ASIDE))  # The first line repeats the label.
    whole.add(document.lines[end:])
    return whole


def _without_hints(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines without hints about keys of the screen. Drop lines that are empty then."""
    for line in lines:
        rest = tuple(segment for segment in line if segment.style != "hint")
        if len(rest) == len(line) or any(segment.text.strip() for segment in rest):
            yield rest
