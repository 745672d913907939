"""A turn in the evidence: the user's message, the calls, and the answer with its claims."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.text import Text

from workbench.criteria.description import Shown
from workbench.criteria.json_difference import ABSENT, describe, lcs_pairs, path_step
from workbench.criteria.registry import descriptions
from workbench.criteria.value_rules import compare, described
from workbench.events.events import MetricStatus
from workbench.files.invocation import content_text, intermediate_texts
from workbench.results.calls import call_pieces, call_row, difference_lines, plain_calls
from workbench.results.evidence_frame import (
    WIDE,
    Anchor,
    Anchors,
    Piece,
    anchors,
    brief,
    labelled,
    numbered,
    room,
    seen,
    side,
    side_room,
)
from workbench.results.evidence_reasons import claim_lines, final_claims, reason_lines
from workbench.results.faces import FACES
from workbench.results.judged import shown_in
from workbench.results.lines import GLYPHS, Line, View, cut_line, flow, safe, shortened, wrap
from workbench.results.questions import message_words
from workbench.results.texts import both_sides, compact, pretty_lines, text_lines
from workbench.store.execution import CaseRecord, Turn
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.editing.accept_turn import Hunk

SCORES = "/scores"
"""Suffix of the key of an item with reasons that neither the calls nor the answer show."""
_USER_LINES = 2
_ANSWER_LINES = 3
_UNLIMITED = 1_000_000
_IN_TURN: tuple[Shown, ...] = ("calls", "words", "claims")
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_Said: TypeAlias = tuple[str, str]
"""An author and a text."""
_MARKS: dict[MetricStatus, Text] = {
    "passed": Text.styled(GLYPHS["same"], FACES["passed"].variable),
    "failed": Text.styled(GLYPHS["differs"], FACES["failed"].variable),
    "error": Text.styled(FACES["error"].glyph, FACES["error"].variable),
    "not_evaluated": Text.styled(FACES["not_evaluated"].glyph, FACES["not_evaluated"].variable),
}


def turn_status(turn: Turn | None) -> MetricStatus | None:
    """Return the worst verdict of a turn, or None if it has no verdict."""
    statuses = [result.status for result in turn.metrics.values()] if turn is not None else []
    verdicts = [status for status in statuses if status not in ("informational", "not_applicable")]
    return min(verdicts, key=lambda status: FACES[status].rank, default=None)


def turn_pieces(
    record: CaseRecord | None, index: int, total: int, turn: Turn | None, expected: dict[str, Any] | None, view: View
) -> Iterator[Piece]:
    """Yield turn `index` (from 0) of `total` in parts. The cursor can select them if the turn has a trace.

    `record` is None if the case has not run. `turn` is None if it did not take place. `expected` is None without a
    reference, and empty if the reference has no such turn.
    """
    try:
        yield from _pieces(record, index, total, turn, expected, view)
    except _MALFORMED:
        # Stored runs and reports can hold anything. A turn that cannot be laid out is shown as raw JSON.
        yield Piece([*_raw(turn, expected, view)])


def turn_line(index: int, turn: Turn | None, expected: dict[str, Any] | None, view: View, *, opened: bool) -> Line:
    """Return a turn on one line: ` turn 1  = Where is my parcel? ▸`. The line of an `opened` turn has no message."""
    try:
        said = one_line(content_text(turn.user if turn is not None else (expected or {}).get("user_content")))
    except _MALFORMED:
        said = ""
    said = "" if opened else said
    missing: Line = Text.styled("did not take place  ", "diff-missing") if turn is None else Text()
    body = cut_line(Text.assemble(missing, (said, "user" if turn is not None else "muted")), max(room(view) - 2, 4))
    mark = _MARKS.get(turn_status(turn) or "not_applicable", "missing" if turn is None else "")
    (line,) = labelled(
        numbered("turn", index + 1), mark, [Text.assemble(body, ("▾" if opened else " ▸", "fold"))], view
    )
    return cut_line(line, view.width)


def _pieces(
    record: CaseRecord | None, index: int, total: int, turn: Turn | None, expected: dict[str, Any] | None, view: View
) -> Iterator[Piece]:
    places = anchors(index, turn)
    going = record is not None and not record.finished
    live = going and turn is not None and turn.actual is None
    broke_off = turn is not None and turn.actual is None and record is not None and record.error is not None
    if broke_off and not view.compares_executions:
        # The missing calls and the missing answer are no evidence, because the turn broke off.
        expected = None
    parts = [[Piece([*_user(record, index, total, turn, expected, seen(places.user, view))], places.user)]]
    if turn is not None and turn.note:
        parts.append([Piece([*labelled("note", "", wrap(safe(turn.note, "status-error"), room(view)), view)])])
    if live or record is None or turn is None:
        # There is nothing to compare yet, so only one side is shown.
        one = expected if turn is None else turn.so_far
        parts.append([Piece([*_one_side(one, view, ran=turn is not None)])])
        if live:
            parts.append([Piece([*labelled("answer", "", [Text.styled("…", "muted")], view)])])
    else:
        anchor = None if places.user is None else Anchor(f"evidence/{index}{SCORES}", ())
        why = [Piece([*reason_lines(turn, seen(anchor, view))], anchor)]
        acted = [
            list(call_pieces(turn, expected, places, view)),
            list(_texts(turn, expected, places, view)),
            [Piece([*_answer(turn, expected, index, seen(places.answer, view))], places.answer)],
        ]
        # The reasons come first, unless the calls or the answer show a criterion that failed.
        shown = (turn.metrics.get(shown_in(turn.metrics, where)) for where in _IN_TURN)
        failed = any(result is not None and result.status == "failed" for result in shown)
        parts += [*acted, why] if failed else [why, *acted]
    above = False
    for part in parts:
        filled = [piece for piece in part if piece.lines]
        if filled and above and view.width >= WIDE:
            yield Piece([Text()])
        yield from filled
        above = above or bool(filled)


def _user(
    record: CaseRecord | None, index: int, total: int, turn: Turn | None, expected: dict[str, Any] | None, view: View
) -> Iterator[Line]:
    """Yield the user's message. Its label is the number of the turn, or `user` if there is only one turn."""
    content = turn.user if turn is not None else (expected or {}).get("user_content")
    text = content_text(content)
    status = turn_status(turn)
    most = _USER_LINES if status in ("failed", "error", "not_evaluated") else _UNLIMITED
    lines = brief(text, view, most, "user") if text else []
    lines += _other_parts(content, view)
    if not lines:
        lines = [Text.styled("nothing", "muted")]
    simulated = None if turn is None else turn.metrics.get(shown_in(turn.metrics, "simulator"))
    if simulated is not None and record is not None:
        lines += flow(message_words(simulated, record), room(view))
        if simulated.reason and simulated.status != "passed":
            lines += wrap(safe(simulated.reason, "muted"), room(view))
    mark: Text | str = _MARKS.get(status, "") if status else ""
    earlier = content_text((expected or {}).get("user_content")) if view.compares_executions else text
    if expected and earlier != text:
        mark, lines[:] = "differs", _sides(earlier, text, (None, None), view)
    mark = mark if total > 1 or view.compares_executions else ""
    return labelled("user" if total == 1 else numbered("turn", index + 1), mark, lines, view)


