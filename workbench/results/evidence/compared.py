"""Two executions of a case in the form of the evidence: turn by turn what the agent did, then the verdicts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.files.invocation import content_text, intermediate_texts, tool_calls, tool_results
from workbench.results.cells import cell_len, cut_name
from workbench.results.document import Document, Subject
from workbench.results.evidence.turn import turn_pieces
from workbench.results.faces import BY_FUNCTION, FACES
from workbench.results.frame import indent, is_wide, labelled, numbered, room, side, side_room
from workbench.results.judge_texts import mark
from workbench.results.judged import is_function
from workbench.results.lines import Line, cut_line, flow, hang, pad, safe, wrap
from workbench.results.rows import GLYPHS, View
from workbench.results.status import glyph, score_text
from workbench.store.execution import CaseRecord, Turn
from workbench.text.counting import cut_score
from workbench.text.safe_text import one_line

_ARROW: Line = Text.styled(" → ", "muted")
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def add_compared(document: Document, before: CaseRecord, after: CaseRecord, view: View) -> None:
    """Add the verdicts of two executions, what the agent did in each turn, and the scores."""
    view = replace(view, sides=("before", "after"))
    document.add(_verdicts(before, after, view))
    add_turns(document, before.turns, after.turns, after, view)
    names = dict.fromkeys([*before.metrics, *after.metrics])
    informs = [name for name in names if _only_informs(name, before, after)]
    document.gap()
    document.add(_scores(before, after, [name for name in names if name not in informs], view))
    figures = [safe(f"{name} {_change(_figure(before, name), _figure(after, name))}", "muted") for name in informs]
    document.add(hang(Text(" "), flow(figures, view.width - 1, "   "), 1))


def add_turns(
    document: Document, then: Sequence[Turn], now: Sequence[Turn], record: CaseRecord | None, view: View, start: int = 0
) -> None:
    """Add the turns of two executions, of which `record` is the later one. `view.sides` are their names.

    Turns before `start`, and those in which both did the same, are one line each.
    """
    total = max(len(then), len(now))
    for number in range(total):
        one, other = (side[number] if number < len(side) else None for side in (then, now))
        if number < start or (one is not None and other is not None and is_same(one, other)):
            document.begin_turn(spaced=False)
            document.add([_line(number, other or one, view)])
            continue
        document.begin_turn(spaced=is_wide(view))
        # Another execution is no reference, so verdicts of its turns would not explain what differs.
        later = None if other is None else replace(other, metrics={})
        for piece in turn_pieces(
            record, number, total, later, {} if one is None else {**one.so_far, "user_content": one.user}, view
        ):
            document.add(piece.lines)


def is_same(one: Turn, other: Turn) -> bool:
    """Return whether the user and the agent did the same in both turns, and tools returned the same."""
    try:
        return _done(one) == _done(other)
    except _MALFORMED:
        return False


def is_as_expected(subject: Subject) -> bool:
    """Return whether the agent did exactly what the case on disk expects, so that nothing of it can be accepted."""
    record, case = subject.record, subject.case
    if record is None or case is None or not record.finished or record.final_session_state is not None:
        return False
    expected, turns = case.turns or (), record.turns
    try:
        return len(expected) == len(turns) > 0 and all(map(_is_expected, expected, turns))
    except _MALFORMED:
        return False


def _is_expected(expected: dict[str, Any], turn: Turn) -> bool:
    did = turn.so_far
    if turn.actual is None or any(result is not None for result in tool_results(expected)):
        return False
    reads = (
        lambda one: [(call.name, call.args) for call in tool_calls(one)],
        intermediate_texts,
        lambda one: content_text(one.get("final_response")),
        lambda one: content_text(one.get("user_content")),
    )
    return all(read(expected) == read({**did, "user_content": turn.user}) for read in reads)


def _done(turn: Turn) -> tuple[Any, ...]:
    did = turn.so_far
    calls = [(call.name, call.args) for call in tool_calls(did)]
    results = [result and result.get("response") for result in tool_results(did)]
    ended = turn.actual is not None
    return content_text(turn.user), calls, results, intermediate_texts(did), did.get("final_response"), ended


def _line(number: int, turn: Turn | None, view: View) -> Line:
    said = "" if turn is None else one_line(content_text(turn.user), limit=200)
    (line,) = labelled(numbered("turn", number + 1), "same", [cut_line(Text.styled(said, "muted"), room(view))], view)
    return line


# Verdicts


def _verdicts(before: CaseRecord, after: CaseRecord, view: View) -> Iterator[Line]:
    """Yield `case ≠ ✓ pass → ! error`, and the errors below it."""
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
    column = min(longest, view.width - 40) if is_wide(view) else 0
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


def _only_informs(name: str, *records: CaseRecord) -> bool:
    return all(record.metrics[name].status == "informational" for record in records if name in record.metrics)


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _figure(record: CaseRecord, name: str) -> str:
    result = record.metrics.get(name)
    return "none" if result is None or result.score is None else cut_score(result.score)
