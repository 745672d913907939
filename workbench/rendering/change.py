"""The pane "Change": a case before and after a changed verdict, and why it changed."""

import difflib
from collections.abc import Iterable, Iterator

from workbench.execution import CaseRecord, Turn
from workbench.history.causes import ChangedFile
from workbench.history.compare import ComparedCase
from workbench.model.invocation import tool_steps
from workbench.rendering.document import Document, Subject
from workbench.rendering.faces import BY_FUNCTION, FACES
from workbench.rendering.json_text import compact
from workbench.rendering.judge_texts import mark
from workbench.rendering.judged import is_function, message_text
from workbench.rendering.lines import Line, Segment, beside, column_width, hang, hang_text, heading, safe
from workbench.rendering.rows import View, remark
from workbench.scores import cut_score
from workbench.text import one_line

_CAUSE = 13


def applies(subject: Subject, criteria: frozenset[str]) -> bool:
    """Return whether the case had another verdict before."""
    return subject.change is not None and subject.record is not None


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane."""
    document = Document()
    change, record, before = subject.change, subject.record, subject.before
    if change is None or record is None or before is None:
        return document
    if change.flaky:
        known = f"Known flaky: {change.flaky} when repeated. One more verdict proves little. Press X to repeat it."
        document.add(remark(known, view, "status-flaky"))
        document.gap()
    then, now = change.rates
    if then:
        differs = then != now
        document.add(before_and_after(view, "all repeats", [Segment(then)], [Segment(now)], differs=differs))
        document.gap()
    document.add([heading("why it changed", view.width)])
    if subject.compared is None:
        document.add(remark("comparing the two runs", view))
    else:
        add_causes(document, subject.compared, view)
    document.gap()
    document.add([heading("before and after", view.width)])
    add_before_and_after(document, before, record, view)
    return document


def add_before_and_after(document: Document, before: CaseRecord, after: CaseRecord, view: View) -> None:
    """Add a comparison of two executions of a case: their verdicts, and turn by turn the agent's actions."""
    document.add(before_and_after(view, "", _state(before), _state(after), differs=before.state != after.state))
    document.gap()
    names = dict.fromkeys([*before.metrics, *after.metrics])
    deciding = [name for name in names if not _only_informs(name, before, after)]
    for name in deciding:
        one, other = _score(before, name), _score(after, name)
        document.add(before_and_after(view, name, one, other, differs=one != other))
    for number in range(max(len(before.turns), len(after.turns))):
        document.begin_turn([heading(f"turn {number + 1}", view.width)])
        turns = [record.turns[number] if number < len(record.turns) else None for record in (before, after)]
        for word in ("calls", "results", "answer"):
            if word == "answer":
                one, other = map(_answer, turns)
                document.add(before_and_after(view, word, one, other, differs=one != other))
                continue
            before_steps, after_steps = (_steps(turn, wanted=word) for turn in turns)
            if word == "calls" or before_steps != after_steps:
                document.add(_steps_before_and_after(view, word, before_steps, after_steps))
    figures = [f"{name} {_figure(before, name)} → {_figure(after, name)}" for name in names if name not in deciding]
    if figures:
        document.gap()
        document.add(hang_text([Segment(" ")], [safe("   ".join(figures), "muted")], view.width, 1))


def _only_informs(name: str, *records: CaseRecord) -> bool:
    results = [record.metrics[name] for record in records if name in record.metrics]
    return all(result.status == "informational" for result in results)


def _figure(record: CaseRecord, name: str) -> str:
    result = record.metrics.get(name)
    return "none" if result is None or result.score is None else cut_score(result.score)


def before_and_after(
    view: View, word: str, before: list[Segment], after: list[Segment], *, differs: bool
) -> Iterator[Line]:
    """Yield a value before and after: in two columns if there is room, else in sequence. Equal values appear once."""
    if word:
        yield (Segment(f" {word}", "label"),)
    if not differs:
        yield from hang_text([Segment("   = ", "diff-same")], after, view.width, 5)
    elif view.side_by_side(*(segment.text for segment in (*before, *after))):
        width = column_width(view.width - 3)
        lines = beside(
            list(hang_text([Segment("− ", "diff-missing")], before, width, 2)),
            list(hang_text([Segment("+ ", "diff-extra")], after, width, 2)),
            width,
        )
        yield from hang([], lines, 3)
    else:
        yield from hang_text([Segment("   − ", "diff-missing")], before, view.width, 5)
        yield from hang_text([Segment("   + ", "diff-extra")], after, view.width, 5)


