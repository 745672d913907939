"""Two executions of a case side by side, in the layout of the evidence: verdicts, turns, scores and likely causes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.files.invocation import content_text, intermediate_texts, tool_calls, tool_results
from workbench.freshness.changed_files import ChangedFile
from workbench.results.cells import cell_len, cut_name
from workbench.results.document import Document, Subject
from workbench.results.evidence_frame import WIDE, indent, labelled, numbered, room, side, side_room
from workbench.results.evidence_turn import turn_pieces
from workbench.results.faces import BY_FUNCTION, FACES, glyph, score_text
from workbench.results.judged import is_function, mark
from workbench.results.lines import GLYPHS, Line, View, cut_line, flow, hang, hang_text, pad, remark, safe, wrap
from workbench.results.run_comparison import ComparedCase
from workbench.store.execution import CaseRecord, Turn
from workbench.text.counting import cut_score
from workbench.text.safe_text import one_line

_CAUSE = 13
"""The width of the column with the kinds of causes, in cells."""
_ARROW: Line = Text.styled(" → ", "muted")
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_PART = re.compile(r"@@ -[0-9,]+ \+([0-9]+)(?:,[0-9]+)? @@")


def add_causes(document: Document, compared: ComparedCase, view: View) -> set[str]:
    """Add the likely causes of a change and the changed lines of files. Return the kinds of the causes."""
    case = compared.case
    causes = case.causes if case is not None else ()
    kinds: set[str] = {cause.kind for cause in causes}
    for cause in causes:
        files = [file for file in compared.files if file.kind == cause.kind]
        if not any(file.path == cause.what for file in files):
            lead = Text.styled(f" {cause.kind.replace('_', ' ')}", "label")
            document.add(hang_text(lead, safe(cause.what), view.width - 1, _CAUSE))
        document.add(file_lines(files, view))
    if compared.trouble:
        document.add(remark(f"The two runs cannot be compared: {one_line(compared.trouble)}", view))
    elif case is not None and case.change == "unfinished":
        document.add(remark("One of the runs has no verdict for this case, so any change is unknown.", view))
    elif not causes:
        document.add(remark("The cause is unknown: no recorded input differs.", view))
    return kinds


def file_lines(files: Iterable[ChangedFile], view: View) -> Iterator[Line]:
    """Yield each changed file: its path with the number of the first changed line, then the changed lines."""
    for file in files:
        first = next(filter(None, map(_line_number, file.lines)), "")
        place = one_line(f"{file.path}:{first}" if first else file.path)
        yield from hang_text(Text.styled(f" {file.kind}", "label"), safe(place, "strong"), view.width - 1, _CAUSE)
        if not file.lines:
            yield from remark("Its content was not stored.", view)
        yield from diff_lines(file.lines, view, 3)


def diff_lines(lines: Iterable[str], view: View, gutter: int) -> Iterator[Line]:
    """Yield the lines of a unified diff as `− old` and `+ new`, with the line number between hunks."""
    begun = False
    for line in lines:
        if number := _line_number(line):
            if begun:
                yield from hang_text(Text(), Text.styled(f"line {number}", "muted"), view.width, gutter)
            begun = True
            continue
        begun = True
        sign, style = {"+": ("+ ", "diff-extra"), "-": ("− ", "diff-missing")}.get(line[:1], ("  ", ""))
        lead = Text.assemble(" " * gutter, (sign, style))
        yield from hang_text(lead, safe(line[1:], style), view.width, gutter + 2)


def _line_number(line: str) -> str:
    """Return the new file's line number in the heading of a hunk, or "" for any other line of a diff."""
    found = _PART.match(line)
    return found[1] if found is not None else ""


def add_compared(document: Document, before: CaseRecord, after: CaseRecord, view: View) -> None:
    """Add the verdicts of two executions, then the agent's actions in each turn, then the scores."""
    view = replace(view, sides=("before", "after"))
    document.add(_verdicts(before, after, view))
    add_turns(document, before.turns, after.turns, after, view)
    names = dict.fromkeys([*before.metrics, *after.metrics])
    judged = {name for one in (before, after) for name in one.metrics if one.metrics[name].status != "informational"}
    informs = [name for name in names if name not in judged]
    document.gap()
    document.add(_scores(before, after, [name for name in names if name in judged], view))
    figures = [(name, _figure(before, name), _figure(after, name)) for name in informs]
    words = [safe(f"{name} {now if then == now else f'{then} → {now}'}", "muted") for name, then, now in figures]
    document.add(hang(Text(" "), flow(words, view.width - 1, "   "), 1))


