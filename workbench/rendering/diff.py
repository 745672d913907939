"""The pane "Diff": the reasons for a verdict, turn by turn, or the expected turns of a case that has not run."""

from collections.abc import Iterator
from typing import Any

from workbench.rendering.anchors import add_pieces
from workbench.rendering.document import Document, Subject
from workbench.rendering.error import error_lines
from workbench.rendering.file_view import case_faults, fault_lines, file_document
from workbench.rendering.lines import Line
from workbench.rendering.reference import case_setting, criteria_part
from workbench.rendering.rows import View, remark
from workbench.rendering.scores import verdict_head
from workbench.rendering.status import worst
from workbench.rendering.turn import turn_pieces
from workbench.store import CaseRecord


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane."""
    record = subject.record
    if record is None and subject.case is None:
        return file_document(subject.entry, view, subject.found)
    document = Document()
    if record is not None:
        document.add(_over_the_case(record, view))
    ran = record is not None and record.state != "queued"
    if not ran:
        document.add(case_faults(subject, view))
        if subject.entry is not None:
            document.add(criteria_part(subject.entry, view))
    elif subject.found and subject.entry is not None:
        document.add(fault_lines(subject.found, subject.entry, view))
    if subject.case is not None:
        document.add(case_setting(subject.case, view, ran=ran))
    above = bool(document.lines)
    _add_turns(document, subject, view, ran)
    if record is not None and document.turns:
        document.opening = _opening(record, bool(above))
        if document.items and document.opening is not None:
            start = document.turns[document.opening]
            document.opening_item = next((n for n, item in enumerate(document.items) if item.start >= start), 0)
    return document


def _over_the_case(record: CaseRecord, view: View) -> Iterator[Line]:
    """Yield the verdicts and errors of the case as a whole that are in no turn."""
    if record.error is not None:
        yield from error_lines(record.error, view)
    for result in record.metrics.values():
        in_turns = {turn.metrics[result.name].status for turn in record.turns if result.name in turn.metrics}
        if result.status in ("failed", "error", "not_evaluated") and result.status not in in_turns:
            yield from verdict_head(result, view)


def _add_turns(document: Document, subject: Subject, view: View, ran: bool) -> None:
    record, case = subject.record, subject.case
    expected: tuple[dict[str, Any], ...] | None = record.expected if record is not None and ran else None
    if expected is None and case is not None:
        expected = case.turns
    turns = record.turns if record is not None and ran else []
    total = max(len(turns), len(expected or ()))
    running = record is not None and record.state == "running"
    for index in range(total):
        document.begin_turn()
        turn = turns[index] if index < len(turns) else None
        reference = expected[index] if expected is not None and index < len(expected) else None
        if expected is not None and reference is None:
            reference = {}
        title = f"turn {index + 1} of {total}" if expected is not None or not running else f"turn {index + 1}"
        add_pieces(document, turn_pieces(title, index, turn, reference, view, running=running, judged=ran))
    if ran and not total:
        document.gap()
        document.add(remark("No turn yet." if running else "No turn took place.", view))


def _opening(record: CaseRecord, above: bool) -> int | None:
    """Return the first turn to show: the running or the first failed one.

    None if nothing failed in a turn, or if an error is shown above the turns.
    """
    if record.state == "running":
        return len(record.turns) - 1 if record.turns else None
    if record.state == "failed" or (record.state == "error" and not above):
        for index, turn in enumerate(record.turns):
            if worst(result.status for result in turn.metrics.values()) in ("failed", "error"):
                return index
    return None
