"""Tool calls as lines: each with its result, aligned with the expected calls, with both sides of what differs."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from workbench.criteria.call_rows import call_rows
from workbench.criteria.json_difference import path_step, shown, type_name
from workbench.criteria.trajectory import used_rules
from workbench.events.events import MetricResult
from workbench.files.invocation import ToolCall, leaves_out, tool_calls, tool_results, with_inner_calls
from workbench.results.cells import cell_len
from workbench.results.evidence_frame import Anchors, Piece, gutter, labelled, numbered, room, seen, side, side_room
from workbench.results.judged import shown_in
from workbench.results.lines import (
    GLYPHS,
    Line,
    View,
    cut_line,
    fold,
    hang,
    joined,
    pad,
    shortened,
    wrap,
    wrap_indented,
)
from workbench.results.texts import INDENT, beginning, both_sides, compact, is_marked, pretty, pretty_lines
from workbench.store.execution import Turn
from workbench.text.counting import counted, cut_score
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain


def own_calls(rows: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return for each row the index of its actual call among the agent's own calls, or None if it has none."""
    made = [row.get("actual_index") if row.get("actual") else None for row in rows]
    inner = sorted(place for place, row in zip(made, rows, strict=True) if isinstance(place, int) and row.get("inside"))
    return [
        place - bisect_left(inner, place) if isinstance(place, int) and not row.get("inside") else None
        for place, row in zip(made, rows, strict=True)
    ]


def aligned_rows(
    expected: Sequence[ToolCall], actual: Sequence[ToolCall], scored: MetricResult | None
) -> list[dict[str, Any]]:
    """Return the rows that align both sides: those in the result `scored` if all are valid, else newly built ones."""
    details = scored.details if scored else {}
    rows = details.get("rows")
    if isinstance(rows, list) and all(map(_is_row, rows)):
        return rows
    return call_rows(expected, actual, used_rules(details))


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or row.get("mark") not in GLYPHS:
        return False
    sides = [row.get("expected"), row.get("actual")]
    return all(side is None or isinstance(side, dict) for side in sides) and any(sides)


def call_text(name: object, args: Any, limit: int = 1_000_000) -> str:
    """Return a call on one line as raw text: `find_order(id="A-7")`, with about `limit` characters of each value."""
    if not isinstance(args, dict):
        return f"{name}({'' if args is None else beginning(args, limit)})"
    return f"{name}({', '.join(f'{key}={beginning(value, limit)}' for key, value in args.items())})"


def brief_call(call: Mapping[str, Any], width: int, differing: frozenset[str] = frozenset()) -> Line:
    """Return a call on one line: `refund(id="A-7", amount=…)`.

    A call that is too long shows only the names of differing arguments, and is cut if that is still too long.
    `differing` are the paths of arguments whose values are shown elsewhere.
    """
    name = Text.styled(one_line(str(call.get("name") or "(no name)"), limit=200), "name")
    args = call.get("args")
    if not isinstance(args, dict):
        return cut_line(Text.assemble(name, "()" if args is None else f"({one_line(compact(args))})"), width)
    keys = {key: _argument_marked(key, differing) for key in args}
    parts = [
        f"{_key(key)}=…" if marked else f"{_key(key)}={one_line(compact(args[key]), limit=200)}"
        for key, marked in keys.items()
    ]
    whole: Line = Text.assemble(name, f"({', '.join(parts)})")
    if whole.cell_len <= width:
        return whole
    only = [_key(key) for key, marked in keys.items() if marked]
    return cut_line(Text.assemble(name, f"({', '.join(only)})"), width) if only else cut_line(whole, width)


def call_lines(call: Mapping[str, Any], width: int, marked: frozenset[str] = frozenset(), mark: str = "") -> list[Line]:
    """Return a call in full, on one line or with one argument per line."""
    name = Text.styled(one_line(str(call.get("name") or "(no name)"), limit=200), "name")
    args = call.get("args")
    if args is None:
        return wrap(Text.assemble(name, (" (no arguments given)", "muted")), width)
    if not isinstance(args, dict):
        return wrap(Text.assemble(name, f"({plain(compact(args))})"), width)
    short = _on_one_line(name, args, marked, mark, width)
    return [short] if short is not None else wrap_indented(_spread(name, args, marked, mark), width)


def _on_one_line(name: Text, args: dict[str, Any], marked: frozenset[str], mark: str, width: int) -> Line | None:
    parts: list[Line] = []
    size = 0
    for key, value in args.items():
        text = f"{_key(key)}={plain(compact(value))}"
        size += len(text) + 2
        if size > width + 2 or "\n" in text:
            return None
        parts.append(Text.styled(text, mark if _argument_marked(key, marked) else ""))
    line = Text.assemble(name, "(", joined(parts, ", ", ""), ")")
    return line if line.cell_len <= width else None