def add_turns(
    document: Document, then: Sequence[Turn], now: Sequence[Turn], record: CaseRecord | None, view: View, start: int = 0
) -> None:
    """Add the turns of two executions: `then` of the earlier one, and `now` of the later one.

    `record` is the later execution, or None before it starts. `view.sides` are the names of the executions. Turns
    before `start`, and equal turns, take one line each.
    """
    total = max(len(then), len(now))
    for number in range(total):
        one, other = (side[number] if number < len(side) else None for side in (then, now))
        if number < start or (one is not None and other is not None and is_same(one, other)):
            document.begin_turn(spaced=False)
            turn = other or one
            said = "" if turn is None else one_line(content_text(turn.user), limit=200)
            line = cut_line(Text.styled(said, "muted"), room(view))
            document.add(labelled(numbered("turn", number + 1), "same", [line], view))
            continue
        document.begin_turn(spaced=view.width >= WIDE)
        # Another execution is no reference, so verdicts of its turns would not explain what differs.
        later = None if other is None else replace(other, metrics={})
        for piece in turn_pieces(
            record, number, total, later, {} if one is None else {**one.so_far, "user_content": one.user}, view
        ):
            document.add(piece.lines)


def is_same(one: Turn, other: Turn) -> bool:
    """Return whether two turns have the same message, calls, results and answers. A malformed turn equals no other."""
    try:
        return _done(one) == _done(other)
    except _MALFORMED:
        return False


def is_as_expected(subject: Subject) -> bool:
    """Return whether a case finished exactly as its file expects. End states and expected tool results give False."""
    record, case = subject.record, subject.case
    if record is None or case is None or not record.finished or record.final_session_state is not None:
        return False
    expected, turns = case.turns or (), record.turns
    try:
        return len(expected) == len(turns) > 0 and all(map(_is_expected, expected, turns))
    except _MALFORMED:
        return False


def _is_expected(expected: dict[str, Any], turn: Turn) -> bool:
    if turn.actual is None or any(result is not None for result in tool_results(expected)):
        return False
    wanted, got = (content_text(one.get("final_response")) for one in (expected, turn.so_far))
    steps = _before_the_answer(expected, expected.get("user_content"))
    return wanted == got and steps == _before_the_answer(turn.so_far, turn.user)


def _done(turn: Turn) -> tuple[Any, ...]:
    did = turn.so_far
    results = [result and result.get("response") for result in tool_results(did)]
    return _before_the_answer(did, turn.user), results, did.get("final_response"), turn.actual is not None


def _before_the_answer(invocation: dict[str, Any], user: dict[str, Any] | None) -> tuple[Any, ...]:
    """Return the user's message, the tool calls and the texts before the answer."""
    calls = [(call.name, call.args) for call in tool_calls(invocation)]
    return content_text(user), calls, intermediate_texts(invocation)


def _verdicts(before: CaseRecord, after: CaseRecord, view: View) -> Iterator[Line]:
    """Yield `case ≠ ✓ pass → ! error`, then the errors."""
    faces = [FACES[before.state], FACES[after.state]]
    words: list[Line] = [Text.styled(f"{face.glyph} {face.word}", face.variable) for face in faces]
    differs = before.state != after.state
    lines = list(flow([words[0], _ARROW + words[1]] if differs else words[1:], room(view), ""))
    errors = [None if record.broken_by is None else record.broken_by.message for record in (before, after)]
    for name, error in zip(("missing", "extra"), errors, strict=True):
        if error is not None and (differs or errors[0] != errors[1] or name == "extra"):
            lines += side(name, wrap(safe(error[:1000], "status-error"), side_room(view)), view)
    return labelled("case", "differs" if differs else "same", lines, view)


def _scores(before: CaseRecord, after: CaseRecord, names: Sequence[str], view: View) -> Iterator[Line]:
    """Yield a line for each criterion, `≠ ✓ 1.00 ≥ 1.00 → ✗ 0.66 < 1.00` if it differs."""
    longest = max((cell_len(one_line(name, limit=60)) for name in names), default=0)
    column = min(longest, view.width - 40) if view.width >= WIDE else 0
    for name in names:
        one, other = (_score(record.metrics.get(name)) for record in (before, after))
        relation = "same" if one == other else "differs"
        lead: Line = Text.styled(f"{indent(view)}{GLYPHS[relation]} ", f"diff-{relation}")
        shown = cut_name(one_line(name, limit=60), column or view.width - 8)
        named = pad(Text(shown), column + 2) if column else Text(f"{shown}  ")
        parts = [named, one, _ARROW + other] if one != other else [named, other]
        gutter = lead.cell_len
        yield from hang(lead, flow(parts, view.width - gutter, ""), gutter)


def _score(result: MetricResult | None) -> Line:
    if result is None:
        return Text.styled("not judged", "muted")
    face = FACES[result.status]
    line: Line = Text.assemble(glyph(result.status), (f" {score_text(result) or face.word}", face.variable))
    return Text.assemble(line, " ", mark(BY_FUNCTION)) if is_function(result) else line


def _figure(record: CaseRecord, name: str) -> str:
    result = record.metrics.get(name)
    return "none" if result is None or result.score is None else cut_score(result.score)
