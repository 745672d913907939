"""The pane "Change": a case before and after a changed verdict, and the differences of its files."""

import difflib
from collections.abc import Iterable, Iterator

from workbench.counting import counted
from workbench.history.summary import tool_steps
from workbench.rendering.changed import FileChange
from workbench.rendering.document import Document, Subject
from workbench.rendering.faces import FACES, HEURISTIC
from workbench.rendering.json_text import compact
from workbench.rendering.judge_texts import mark
from workbench.rendering.judged import is_heuristic, message_text
from workbench.rendering.lines import Line, Segment, beside, column_width, fold, hang, hang_text, heading, safe
from workbench.rendering.rows import View, remark
from workbench.scores import cut_score
from workbench.store import CaseRecord, Turn
from workbench.text import one_line

_LINES_OF_FILE = 60
_CONTEXT = 2
_LONGEST = 200_000


def applies(subject: Subject, criteria: frozenset[str]) -> bool:
    """Return whether the case had another verdict before."""
    return subject.change is not None and subject.record is not None


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane."""
    document = Document()
    change, record = subject.change, subject.record
    if change is None or record is None:
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
    add_before_and_after(document, change.before, record, view)
    document.gap()
    document.add(_files(change.files, view))
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
            one, other = (_answer(turn) if word == "answer" else _steps(turn, wanted=word) for turn in turns)
            if word != "results" or one != other:
                document.add(before_and_after(view, word, one, other, differs=one != other))
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
    if record.error is not None:
        segments.append(safe(f"  {record.error.message}"[:1000], face.variable))
    return segments


def _score(record: CaseRecord, name: str) -> list[Segment]:
    result = record.metrics.get(name)
    if result is None:
        return [Segment("not judged", "muted")]
    face = FACES[result.status]
    score = "" if result.score is None else f" {cut_score(result.score)}"
    threshold = "" if result.threshold is None else f" (threshold {cut_score(result.threshold)})"
    segments = [Segment(f"{face.glyph} {face.word}", face.variable), Segment(f"{score}{threshold}")]
    return [*segments, Segment(" "), mark(HEURISTIC)] if is_heuristic(result) else segments


def _steps(turn: Turn | None, *, wanted: str) -> list[Segment]:
    try:
        steps = tool_steps(turn.actual or {}) if turn is not None else []
    except (AttributeError, TypeError, LookupError):
        return [Segment("unknown format", "muted")]
    found = [call or result for call, result in steps if (result is None) == (wanted == "calls")]
    text = "\n".join(f"{name} {compact(value)}" for name, value in found)
    return [safe(text)] if text else [Segment("none", "muted")]


def _answer(turn: Turn | None) -> list[Segment]:
    text = message_text((turn.actual or {}).get("final_response") if turn else None)
    return [safe(text)] if text else [Segment("nothing", "muted")]


def _files(files: tuple[FileChange, ...] | None, view: View) -> Iterator[Line]:
    yield heading("changed files", view.width)
    if files is None:
        yield from remark("Unknown, because no watch was running. Press w to watch the files.", view)
    elif not files:
        yield from remark("No file that this case depends on has changed, so the agent itself varies.", view)
    for change in files or ():
        yield from hang_text([Segment(" ")], [safe(one_line(change.name), "strong")], view.width, 1)
        yield from _difference(change, view)


def difference_lines(lines: Iterable[str], view: View, gutter: int) -> Iterator[Line]:
    """Yield the lines of a unified diff in their colours."""
    for line in lines:
        style = {"+": "diff-extra", "-": "diff-missing", "@": "muted"}.get(line[:1], "")
        yield from hang_text([], [safe(line, style)], view.width, gutter)


def _difference(change: FileChange, view: View) -> Iterator[Line]:
    if change.before is None or change.after is None:
        yield from remark("Too large to store, or not text.", view)
        return
    if len(change.before) + len(change.after) > _LONGEST:
        yield from remark("Too long to compare here.", view)
        return
    lines = list(difflib.unified_diff(change.before.splitlines(), change.after.splitlines(), lineterm="", n=_CONTEXT))[
        2:
    ]
    most = len(lines) if view.full else _LINES_OF_FILE
    yield from difference_lines(lines[:most], view, 2)
    if len(lines) > most:
        yield fold(f"   … {counted(len(lines) - most, 'more line')}", view.width)