def _state(record: CaseRecord) -> list[Segment]:
    face = FACES[record.state]
    segments = [Segment(f"{face.glyph} {face.word}", face.variable)]
    if record.broken_by is not None:
        segments.append(safe(f"  {record.broken_by.message}"[:1000], face.variable))
    return segments


def _score(record: CaseRecord, name: str) -> list[Segment]:
    result = record.metrics.get(name)
    if result is None:
        return [Segment("not judged", "muted")]
    face = FACES[result.status]
    score = "" if result.score is None else f" {cut_score(result.score)}"
    threshold = "" if result.threshold is None else f" (threshold {cut_score(result.threshold)})"
    segments = [Segment(f"{face.glyph} {face.word}", face.variable), Segment(f"{score}{threshold}")]
    return [*segments, Segment(" "), mark(BY_FUNCTION)] if is_function(result) else segments


def _steps_before_and_after(view: View, word: str, before: list[str], after: list[str]) -> Iterator[Line]:
    """Yield calls or results before and after, in order. Each one that stayed the same appears once."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, after_start, after_end in matcher.get_opcodes() or [("equal", 0, 0, 0, 0)]:
        one, other = _joined(before[start:end]), _joined(after[after_start:after_end])
        yield from before_and_after(view, word, one, other, differs=tag != "equal")
        word = ""


def _joined(steps: list[str]) -> list[Segment]:
    return [safe("\n".join(steps))] if steps else [Segment("none", "muted")]


def _steps(turn: Turn | None, *, wanted: str) -> list[str]:
    try:
        steps = tool_steps(turn.actual or {}) if turn is not None else []
    except (AttributeError, TypeError, LookupError):
        return ["unknown format"]
    found = [call or result for call, result in steps if (result is None) == (wanted == "calls")]
    return [f"{name} {compact(value)}" for name, value in found]


def _answer(turn: Turn | None) -> list[Segment]:
    text = message_text((turn.actual or {}).get("final_response") if turn else None)
    return [safe(text)] if text else [Segment("nothing", "muted")]


def add_causes(document: Document, compared: ComparedCase, view: View) -> set[str]:
    """Add the likely causes of a change with the changed lines of files. Return the kinds of the causes."""
    case = compared.case
    causes = case.causes if case is not None else ()
    kinds: set[str] = {cause.kind for cause in causes}
    for cause in causes:
        lead = [Segment(f" {cause.kind.replace('_', ' ')}", "label")]
        document.add(hang_text(lead, [safe(cause.what)], view.width - 1, _CAUSE))
    if compared.trouble:
        document.add(remark(f"The two runs cannot be compared: {one_line(compared.trouble)}", view))
    elif case is not None and case.change == "unfinished":
        document.add(remark("One of the runs has no verdict for this case, so any change is unknown.", view))
    elif not causes:
        document.add(remark("The cause is unknown: no recorded input differs.", view))
    document.add(file_lines([file for file in compared.files if file.kind in kinds], view))
    return kinds


def file_lines(files: Iterable[ChangedFile], view: View) -> Iterator[Line]:
    """Yield the files of agents that differ, with the lines that differ."""
    for file in files:
        yield ()
        lead = [Segment(f" {file.kind} ", "label")]
        yield from hang_text(lead, [safe(one_line(file.path), "strong")], view.width, len(file.kind) + 2)
        if not file.lines:
            yield from remark("Its content was not stored.", view)
        yield from difference_lines(file.lines, view, 3)


def difference_lines(lines: Iterable[str], view: View, gutter: int) -> Iterator[Line]:
    """Yield the lines of a unified diff in their colours."""
    for line in lines:
        style = {"+": "diff-extra", "-": "diff-missing", "@": "muted"}.get(line[:1], "")
        yield from hang_text([], [safe(line, style)], view.width, gutter)
