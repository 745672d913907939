"""The calls of a turn: each with its result, and both sides of what differs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from workbench.files.invocation import ToolCall, leaves_out, tool_calls, tool_results, with_inner_calls
from workbench.results.calls import accepted_lines, aligned_rows, brief_call, call_lines, difference_lines, own_calls
from workbench.results.cells import cell_len
from workbench.results.evidence_frame import Anchors, Piece, gutter, labelled, numbered, room, seen, side, side_room
from workbench.results.judged import shown_in
from workbench.results.lines import Line, View, cut_line, hang, shortened, wrap
from workbench.results.texts import beginning, both_sides, compact, pretty_lines
from workbench.store.execution import Turn
from workbench.text.counting import counted
from workbench.text.json_values import objects
from workbench.text.safe_text import one_line

_NO_RESULT: Any = object()


def call_pieces(turn: Turn, expected: dict[str, Any] | None, places: Anchors, view: View) -> Iterator[Piece]:
    """Yield the calls of a turn, compared with those of the `expected` invocation (None without a reference).

    If the view compares two executions, `expected` is from the earlier one, and results are compared, too.
    """
    scored = turn.metrics.get(shown_in(turn.metrics, "calls"))
    with_inner = scored is not None and scored.details.get("include_agent_tools") is True
    made = tool_calls(with_inner_calls(turn.so_far, (turn.inner_calls if with_inner else None) or ()))
    wanted = None if expected is None else tool_calls(expected)
    if (turn.metrics and scored is None and not wanted) or leaves_out(expected or {}, "intermediate_data"):
        # Only the answer has a reference, so no call is wrong.
        wanted = None
    rows = _unaligned(made) if wanted is None else list(_whole(aligned_rows(wanted, made, scored), wanted, made))
    own, results = own_calls(rows), tool_results(turn.so_far)
    now = [_result(place, results) for place in own]
    then = [_NO_RESULT] * len(rows)
    if expected is not None and view.compares_executions:
        earlier = tool_results(expected)
        then = [_result(row.get("expected_index"), earlier) for row in rows]
    plain = ["" if _differs(*pair) else row["mark"] for row, *pair in zip(rows, then, now, strict=True)]
    for mark, several in groupby(range(len(rows)), key=plain.__getitem__):
        group = list(several)
        first = places.call(own[group[0]])
        if mark == "same" and len(group) > 2 and not seen(first, view).full:
            names = ", ".join(dict.fromkeys(one_line(str(rows[one]["actual"].get("name")), limit=60) for one in group))
            words = Text.assemble((f"{counted(len(group), 'call')} match  ", "fold"), (names, "muted"))
            yield Piece([*labelled("calls", "same", [cut_line(words, room(view))], view)], first)
            continue
        for number in group:
            anchor = places.call(own[number])
            row = rows[number]
            # The place among all calls that were made, or of a missing call among the expected ones.
            place = row.get("actual_index" if row.get("actual") else "expected_index")
            name = numbered("call", (place if isinstance(place, int) else number) + 1)
            yield Piece([*call_row(name, row, seen(anchor, view), then[number], now[number])], anchor)


def _unaligned(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [
        {"mark": "", "actual": {"name": one.name, "args": one.args}, "actual_index": number, "inside": one.inside}
        for number, one in enumerate(calls)
    ]


def _whole(
    rows: Sequence[dict[str, Any]], wanted: Sequence[ToolCall], made: Sequence[ToolCall]
) -> Iterator[dict[str, Any]]:
    """Yield the rows with all arguments in full, because criteria store only the beginning of long arguments."""
    for row in rows:
        whole = dict(row)
        for name, calls in (("expected", wanted), ("actual", made)):
            place = row.get(f"{name}_index")
            if row.get(name) and isinstance(place, int) and 0 <= place < len(calls):
                whole[name] = {"name": calls[place].name, "args": calls[place].args}
        yield whole


def _result(place: object, results: Sequence[dict[str, Any] | None]) -> Any:
    found = results[place] if isinstance(place, int) and place < len(results) else None
    return _NO_RESULT if found is None else found.get("response")


def _differs(then: Any, now: Any) -> bool:
    return then is not _NO_RESULT and now is not _NO_RESULT and then != now


def plain_calls(invocation: dict[str, Any], view: View, *, results: bool) -> Iterator[Line]:
    """Yield calls that have no reference, with their `results` if wanted."""
    found = tool_results(invocation) if results else []
    for number, row in enumerate(_unaligned(tool_calls(invocation))):
        yield from call_row(numbered("call", number + 1), row, view, now=_result(number, found))


def call_row(
    name: str, row: Mapping[str, Any], view: View, then: Any = _NO_RESULT, now: Any = _NO_RESULT
) -> Iterator[Line]:
    """Yield the lines of one call, labelled `name`.

    `row` has the form of a row of `call_rows`. `then` and `now` are the earlier and the new result.
    """
    whole = room(view)
    found = objects(row.get("differences"))
    paths = frozenset(str(item.get("path", "")) for item in found)
    call = row.get("actual") or row.get("expected") or {}
    note = _note(row, view)
    every = call_lines(call, whole, paths, "mark-extra") if view.full else []
    if every and (len(every) == 1 or not found):
        lines, every = every, []
    else:
        # If arguments are many or long, those that differ come first.
        lines = [cut_call(call, whole, paths)]
    beside_note = whole - note.cell_len - 2
    if note and len(lines) == 1 and beside_note >= 16:
        short = lines[0] if lines[0].cell_len <= beside_note else cut_call(call, beside_note, paths)
        lines = [Text.assemble(short, "  ", note)]
    elif note:
        lines.append(note)
    compared = _differs(then, now)
    result = _NO_RESULT if compared else then if now is _NO_RESULT else now
    beside, below = _result_lines(result, room(view) - lines[-1].cell_len, view, cut=lines[-1].plain.endswith("…"))
    lines[-1] = lines[-1] + beside
    if inside := row.get("inside"):
        lines += wrap(Text.styled(f"made inside {one_line(str(inside), limit=60)}", "muted"), whole)
    yield from labelled(name, row["mark"], lines, view)
    if compared:
        both = both_sides(f"→ {compact(then)}", f"→ {compact(now)}", side_room(view), view)
        below = [
            line
            for mark, lines in (("missing", both[0]), ("extra", both[1]))
            for line in side(mark, lines if view.full else shortened(lines, 4, side_room(view)), view)
        ]
    beyond = row.get("more_differences")
    differences = difference_lines(found, whole, view, beyond if isinstance(beyond, int) else 0)
    yield from hang(Text(), [*differences, *every, *accepted_lines(row, whole), *below], gutter(view))


def cut_call(call: Mapping[str, Any], width: int, paths: frozenset[str] = frozenset()) -> Line:
    """Return a call on one line. The ellipsis of a cut call is styled as a fold."""
    return _unfolding(brief_call(call, width, paths))


def _unfolding(line: Line) -> Line:
    return line[:-1].append("…", "fold") if line.plain.endswith("…") else line


def _note(row: Mapping[str, Any], view: View) -> Line:
    """Return a note on a call without a counterpart or in another position, else an empty text: `not called`."""
    mark, first = row["mark"], view.sides[0]
    if mark in ("missing", "extra"):
        only = f"only {view.sides[mark == 'extra']}"
        words = only if view.compares_executions else {"missing": "not called", "extra": "not expected"}[mark]
        return Text.styled(words, f"diff-{mark}")
    wanted = row.get("expected_index")
    if mark == "moved" and isinstance(wanted, int):
        return Text.styled(f"{first} as call {wanted + 1}", "diff-moved")
    return Text()


def _result_lines(result: Any, left: int, view: View, *, cut: bool) -> tuple[Line, Sequence[Line]]:
    """Return the part of a result beside its call, in the `left` cells, and the lines below the call.

    It is `→ {"status": "sent"}` or its beginning. A full view has the whole result, below the call if it is long. If
    two executions are compared, equal results stay shortened.
    """
    if result is _NO_RESULT:
        return Text(), ()
    arrow: Line = Text.styled("  → ", "muted")
    left -= arrow.cell_len
    if view.full and not view.compares_executions:
        text = one_line(beginning(result, 1_000), limit=1_000)
        if cell_len(text) <= left:
            return Text.assemble(arrow, (text, "muted")), ()
        return Text(), list(hang(Text.styled("→ ", "muted"), pretty_lines(result, room(view) - 2), 2))
    if left < 10:
        sign: Line = Text.assemble(arrow, ("…", "fold")) if left > 0 else Text.styled(" …", "fold")
        return (sign if left >= 2 - arrow.cell_len and not cut else Text()), ()
    text = one_line(beginning(result, 4 * left), limit=4 * left)
    return arrow + _unfolding(cut_line(Text.styled(text, "muted"), left)), ()