def _other_parts(content: Any, view: View) -> Iterator[Line]:
    """Yield the parts of a content that are not text: `file image/png, 1,200 characters of base64`."""
    for item in (content or {}).get("parts") or ():
        for kind, value in item.items():
            if kind in ("text", "thought", "thought_signature") or value is None:
                continue
            words = f"{kind.replace('_', ' ')} {one_line(compact(value), limit=200)}"
            if kind == "inline_data" and isinstance(value, dict):
                size = counted(len(str(value.get("data") or "")), "character")
                words = f"file {one_line(str(value.get('mime_type') or '?'))}, {size} of base64"
            yield from wrap(Text.styled(one_line(words), "muted"), room(view))


def _texts(turn: Turn, expected: dict[str, Any] | None, places: Anchors, view: View) -> Iterator[Piece]:
    got = intermediate_texts(turn.so_far or {})
    wanted = [] if expected is None else intermediate_texts(expected)
    if not wanted:
        pairs: Iterable[tuple[_Said | None, _Said | None]] = ((None, one) for one in got)
    else:
        pairs = _by_author(wanted, got)
    number = 0
    for one, other in pairs:
        anchor = places.texts[number] if other is not None and number < len(places.texts) else None
        number += other is not None
        author = (one or other or ("", ""))[0]
        lines = said_lines(author, other and other[1], one and one[1], seen(anchor, view), compared=bool(wanted))
        yield Piece([*lines], anchor)


def _by_author(wanted: Sequence[_Said], got: Sequence[_Said]) -> Iterator[tuple[_Said | None, _Said | None]]:
    """Yield expected and actual texts in order. Aligned texts of the same author form a pair."""
    row = column = 0
    pairs = lcs_pairs([author for author, _ in wanted], [author for author, _ in got])
    for below, right in [*pairs, (len(wanted), len(got))]:
        yield from ((item, None) for item in wanted[row:below])
        yield from ((None, item) for item in got[column:right])
        if below < len(wanted):
            yield wanted[below], got[right]
        row, column = below + 1, right + 1


def said_lines(
    author: str, got: str | None, wanted: str | None, view: View, *, compared: bool = True
) -> Iterator[Line]:
    """Yield an agent's text before the answer, beside the expected text if texts are `compared`."""
    name = cut_line(Text.styled(one_line(author) or "(no author)", "name"), room(view))
    if wanted is not None and wanted != got:
        mark = "missing" if got is None else "differs"
        return labelled("agent", mark, [name, *_sides(wanted, got, (None, None), view)], view)
    mark = "" if not compared else "extra" if wanted is None else "same"
    return labelled("agent", mark, [name, *brief(got or "", view, _USER_LINES)], view)


