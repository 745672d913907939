"""The evidence of one case on one screen: the turn that differs first, the rest folded into one line."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from workbench.counting import counted
from workbench.events import MetricResult
from workbench.execution import CaseRecord, Turn
from workbench.metrics.registry import descriptions
from workbench.model.invocation import content_text, tool_calls
from workbench.rendering.calls import (
    accepted_lines,
    aligned_rows,
    brief_call,
    call_lines,
    made_calls,
    rule_words,
    type_and_value,
    value_lines,
)
from workbench.rendering.cells import cell_len
from workbench.rendering.document import Document, Subject
from workbench.rendering.frozen_miss import case_error_lines
from workbench.rendering.judged import shown_in
from workbench.rendering.lines import (
    BLANK,
    Line,
    Segment,
    cut_line,
    flow,
    fold,
    hang,
    heading,
    pad,
    safe,
    shortened,
    width_of,
    wrap,
)
from workbench.rendering.review.frame import brief, gutter, indent, is_wide, labelled, room, side, side_room
from workbench.rendering.review.reasons import reason_lines
from workbench.rendering.rows import GLYPHS, GUTTER, View
from workbench.rendering.scores import chips
from workbench.rendering.status import badge, worst
from workbench.rendering.texts import both_sides, text_lines
from workbench.text import one_line

_ALIKE = 2
"""Maximum number of equal calls in a row that are each shown."""
_ANSWER_LINES = 3
_SIDE_LINES = 4
_DIFFERENCES = 3
_TYPE = 12
"""The width kept free for the type beside a long value, in cells."""
_UNLIMITED = 1_000_000
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_CALL_STYLES = {"missing": "diff-missing", "extra": "diff-extra"}


def evidence(subject: Subject, view: View) -> Document:
    """Return the page of one case. A full view has all turns, and nothing is cut."""
    document = Document()
    record = subject.record
    if record is None:
        document.add([(Segment(" The case has not run.", "muted"),)])
        return document
    if record.error is not None:
        document.add(case_error_lines(record, subject.state, view, "esc, then K"))
        document.gap()
    shown = range(len(record.turns)) if view.full else _turn_shown(record)
    whole = list(_whole_case(record, view))
    # Without a failed turn, they are why the case failed, and the turns may fill the screen.
    first = bool(whole) and not failing_turns(record)
    if first:
        document.add(whole)
        document.gap()
    for index in shown:
        if len(record.turns) > 1 and view.full:
            words = f"turn {index + 1} of {len(record.turns)}"
            document.begin_turn([heading(words, view.width, _turn_badge(record, index))])
        document.add(_turn(record, index, view))
    document.add(() if first else whole)
    document.gap()
    document.add(_scores(record, view))
    document.add(_rest(record, shown, view))
    return document


def place_in_case(record: CaseRecord) -> str:
    """Return `turn 2 of 3`, the turn on the page, or "" if there is only one."""
    shown = _turn_shown(record)
    many = max(len(record.turns), len(record.expected or ()))
    return f"turn {shown.start + 1} of {many}" if many > 1 and shown else ""


def failing_turns(record: CaseRecord) -> list[int]:
    """Return the turns with a failed or broken metric, counted from 0."""
    return [
        index
        for index, turn in enumerate(record.turns)
        if worst(result.status for result in turn.metrics.values()) in ("failed", "error")
    ]


def _turn_shown(record: CaseRecord) -> range:
    """Return the first turn that failed, else the last one."""
    if not record.turns:
        return range(0)
    first = next(iter(failing_turns(record)), len(record.turns) - 1)
    return range(first, first + 1)


def _turn_badge(record: CaseRecord, index: int) -> Line:
    status = worst(result.status for result in record.turns[index].metrics.values())
    return badge(status) if status else ()


# One turn


def _turn(record: CaseRecord, index: int, view: View) -> Iterator[Line]:
    turn = record.turns[index]
    expected = record.expected[index] if record.expected is not None and index < len(record.expected) else None
    if record.error is not None and turn.actual is None:
        # The turn broke off. That it lacks calls and the answer is no evidence.
        expected = None
    parts = [_user(turn, view), *_calls_and_answer(turn, expected, view), reason_lines(turn, view)]
    space = is_wide(view)
    above = False
    for part in parts:
        lines = list(part)
        if lines and above and space:
            yield BLANK
        yield from lines
        above = above or bool(lines)


def _calls_and_answer(turn: Turn, expected: dict[str, Any] | None, view: View) -> Iterator[list[Line]]:
    try:
        yield list(_calls(turn, expected, view))
        yield list(_answer(turn, expected, turn.so_far or {}, view))
    except _MALFORMED:
        # Journals can hold anything. The pane of the case shows such a turn as raw JSON.
        yield [(Segment(" This turn does not have ADK's format: 1 shows it as recorded.", "status-error"),)]


def _user(turn: Turn, view: View) -> Iterator[Line]:
    try:
        text = content_text(turn.user)
    except _MALFORMED:
        text = ""
    if text:
        yield from labelled("user", "", brief(text, view, 2, "user"), view)


def _calls(turn: Turn, expected: dict[str, Any] | None, view: View) -> Iterator[Line]:
    scored = turn.metrics.get(shown_in(turn.metrics, "calls"))
    made = made_calls(turn, scored) or []
    if expected is None:
        for number, call in enumerate(made, 1):
            yield from labelled(_call_name(number), "", [brief_call(_as_json(call), room(view))], view)
        return
    rows = aligned_rows(tool_calls(expected), made, scored)
    numbered = list(enumerate(rows, 1))
    for mark, several in groupby(numbered, key=lambda item: item[1]["mark"]):
        group = list(several)
        if mark == "same" and len(group) > _ALIKE and not view.full:
            yield _matching(group, view)
            continue
        for number, row in group:
            yield from _call(number, row, view)


def _matching(group: Sequence[tuple[int, dict[str, Any]]], view: View) -> Line:
    names = ", ".join(dict.fromkeys(one_line(str(row["actual"].get("name")), limit=60) for _, row in group))
    words: Line = (Segment(f"{counted(len(group), 'call')} match  ", "fold"), Segment(names, "muted"))
    return next(iter(labelled("calls", "same", [cut_line(words, room(view))], view)))


def _call(number: int, row: dict[str, Any], view: View) -> Iterator[Line]:
    mark, whole = row["mark"], room(view)
    found = [item for item in row.get("differences") or () if isinstance(item, dict)]
    paths = frozenset(str(item.get("path", "")) for item in found)
    call = row.get("actual") or row.get("expected") or {}
    note = _note(row)
    width = whole - (width_of(note) + 2 if note else 0)
    if view.full and not found:
        lines = call_lines(call, whole, view)
        lines = [*lines, note] if note else lines
    elif note and width >= 16:
        lines = [(*brief_call(call, width, paths), Segment("  "), *note)]
    else:
        lines = [brief_call(call, whole, paths), *([note] if note else [])]
    yield from labelled(_call_name(number), mark, lines, view)
    body = [*_differences(found, row, view), *accepted_lines(row, view)]
    yield from hang([], body, gutter(view))


def _note(row: dict[str, Any]) -> Line:
    """Return `not called`, `not expected`, or `expected as call 2`."""
    mark = row["mark"]
    if mark in ("missing", "extra"):
        return (Segment("not called" if mark == "missing" else "not expected", _CALL_STYLES[mark]),)
    wanted = row.get("expected_index")
    if mark == "moved" and isinstance(wanted, int):
        return (Segment(f"expected as call {wanted + 1}", "diff-moved"),)
    return ()


def _differences(found: Sequence[dict[str, Any]], row: dict[str, Any], view: View) -> Iterator[Line]:
    """Yield both sides of each difference, with its path if there are several."""
    kept = found if view.full else found[:_DIFFERENCES]
    for item in kept:
        path = one_line(str(item.get("path", "")).removeprefix("args").lstrip("."), limit=60)
        if len(found) > 1 and path:
            yield cut_line((Segment(path, "label"),), room(view))
        values = {name: type_and_value(item, name) for name in ("expected", "actual")}
        if rule := rule_words(item):
            values["expected"] = ("nothing", rule)
        column = min(max(cell_len(value) for _, value in values.values()), side_room(view) - _TYPE)
        for sign, name, mark in (("−", "expected", "missing"), ("+", "actual", "extra")):
            kind, value = values[name]
            text: Line = (Segment(value, f"mark-{mark}"),)
            if kind not in ("nothing", "true/false"):
                text = (*pad(text, column), Segment(f"  {kind}", "muted"))
            yield from side(sign, name, mark, wrap(text, side_room(view)), view)
    beyond = row.get("more_differences")
    more = len(found) - len(kept) + (beyond if isinstance(beyond, int) else 0)
    if more:
        yield fold(f"▸ {counted(more, 'more value')} differ", room(view))


def _answer(turn: Turn, expected: dict[str, Any] | None, actual: dict[str, Any], view: View) -> Iterator[Line]:
    given = actual.get("final_response")
    got = None if given is None else content_text(given)
    reference = None if expected is None else expected.get("final_response")
    wanted = None if reference is None else content_text(reference)
    most = _UNLIMITED if view.full else _SIDE_LINES
    if got is None and wanted is None:
        return
    if got is None or (not got and wanted):
        expected_lines = shortened(text_lines(wanted or "", side_room(view), view), most, side_room(view))
        lines = [*side("−", "expected", "missing", expected_lines, view)]
        lines.append((Segment("the agent gave none", "diff-missing"),))
        yield from labelled("answer", "missing", lines, view)
    elif wanted == got:
        yield from labelled("answer", "same", brief(got, view, _ANSWER_LINES), view)
    elif wanted is None or not _answer_matters(turn):
        yield from labelled("answer", "", brief(got, view, _ANSWER_LINES), view)
    else:
        scored = turn.metrics.get(shown_in(turn.metrics, "words"))
        marks = (scored.details.get("expected_marks"), scored.details.get("actual_marks")) if scored else (None, None)
        left, right, note = both_sides(wanted, got, side_room(view), view, marks)
        lines = [
            *side("−", "expected", "missing", shortened(left, most, side_room(view)), view),
            *side("+", "actual", "extra", shortened(right, most, side_room(view)), view),
        ]
        yield from labelled("answer", "differs", lines, view)
        if note:
            yield from hang([], wrap([Segment(note, "muted")], room(view)), gutter(view))


def _answer_matters(turn: Turn) -> bool:
    """Return whether the difference to the reference may be a reason for the verdict.

    It is not if every criterion that compares answers passed.
    """
    rows = descriptions()
    judged = [result for name, result in turn.metrics.items() if name in rows and rows[name].compares_answers]
    return any(result.status != "passed" for result in judged) or not turn.metrics


# The case as a whole


def _whole_case(record: CaseRecord, view: View) -> Iterator[Line]:
    """Yield the reasons of criteria that judge the conversation, not a turn."""
    for name, result in record.metrics.items():
        judged = any(name in turn.metrics for turn in record.turns)
        if result.status in ("failed", "error", "not_evaluated") and not judged and result.reason:
            width = max(view.width - gutter(view), 10)
            values = list(value_lines(result.details, View(width + GUTTER, view.full)))
            lines = values or list(wrap([safe(result.reason)], width))
            lead: Line = (Segment(f" {GLYPHS['differs']} case", "diff-differs"),)
            yield from hang(lead, lines if view.full else shortened(lines, 4, view.width - gutter(view)), gutter(view))


def _scores(record: CaseRecord, view: View) -> Iterator[Line]:
    judged = [one for one in record.metrics.values() if one.status not in ("informational", "not_applicable")]
    if judged:
        yield (Segment(indent(view)), *chips(_failing_first(judged), view.width - len(indent(view))))


def _failing_first(results: Iterable[MetricResult]) -> list[MetricResult]:
    return sorted(results, key=lambda result: result.status == "passed")


def _rest(record: CaseRecord, shown: range, view: View) -> Iterator[Line]:
    """Yield what is not on the page: `▸ turns 1 and 3 match (enter)   ▸ tool results (pane 3)`."""
    others = [index for index in range(len(record.turns)) if index not in shown]
    failing = [index for index in failing_turns(record) if index in others]
    words = []
    if failing:
        words.append(f"{_turns(failing)} {'fails' if len(failing) == 1 else 'fail'}, too")
    if matching := [index for index in others if index not in failing]:
        words.append(f"{_turns(matching)} {'matches' if len(matching) == 1 else 'match'}")
    if others:
        words[-1] += " (enter)"
    words += ["tool results (pane 3)", "trace (pane 4)"]
    parts: list[Line] = [(Segment(f"▸ {word}", "fold"),) for word in words]
    for line in flow(parts, view.width - len(indent(view)), "   "):
        yield (Segment(indent(view)), *line)


def _turns(indexes: Sequence[int]) -> str:
    """Return `turn 2`, `turns 1 and 3`, or `4 turns`."""
    numbers = [str(index + 1) for index in indexes]
    if len(numbers) == 1:
        return f"turn {numbers[0]}"
    return f"turns {', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) < 4 else counted(len(numbers), "turn")


def _call_name(number: int) -> str:
    return f"call {number}" if number < 10 else f"call{number}"


def _as_json(call: Any) -> dict[str, Any]:
    return {"name": call.name, "args": call.args}