def _spread(name: Text, args: dict[str, Any], marked: frozenset[str], mark: str) -> Text:
    new_line, whole = "\n" + " " * INDENT, "args" in marked
    text = Text.assemble(name, "(")
    for index, (key, value) in enumerate(args.items()):
        lines = pretty(value, f"args{path_step(key)}", marked, mark).split(allow_blank=True)
        shown = Text.assemble(f"{_key(key)}=", Text(new_line).join(lines))
        if whole or f"args{path_step(key)}" in marked:
            shown.stylize(mark)
        text.append(f"{',' if index else ''}{new_line}").append_text(shown)
    return text.append("\n)")


def _key(key: str) -> str:
    return one_line(key if key.isidentifier() else compact(key), limit=200)


def _argument_marked(key: str, marked: frozenset[str]) -> bool:
    return "args" in marked or is_marked(f"args{path_step(key)}", marked)


def accepted_lines(row: Mapping[str, Any], width: int) -> Iterator[Line]:
    """Yield a line for each different value that a rule accepts: `args.id: text "B-7" · accepted: any value`."""
    for item in objects(row.get("accepted")):
        kind, value = type_and_value(item, "actual")
        value = value if kind == "true/false" else f"{kind} {value}"
        words = f"{plain(str(item.get('path', '')))}: {value} · accepted: {one_line(string(item.get('rule')))}"
        yield from wrap(Text.styled(words, "muted"), width)


def type_and_value(item: Mapping[str, Any], side: str) -> tuple[str, str]:
    """Return the type and the value of one side of a difference: `("number", "12.5")`. Both are safe texts."""
    kind = item.get(f"{side}_type") or type_name(item.get(side))
    return plain(str(kind)), plain(str(item.get(f"{side}_shown") or shown(item.get(side))))


def difference_lines(
    found: Sequence[Mapping[str, Any]], width: int, view: View, beyond: int = 0, *, named: bool = False
) -> Iterator[Line]:
    """Yield both sides of each difference (`json_difference.describe`) in `width` cells.

    Unless the view is full, only the first three are shown, and the others are counted. The path is above each
    difference if there are several, or with `named`. `beyond` is the number of differences that `found` leaves out.
    """
    kept = found if view.full else found[:3]
    inner = max(side_room(view, width), 2)
    for item in kept:
        path = one_line(str(item.get("path", "")).removeprefix("args").lstrip("."), limit=200)
        if path and (named or len(found) > 1):
            yield cut_line(Text.styled(path, "label"), width)
        values = {name: type_and_value(item, name) for name in ("expected", "actual")}
        if rule := one_line(string(item.get("rule"))):
            values["expected"] = ("nothing", rule)
        # The type beside a long value needs 12 cells.
        column = min(max(cell_len(value) for _, value in values.values()), inner - 12)
        for name, mark in (("expected", "missing"), ("actual", "extra")):
            kind, value = values[name]
            text: Line = Text.styled(value, f"mark-{mark}")
            if kind not in ("nothing", "true/false"):
                text = Text.assemble(pad(text, column), (f"  {kind}", "muted"))
            yield from side(mark, wrap(text, inner), view)
    more = len(found) - len(kept) + beyond
    if more:
        yield fold(f"▸ {counted(more, 'more value differs', 'more values differ')}", width)


def value_lines(details: Mapping[str, Any], width: int, view: View) -> Iterator[Line]:
    """Yield the differing values in a result's `details`, then the different values that a rule accepts."""
    beyond = details.get("more_differences")
    found = objects(details.get("differences"))
    yield from difference_lines(found, width, view, beyond if isinstance(beyond, int) else 0, named=True)
    yield from accepted_lines(details, width)


def match_type_words(scored: MetricResult) -> Line:
    """Return the match type and the scores of others, as far as known: `EXACT; others would score IN_ORDER 0.00`."""
    others = scored.details.get("other_match_types")
    used = one_line(str(scored.details.get("match_type") or ""))
    rule: Line = Text.styled(used, "strong") if used else Text()
    if used and scored.details.get("ignore_args") is True:
        rule = Text.assemble(rule, (", arguments ignored", "muted"))
    elif used and scored.details.get("args_match"):
        rule = Text.assemble(rule, (", arguments by rules", "muted"))
    reached = scored.score if scored.score is not None else 0.0
    scores = [
        Text.assemble((f"{one_line(name)} ", "muted"), (cut_score(value, 2, 2), "strong" if value > reached else ""))
        for name, value in mapping(others).items()
        if name != used and isinstance(value, int | float)
    ]
    between: Line = Text.styled("; others would score ", "muted") if rule and scores else Text()
    return Text.assemble(rule, between, joined(scores))


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
