"""The pane "Evidence" of a case: its error, turns, criteria, changes and settings."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.calls import value_lines
from workbench.results.cells import cell_len, cut_name
from workbench.results.claims import counted_sentences
from workbench.results.definition import case_faults, case_setting, criteria_part, fault_lines, file_document
from workbench.results.document import Document, Subject
from workbench.results.evidence_frame import WIDE, add_pieces, indent, labelled
from workbench.results.evidence_frame import room as room_of
from workbench.results.evidence_reasons import case_error_lines, thawed_lines
from workbench.results.evidence_turn import SCORES, turn_line, turn_pieces, turn_status
from workbench.results.faces import BY_FUNCTION, FACES, HOLDS, by_weight, glyph, score_line
from workbench.results.frozen import frozen_lines
from workbench.results.judged import criterion_tags, is_function, results
from workbench.results.lines import (
    Line,
    View,
    cut_line,
    flow,
    hang,
    has_style,
    joined,
    pad,
    remark,
    safe,
    shortened,
    wrap,
)
from workbench.results.questions import end_words
from workbench.results.sections import add_plugin_sections
from workbench.results.side_by_side import add_causes
from workbench.results.title import notes
from workbench.store.execution import CaseRecord, Turn
from workbench.text.counting import counted
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line

_DIFFERENT = frozenset({"diff-differs", "diff-missing", "diff-extra", "diff-moved"})


def build(subject: Subject, view: View, *, key: str = "K") -> Document:
    """Return the evidence of a case, or the facts of a file. In a full view, all turns are open and nothing is cut.

    `key` is the key that opens the choices for a call that is missing from a recording.
    """
    record = subject.record
    if record is None and subject.case is None:
        return file_document(subject.entry, view, subject.found)
    document = Document()
    if record is None or record.state == "queued":
        _add_definition(document, subject, view)
        return document
    _add_notes(document, subject, view)
    start = len(document.lines)
    document.add(case_error_lines(record, subject.state, view, key, subject.root))
    if record.thawed is not None:
        document.add(thawed_lines(record.thawed, view, drifted=bool(record.drifted)))
    unjudged = list(_whole_case(record, view, unjudged=True))
    whole = list(_whole_case(record, view, unjudged=False))
    if record.state == "not_evaluated":
        whole, unjudged = [*whole, *unjudged], []
    if whole and not failing_turns(record):
        # Without a failed turn, they are why the case did not pass, and the turns may fill the screen.
        document.add(whole)
        whole = []
    above = len(document.lines) > start
    document.gap()
    _add_turns(document, subject, record, view)
    if ended := end_words(record):
        document.add(labelled("end", "", wrap(Text.styled(ended, "strong"), room_of(view)), view))
    document.add(whole)
    _add_criteria(document, record, view)
    document.add(unjudged)
    _add_changes(document, subject, record, view)
    if setting := list(_setting(subject, view)):
        document.gap()
        document.add(setting)
    add_plugin_sections(document, "Evidence", subject, view)
    # The drift above the turns may be why a turn failed.
    if not record.drifted:
        _set_opening(document, record, above)
    return document


def _add_notes(document: Document, subject: Subject, view: View) -> None:
    """Add notes that qualify the verdict. A full view also describes how calls were replayed."""
    record = subject.record
    if record is not None and record.frozen is not None and view.full:
        document.add(frozen_lines(record.frozen, view))
    if line := notes(subject, view.width - len(indent(view)), replayed=not view.full):
        document.add([Text.assemble(indent(view), line)])


def _add_definition(document: Document, subject: Subject, view: View) -> None:
    """Add a case that has not run: its problems and notes, its turns, its criteria and its settings."""
    document.add(case_faults(subject, view))
    _add_notes(document, subject, view)
    _add_turns(document, subject, None, view)
    document.gap()
    if subject.entry is not None:
        document.add(criteria_part(subject.entry, view))
    if subject.case is not None:
        document.add(case_setting(subject.case, view, ran=False))


def place_in_case(record: CaseRecord) -> str:
    """Return the first failing turn as `turn 2 of 3`, or "" if none fails or there is only one turn."""
    failing = failing_turns(record)
    many = max(len(record.turns), len(record.expected or ()))
    return f"turn {failing[0] + 1} of {many}" if many > 1 and failing else ""


def failing_turns(record: CaseRecord) -> list[int]:
    """Return the indexes of the turns in which a metric failed or ended in an error."""
    return [index for index, turn in enumerate(record.turns) if turn_status(turn) in ("failed", "error")]


def _add_turns(document: Document, subject: Subject, record: CaseRecord | None, view: View) -> None:
    expected: Sequence[dict[str, Any]] | None = record.expected if record is not None else None
    if expected is None and subject.case is not None:
        expected = subject.case.turns
    turns: Sequence[Turn] = record.turns if record is not None else ()
    total = max(len(turns), len(expected or ()))
    failing = failing_turns(record) if record is not None and record.finished else []
    folded = True
    for index in range(total):
        turn = turns[index] if index < len(turns) else None
        reference = expected[index] if expected is not None and index < len(expected) else None
        if expected is not None and reference is None:
            reference = {}
        key = f"turn/{index}"
        opened = view.is_open(key) and not view.full
        foldable = (failing and index not in failing) or (record is not None and turn is None)
        selectable = turn is not None and turn.spans is not None and turn.actual is not None
        if foldable and not view.full and (selectable or not opened):
            document.begin_turn(spaced=not folded)
            line = turn_line(index, turn, reference, view, opened=opened)
            if selectable:
                document.add_item(key, [line], opens=True)
            else:
                document.add([line])
            folded = True
            if not opened:
                continue
        else:
            document.begin_turn(spaced=bool(index) and view.width >= WIDE)
        add_pieces(document, turn_pieces(record, index, 1 if foldable and opened else total, turn, reference, view))
        folded = False
    if record is not None and not total:
        document.add(remark("No turn yet." if record.state == "running" else "No turn took place.", view))


def _set_opening(document: Document, record: CaseRecord, above: bool) -> None:
    """Open at the running or the first failed turn, at its first difference, unless an error above ended the case."""
    failing = failing_turns(record)
    if record.state == "running":
        document.opening = len(record.turns) - 1 if record.turns else None
    elif failing and (record.state == "failed" or (record.state == "error" and not above)):
        document.opening = failing[0]
    if document.opening is None or not document.items:
        return
    start = document.turns[document.opening]
    below = [number for number, item in enumerate(document.items) if item.start >= start]
    document.opening_item = below[0] if below else 0
    for number in below:
        item = document.items[number]
        if item.start >= start + 8:  # No screen shows fewer rows of a turn.
            return
        lines = document.lines[item.start : item.end]
        if item.key.endswith(SCORES) or any(has_style(line, *_DIFFERENT) for line in lines):
            document.opening_item = number
            return


def _whole_case(record: CaseRecord, view: View, *, unjudged: bool) -> Iterator[Line]:
    """Yield why criteria were not met, unless a turn shows it: those not evaluated if `unjudged`, else all others."""
    for name, result in record.metrics.items():
        in_turns = {one.status for one in record.in_turns(name)}
        if result.status not in ("failed", "error", "not_evaluated") or result.status in in_turns or not result.reason:
            continue
        if (result.status == "not_evaluated") is not unjudged:
            continue
        face = FACES[result.status]
        mark = "differs" if result.status == "failed" else Text.styled(face.glyph, face.variable)
        lines = list(value_lines(result.details, room_of(view), view))
        lines = lines or wrap(safe(result.reason, "muted" if unjudged else ""), room_of(view))
        yield from labelled("case", mark, lines if view.full else shortened(lines, 4, room_of(view)), view)


def _add_criteria(document: Document, record: CaseRecord, view: View) -> None:
    """Add the criteria, the worst first, and a legend for the sign of a function."""
    own = record.custom_metrics
    judged: list[MetricResult] = [
        result
        for result in by_weight(list(record.metrics.values()))
        if result.status not in ("informational", "not_applicable") or result.name in own
    ]
    if not judged:
        return
    document.gap()
    document.add(cut_line(line, view.width) for line in _in_columns(record, judged, view))
    if any(map(is_function, record.metrics.values())):
        legend = f"{indent(view)}{BY_FUNCTION.glyph} function: a function judged, not a model"
        document.add([Text.styled(legend, "muted")])


def _in_columns(record: CaseRecord, judged: Sequence[MetricResult], view: View) -> Iterator[Line]:
    room = max(view.width - 2, 10)
    names = [one_line(result.name, limit=60) for result in judged]
    column = min(max(map(cell_len, names), default=0), max(view.width - (34 if view.width >= WIDE else 20), 12))
    for result, whole in zip(judged, names, strict=True):
        name = cut_name(whole, column, names)
        named: Line = Text.assemble(indent(view), glyph(result.status), pad(Text(f" {name}"), column + 3))
        tags, left = criterion_tags(record, result.name), room - column - 20
        more = [*tags, *_found(record, result)]
        beside = next((parts for parts in (more, tags) if joined(parts, "  ").cell_len <= left), [])
        yield named + pad(score_line(result), 13) + joined(beside, "  ")
        # Below the name, because below the score they would seem to belong to the next criterion.
        yield from hang(Text(), flow(more[len(beside) :], room - 4, "  "), 4)


def _found(record: CaseRecord, result: MetricResult) -> Iterator[Line]:
    """Yield the number of supported sentences and of met rubrics: `3 of 4 sentences`, `1 of 2 rubrics`."""
    turns = [turn.details for _, _, turn in results(record, result.name)]
    sentences = [
        item for details in turns for text in objects(details.get("texts")) for item in counted_sentences(text)
    ]
    if sentences:
        holding = sum(string(item.get("label")) in HOLDS for item in sentences)
        yield Text.styled(f"{holding} of {counted(len(sentences), 'sentence')}", "muted")
    rubrics = [item for details in turns for item in objects(details.get("rubrics"))]
    if rubrics:
        met = sum(string(mapping(item).get("verdict")) == "yes" for item in rubrics)
        yield Text.styled(f"{met} of {counted(len(rubrics), 'rubric')}", "muted")


def _add_changes(document: Document, subject: Subject, record: CaseRecord, view: View) -> None:
    """Add the changes since the case passed, if it passed before and no longer passes."""
    change, compared = subject.change, subject.compared
    if change is None or compared is None or change.before.state != "passed" or record.state == "passed":
        return
    document.gap()
    document.add([Text.styled(" changed since it passed", "label")])
    add_causes(document, compared, view)


def _setting(subject: Subject, view: View) -> Iterator[Line]:
    """Yield the problems that `check` found, and the settings of the case."""
    if subject.found and subject.entry is not None:
        yield from fault_lines(subject.found, subject.entry, view)
    if subject.case is not None:
        yield from case_setting(subject.case, view, ran=True)
