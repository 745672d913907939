"""One turn of the evidence: the user's message, the calls, and the answer with the claims in it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from workbench.counting import counted
from workbench.events import MetricStatus
from workbench.execution import CaseRecord, Turn
from workbench.metrics.alignment import lcs_pairs
from workbench.metrics.description import Shown
from workbench.metrics.registry import descriptions
from workbench.model.invocation import content_text, intermediate_texts, leaves_out, tool_calls
from workbench.rendering.anchors import Anchor, Anchors, Piece, anchors, pieces_of
from workbench.rendering.calls import (
    accepted_lines,
    aligned_rows,
    brief_call,
    call_lines,
    made_calls,
    own_calls,
    rule_words,
    type_and_value,
)
from workbench.rendering.cells import cell_len
from workbench.rendering.evidence.claims import claim_lines, final_claims
from workbench.rendering.evidence.frame import brief, gutter, is_wide, labelled, room, side, side_room
from workbench.rendering.evidence.reasons import reason_lines
from workbench.rendering.faces import FACES
from workbench.rendering.json_text import compact, pretty_lines
from workbench.rendering.judged import shown_in
from workbench.rendering.judges.simulated import message_words
from workbench.rendering.lines import (
    BLANK,
    Line,
    Segment,
    cut_line,
    flow,
    fold,
    hang,
    pad,
    safe,
    shortened,
    text_of,
    width_of,
    wrap,
)
from workbench.rendering.rows import GLYPHS, View
from workbench.rendering.status import worst
from workbench.rendering.texts import both_sides, text_lines
from workbench.text import one_line

_ALIKE = 2
"""Maximum number of equal calls in a row that are each shown."""
_USER_LINES = 2
_ANSWER_LINES = 3
_SIDE_LINES = 4
_DIFFERENCES = 3
_TYPE = 12
"""The width kept free for the type beside a long value, in cells."""
_UNLIMITED = 1_000_000
_IN_TURN: tuple[Shown, ...] = ("calls", "words", "claims")
_PROBLEMS = ("failed", "error", "not_evaluated")
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_Said: TypeAlias = tuple[str, str]
"""An author and a text."""
_CALL_STYLES = {"missing": "diff-missing", "extra": "diff-extra"}
_MARKS: dict[MetricStatus, Segment] = {
    "passed": Segment(GLYPHS["same"], FACES["passed"].variable),
    "failed": Segment(GLYPHS["differs"], FACES["failed"].variable),
    "error": Segment(FACES["error"].glyph, FACES["error"].variable),
    "not_evaluated": Segment(FACES["not_evaluated"].glyph, FACES["not_evaluated"].variable),
}


def turn_status(turn: Turn | None) -> MetricStatus | None:
    """Return the worst verdict of a turn, or None without any."""
    return worst(result.status for result in turn.metrics.values()) if turn is not None else None


def turn_pieces(
    record: CaseRecord | None, index: int, total: int, turn: Turn | None, expected: dict[str, Any] | None, view: View
) -> Iterator[Piece]:
    """Yield turn `index` (from 0) of `total`, in parts that the cursor selects if the turn has a trace.

    `record` is None if the case has not run. `turn` is None if it did not take place. `expected` is None without a
    reference, and empty if no such turn is expected.
    """
    try:
        yield from _pieces(record, index, total, turn, expected, view)
    except _MALFORMED:
        # Journals and reports can hold anything. A turn that cannot be laid out is shown as raw JSON.
        yield pieces_of(_raw(turn, expected, view))


def turn_line(index: int, turn: Turn | None, expected: dict[str, Any] | None, view: View, *, opened: bool) -> Line:
    """Return ` turn 1  = Where is my parcel? ▸`, a turn on one line, or only its number above an `opened` turn."""
    try:
        said = one_line(content_text(turn.user if turn is not None else (expected or {}).get("user_content")))
    except _MALFORMED:
        said = ""
    said = "" if opened else said
    missing: Line = (Segment("did not take place  ", "diff-missing"),) if turn is None else ()
    body = cut_line((*missing, Segment(said, "user" if turn is not None else "muted")), max(room(view) - 2, 4))
    mark = _MARKS.get(turn_status(turn) or "not_applicable", "missing" if turn is None else "")
    (line,) = labelled(_numbered("turn", index + 1), mark, [(*body, Segment("▾" if opened else " ▸", "fold"))], view)
    return cut_line(line, view.width)


def _pieces(
    record: CaseRecord | None, index: int, total: int, turn: Turn | None, expected: dict[str, Any] | None, view: View
) -> Iterator[Piece]:
    places = anchors(index, turn)
    going = record is not None and not record.finished
    live = going and turn is not None and turn.actual is None
    judged = view.sides == View(0).sides
    if judged and turn is not None and turn.actual is None and record is not None and record.error is not None:
        # The turn broke off. That it lacks calls and the answer is no evidence.
        expected = None
    parts = [[pieces_of(_user(record, index, total, turn, expected, _seen(places.user, view)), places.user)]]
    if turn is not None and turn.note:
        parts.append([pieces_of(labelled("note", "", wrap([safe(turn.note, "status-error")], room(view)), view))])
    if live or record is None or turn is None:
        # There is nothing to compare yet, so only one side is shown.
        parts.append([pieces_of(_one_side(expected if turn is None else turn.so_far, view))])
        if live:
            parts.append([pieces_of(labelled("answer", "", [(Segment("…", "muted"),)], view))])
    else:
        anchor = _scores_anchor(places)
        why = [pieces_of(reason_lines(turn, _seen(anchor, view)), anchor)]
        acted = [
            list(_calls(turn, expected, places, view)),
            list(_texts(turn, expected, places, view)),
            [pieces_of(_answer(turn, expected, index, _seen(places.answer, view)), places.answer)],
        ]
        # What the calls and the answer do not show comes first if they do not differ.
        parts += [*acted, why] if _differs(turn) else [why, *acted]
    space = is_wide(view)
    above = False
    for part in parts:
        filled = [piece for piece in part if piece.lines]
        if filled and above and space:
            yield pieces_of([BLANK])
        yield from filled
        above = above or bool(filled)


def _differs(turn: Turn) -> bool:
    """Return whether a criterion failed that the calls or the answer show."""
    shown = (turn.metrics.get(shown_in(turn.metrics, where)) for where in _IN_TURN)
    return any(result is not None and result.status == "failed" for result in shown)


def _scores_anchor(places: Anchors) -> Anchor | None:
    return None if places.user is None else Anchor(places.user.key.replace("user", "scores"), ())


def _seen(anchor: Anchor | None, view: View) -> View:
    return view if anchor is None else anchor.view(view)


def _numbered(word: str, number: int) -> str:
    return f"{word} {number}" if number < 10 else f"{word}{number}"


# The message


def _user(
    record: CaseRecord | None, index: int, total: int, turn: Turn | None, expected: dict[str, Any] | None, view: View
) -> Iterator[Line]:
    """Yield the message. Its label is that of the turn if there are several."""
    content = turn.user if turn is not None else (expected or {}).get("user_content")
    text, others = content_text(content), other_parts(content)
    status = turn_status(turn)
    most = _USER_LINES if status in _PROBLEMS else _UNLIMITED
    lines = brief(text, view, most, "user") if text else []
    lines += [line for other in others for line in wrap([Segment(other, "muted")], room(view))]
    if not lines:
        lines = [(Segment("nothing", "muted"),)]
    simulated = None if turn is None else turn.metrics.get(shown_in(turn.metrics, "simulator"))
    if simulated is not None and record is not None:
        lines += flow(message_words(simulated, record), room(view))
        if simulated.reason and simulated.status != "passed":
            lines += wrap([safe(simulated.reason, "muted")], room(view))
    if total == 1:
        return labelled("user", "", lines, view)
    return labelled(_numbered("turn", index + 1), _MARKS.get(status, "") if status else "", lines, view)


def other_parts(content: Any) -> list[str]:
    """Return the parts of a content besides text, one safe line each: `file image/png, 1,200 characters of base64`."""
    found: list[str] = []
    for item in (content or {}).get("parts") or ():
        for kind, value in item.items():
            if kind in ("text", "thought", "thought_signature") or value is None:
                continue
            if kind == "inline_data" and isinstance(value, dict):
                size = counted(len(str(value.get("data") or "")), "character")
                found.append(f"file {one_line(str(value.get('mime_type') or '?'))}, {size} of base64")
            else:
                found.append(f"{kind.replace('_', ' ')} {one_line(compact(value), limit=200)}")
    return [one_line(text) for text in found]


# Calls


def _calls(turn: Turn, expected: dict[str, Any] | None, places: Anchors, view: View) -> Iterator[Piece]:
    scored = turn.metrics.get(shown_in(turn.metrics, "calls"))
    made = made_calls(turn, scored) or []
    wanted = None if expected is None else tool_calls(expected)
    if (turn.metrics and scored is None and not wanted) or leaves_out(expected or {}, "intermediate_data"):
        # Only the answer has a reference, so no call is wrong.
        wanted = None
    if wanted is None:
        for number, call in enumerate(made):
            anchor = places.call(number)
            yield pieces_of(_plain_call(number, {"name": call.name, "args": call.args}, _seen(anchor, view)), anchor)
        return
    rows = aligned_rows(wanted, made, scored)
    made_of = own_calls(rows)
    for mark, several in groupby(enumerate(rows), key=lambda item: item[1]["mark"]):
        group = list(several)
        first = places.call(made_of[group[0][0]])
        if mark == "same" and len(group) > _ALIKE and not _seen(first, view).full:
            yield pieces_of([_matching([row for _, row in group], view)], first)
            continue
        for place, row in group:
            anchor = places.call(made_of[place])
            yield pieces_of(_call(place + 1, row, _seen(anchor, view)), anchor)


def _plain_call(number: int, call: dict[str, Any], view: View) -> Iterator[Line]:
    whole = room(view)
    lines = call_lines(call, whole, view) if view.full else [_cut_call(call, whole)]
    return labelled(_numbered("call", number + 1), "", lines, view)


def _cut_call(call: dict[str, Any], width: int, paths: frozenset[str] = frozenset()) -> Line:
    """Return a call on one line. If it was cut, its ellipsis can be unfolded."""
    line = brief_call(call, width, paths)
    if not text_of(line).endswith("…"):
        return line
    *parts, last = line
    return (*parts, Segment(last.text[:-1], last.style), Segment("…", "fold"))


def _matching(rows: Sequence[dict[str, Any]], view: View) -> Line:
    names = ", ".join(dict.fromkeys(one_line(str(row["actual"].get("name")), limit=60) for row in rows))
    words: Line = (Segment(f"{counted(len(rows), 'call')} match  ", "fold"), Segment(names, "muted"))
    return next(iter(labelled("calls", "same", [cut_line(words, room(view))], view)))


def _call(number: int, row: dict[str, Any], view: View) -> Iterator[Line]:
    mark, whole = row["mark"], room(view)
    found = [item for item in row.get("differences") or () if isinstance(item, dict)]
    paths = frozenset(str(item.get("path", "")) for item in found)
    call = row.get("actual") or row.get("expected") or {}
    note = _note(row, view)
    width = whole - (width_of(note) + 2 if note else 0)
    if view.full:
        lines = call_lines(call, whole, view, paths, "mark-extra")
        if note and len(lines) == 1 and width_of(lines[0]) <= width:
            lines = [(*lines[0], Segment("  "), *note)]
        else:
            lines = [*lines, note] if note else lines
    elif note and width >= 16:
        lines = [(*_cut_call(call, width, paths), Segment("  "), *note)]
    else:
        lines = [_cut_call(call, whole, paths), *([note] if note else [])]
    if inside := row.get("inside"):
        lines += wrap([Segment(f"made inside {one_line(str(inside), limit=60)}", "muted")], whole)
    yield from labelled(_numbered("call", number), mark, lines, view)
    body = [*_differences(found, row, view), *accepted_lines(row, View(whole + 15, view.full))]
    yield from hang([], body, gutter(view))


def _note(row: dict[str, Any], view: View) -> Line:
    """Return `not called`, `not expected`, or `expected as call 2`, or with other sides `only before`."""
    mark, first = row["mark"], view.sides[0]
    if mark in ("missing", "extra"):
        only = f"only {view.sides[mark == 'extra']}"
        words = {"missing": "not called", "extra": "not expected"}[mark] if first == "expected" else only
        return (Segment(words, _CALL_STYLES[mark]),)
    wanted = row.get("expected_index")
    if mark == "moved" and isinstance(wanted, int):
        return (Segment(f"{first} as call {wanted + 1}", "diff-moved"),)
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
        for name, mark in (("expected", "missing"), ("actual", "extra")):
            kind, value = values[name]
            text: Line = (Segment(value, f"mark-{mark}"),)
            if kind not in ("nothing", "true/false"):
                text = (*pad(text, column), Segment(f"  {kind}", "muted"))
            yield from side(mark, wrap(text, side_room(view)), view)
    beyond = row.get("more_differences")
    more = len(found) - len(kept) + (beyond if isinstance(beyond, int) else 0)
    if more:
        yield fold(f"▸ {counted(more, 'more value')} differ", room(view))


# Texts of agents before the answer


def _texts(turn: Turn, expected: dict[str, Any] | None, places: Anchors, view: View) -> Iterator[Piece]:
    got = intermediate_texts(turn.so_far or {})
    wanted = [] if expected is None else intermediate_texts(expected)
    if not wanted:
        pairs: Iterable[tuple[_Said | None, _Said | None]] = ((None, one) for one in got)
    else:
        pairs = _by_author(wanted, got)
    number = 0
    for one, other in pairs:
        anchor = places.text(number) if other is not None else None
        number += other is not None
        author = (one or other or ("", ""))[0]
        lines = _text(author, other and other[1], one and one[1], bool(wanted), _seen(anchor, view))
        yield pieces_of(lines, anchor)


def _by_author(wanted: Sequence[_Said], got: Sequence[_Said]) -> Iterator[tuple[_Said | None, _Said | None]]:
    """Yield expected and actual texts in order, those of the same author together."""
    row = column = 0
    pairs = lcs_pairs([author for author, _ in wanted], [author for author, _ in got])
    for below, right in [*pairs, (len(wanted), len(got))]:
        yield from ((item, None) for item in wanted[row:below])
        yield from ((None, item) for item in got[column:right])
        if below < len(wanted):
            yield wanted[below], got[right]
        row, column = below + 1, right + 1


def _text(author: str, got: str | None, wanted: str | None, compared: bool, view: View) -> Iterator[Line]:
    """Yield what one agent said before the answer, and, if texts are `compared`, what it was expected to say."""
    name = cut_line((Segment(one_line(author) or "(no author)", "name"),), room(view))
    if wanted is not None and wanted != got:
        mark = "missing" if got is None else "differs"
        return labelled("agent", mark, [name, *_sides(wanted, got, (None, None), view)], view)
    mark = "" if not compared else "extra" if wanted is None else "same"
    return labelled("agent", mark, [name, *brief(got or "", view, _USER_LINES)], view)


def _sides(wanted: str, got: str | None, marks: tuple[object, object], view: View) -> Iterator[Line]:
    """Yield `− expected` and `+ actual`, with the words that differ marked."""
    most = _UNLIMITED if view.full else _SIDE_LINES
    if not got:
        lines = shortened(text_lines(wanted, side_room(view), view), most, side_room(view))
        yield from side("missing", lines, view)
        yield from wrap([Segment("the agent gave none", "diff-missing")], room(view))
        return
    left, right, note = both_sides(wanted, got, side_room(view), view, marks)
    yield from side("missing", shortened(left, most, side_room(view)), view)
    yield from side("extra", shortened(right, most, side_room(view)), view)
    yield from wrap([Segment(note, "muted")], room(view)) if note else ()


# The answer


def _answer(turn: Turn, expected: dict[str, Any] | None, index: int, view: View) -> Iterator[Line]:
    given = (turn.so_far or {}).get("final_response")
    got = None if given is None else content_text(given)
    reference = None if expected is None else expected.get("final_response")
    wanted = None if reference is None else content_text(reference)
    claims = final_claims(turn)
    others = [line for other in other_parts(given) for line in wrap([Segment(other, "muted")], room(view))]
    if wanted is not None and (got is None or (not got and wanted)):
        yield from labelled("answer", "missing", [*_sides(wanted, None, (None, None), view), *others], view)
        return
    if got is None:
        if turn.actual is not None:
            yield from labelled("answer", "", [(Segment("none", "muted"),)], view)
        return
    if wanted is not None and wanted != got and (_answer_matters(turn) or view.full):
        scored = turn.metrics.get(shown_in(turn.metrics, "words"))
        marks = (scored.details.get("expected_marks"), scored.details.get("actual_marks")) if scored else (None, None)
        yield from labelled("answer", "differs", [*_sides(wanted, got, marks, view), *others], view)
        if claims:
            yield from labelled("claims", "", claim_lines(claims, index, view), view)
        return
    surplus = expected == {} and turn.actual is not None
    mark = "same" if wanted == got else "extra" if surplus else ""
    lines = list(claim_lines(claims, index, view)) if claims else brief(got, view, _ANSWER_LINES)
    yield from labelled("answer", mark, [*lines, *others], view)


def _answer_matters(turn: Turn) -> bool:
    """Return whether the difference to the reference may be a reason for the verdict.

    It is not if every criterion that compares answers passed.
    """
    rows = descriptions()
    judged = [result for name, result in turn.metrics.items() if name in rows and rows[name].compares_answers]
    return any(result.status != "passed" for result in judged) or not turn.metrics


# Without a comparison


def _one_side(invocation: dict[str, Any] | None, view: View) -> Iterator[Line]:
    if invocation is None:
        return
    for number, call in enumerate(tool_calls(invocation)):
        yield from _plain_call(number, {"name": call.name, "args": call.args}, view)
    for author, text in intermediate_texts(invocation):
        yield from _text(author, text, None, False, view)
    if invocation.get("final_response") is not None:
        response = invocation["final_response"]
        lines = text_lines(content_text(response), room(view), view)
        others = [line for other in other_parts(response) for line in wrap([Segment(other, "muted")], room(view))]
        yield from labelled("answer", "", [*lines, *others], view)


def _raw(turn: Turn | None, expected: dict[str, Any] | None, view: View) -> Iterator[Line]:
    words = " This turn does not have ADK's format. It is shown as recorded."
    yield from wrap([Segment(words, "status-error")], view.width)
    sides = [("expect", expected), ("user", turn.user if turn else None), ("actual", turn.actual if turn else None)]
    for name, value in sides:
        if value is not None:
            yield from labelled(name, "", pretty_lines(value, room(view)), view)