def _sides(wanted: str, got: str | None, marks: tuple[object, object], view: View) -> Iterator[Line]:
    """Yield `− expected` and `+ actual`. Words that differ are marked."""
    most = _UNLIMITED if view.full else 4
    if not got:
        lines = shortened(text_lines(wanted, side_room(view), view), most, side_room(view))
        yield from side("missing", lines, view)
        yield from wrap(Text.styled("the agent gave none", "diff-missing"), room(view))
        return
    left, right, note = both_sides(wanted, got, side_room(view), view, marks)
    yield from side("missing", shortened(left, most, side_room(view)), view)
    yield from side("extra", shortened(right, most, side_room(view)), view)
    yield from wrap(Text.styled(note, "muted"), room(view)) if note else ()


def _answer(turn: Turn, expected: dict[str, Any] | None, index: int, view: View) -> Iterator[Line]:
    given = (turn.so_far or {}).get("final_response")
    got = None if given is None else content_text(given)
    reference = None if expected is None else expected.get("final_response")
    wanted = None if reference is None else content_text(reference)
    claims, info = final_claims(turn), descriptions()
    others = list(_other_parts(given, view))
    if wanted is not None and (got is None or (not got and wanted)):
        yield from labelled("answer", "missing", [*_sides(wanted, None, (None, None), view), *others], view)
        return
    if got is None:
        if turn.actual is not None:
            yield from labelled("answer", "", [Text.styled("none", "muted")], view)
        return
    # The difference is no reason for the verdict if every criterion that compares answers passed.
    judging = [result for name, result in turn.metrics.items() if name in info and info[name].compares_answers]
    matters = not turn.metrics or any(result.status != "passed" for result in judging)
    if wanted is not None and wanted != got and (view.full or matters):
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


def _one_side(invocation: dict[str, Any] | None, view: View, *, ran: bool) -> Iterator[Line]:
    """Yield a turn without a comparison. Results of tools are shown if it `ran`, or if executions are compared."""
    if invocation is None:
        return
    yield from plain_calls(invocation, view, results=ran or view.compares_executions)
    for author, text in intermediate_texts(invocation):
        yield from said_lines(author, text, None, view, compared=False)
    if invocation.get("final_response") is not None:
        response = invocation["final_response"]
        lines = text_lines(content_text(response), room(view), view)
        yield from labelled("answer", "", [*lines, *_other_parts(response, view)], view)


def _raw(turn: Turn | None, expected: dict[str, Any] | None, view: View) -> Iterator[Line]:
    words = " This turn does not have ADK's format. It is shown as recorded."
    yield from wrap(Text.styled(words, "status-error"), view.width)
    sides = [("expect", expected), ("user", turn.user if turn else None), ("actual", turn.actual if turn else None)]
    for name, value in sides:
        if value is not None:
            yield from labelled(name, "", pretty_lines(value, room(view)), view)


def hunk_lines(hunk: "Hunk", view: View) -> Iterator[Line]:
    """Yield both sides of a difference. Only the differing part of a call is shown."""
    match hunk.kind:
        case "answer":
            wanted, got = _text(hunk.old), _text(hunk.new)
            if wanted is None:
                return labelled("answer", "extra", brief(got or "", view, _ANSWER_LINES), view)
            mark = "missing" if got is None else "differs"
            return labelled("answer", mark, _sides(wanted, got, (None, None), view), view)
        case "text" | "text added" | "text removed":
            return said_lines(hunk.tool, _text(hunk.new), _text(hunk.old), view)
        case "order":
            names = [(mark, ", ".join(map(str, value))) for mark, value in (("missing", hunk.old), ("extra", hunk.new))]
            lines = [line for mark, text in names for line in side(mark, wrap(safe(text), side_room(view)), view)]
            return labelled("calls", "moved", lines, view)
        case "state":
            found = _differences(hunk.old, hunk.new, "".join(map(path_step, hunk.steps)).lstrip("."))
            return labelled("state", "differs", difference_lines(found, room(view), view, named=True), view)
    return _call_lines(hunk, view)


def _call_lines(hunk: "Hunk", view: View) -> Iterator[Line]:
    marks = {"call added": "extra", "call removed": "missing", "result": "same"}
    args = {hunk.argument: hunk.new} if hunk.argument else hunk.old if hunk.new is ABSENT else hunk.new
    call = {"name": hunk.tool, "args": args if isinstance(args, dict) else None}
    row: dict[str, Any] = {"mark": marks.get(hunk.kind, "differs"), "actual": call}
    number = hunk.actual if hunk.actual is not None else hunk.expected or 0
    if hunk.kind == "result":
        call["args"] = {}
        return call_row(numbered("call", number + 1), row, view, hunk.old, hunk.new)
    if hunk.kind in ("argument", "arguments"):
        path = f"args{path_step(hunk.argument)}" if hunk.argument else "args"
        row["differences"] = _differences(hunk.old, hunk.new, path)
    return call_row(numbered("call", number + 1), row, view)


def _differences(old: Any, new: Any, path: str) -> list[dict[str, Any]]:
    if old is ABSENT or new is ABSENT:
        return [describe(path, old, new)]
    return [described(each) for each in compare(old, new, {}, path)]


def _text(value: Any) -> str | None:
    return None if value is ABSENT else value if isinstance(value, str) else one_line(str(value))
