"""One turn: the user's message, and expected and actual behaviour side by side."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

from workbench.counting import counted
from workbench.events import MetricResult, MetricStatus
from workbench.execution import Turn
from workbench.metrics.alignment import lcs_pairs
from workbench.metrics.description import Shown
from workbench.model.invocation import content_text, intermediate_texts, leaves_out, tool_calls
from workbench.rendering.anchors import Anchor, Anchors, Piece, anchors, pieces_of
from workbench.rendering.calls import call_section, made_calls, match_type_lines
from workbench.rendering.json_text import compact, pretty_lines
from workbench.rendering.judged import shown_in
from workbench.rendering.lines import Line, Segment, fold, heading, safe, shortened, wrap
from workbench.rendering.review.reasons import reason_lines
from workbench.rendering.rows import View, label, part, side_lead, under
from workbench.rendering.scores import brief_scores, turn_scores
from workbench.rendering.status import badge, worst
from workbench.rendering.texts import compared, text_lines
from workbench.text import one_line

_BRIEF = 2
"""The number of lines of a message above a difference that are shown while it is folded."""
_PROBLEMS = ("failed", "error", "not_evaluated")
_EVIDENT: tuple[Shown, ...] = ("calls", "words")
"""What the comparison in this pane shows: criteria with these details need no reason in words."""
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def turn_pieces(
    title: str,
    index: int,
    turn: Turn | None,
    expected: dict[str, Any] | None,
    view: View,
    *,
    running: bool = False,
    judged: bool = True,
    headed: bool = True,
    scores: Collection[str] | None = None,
) -> Iterator[Piece]:
    """Yield turn `index` (from 0), with its heading if `headed`.

    `turn` is None if it did not take place, `expected` if there is no reference. `judged`: the case has run, so an
    absent part is missing. `running`: it may still arrive. `scores` are the criteria whose scores are shown while
    reasons are folded (None: all).
    """
    status = turn_status(turn)
    if status:
        end = badge(status)
    elif judged and not running:
        end = (Segment("not scored" if turn else "did not take place", "muted"),)
    else:
        words = "pending" if turn is None else "running" if turn.actual is None else "done"
        end = (Segment(words, "muted"),) if running else ()
    if headed:
        yield pieces_of([heading(title, view.width, end)])
    if running and turn is None:
        return
    try:
        places = anchors(index, turn)
        yield from list(_body(turn, expected, view, running, judged, places))
        if turn is not None and turn.metrics:
            yield _verdicts(turn, places, scores, view)
    except _MALFORMED:
        # Journals and reports can hold anything. A turn that cannot be laid out is shown as raw JSON.
        yield pieces_of(_raw(turn, expected, view))


def _body(
    turn: Turn | None, expected: dict[str, Any] | None, view: View, running: bool, judged: bool, places: Anchors
) -> Iterator[Piece]:
    live = running and turn is not None and turn.actual is None
    if turn is not None and turn.note:
        yield pieces_of(part("note", [safe(turn.note, "status-error")], view))
    brief = turn_status(turn) in _PROBLEMS
    user = turn.user if turn is not None else (expected or {}).get("user_content")
    yield pieces_of(under(label("user"), _user(user, _seen(places.user, view), brief=brief)), places.user)
    actual = turn.so_far if turn is not None else None
    if live or not judged:
        # There is nothing to compare yet, so only one side is shown.
        yield pieces_of(_one_side(expected if turn is None else actual, view))
        if live:
            yield pieces_of(part("answer", [Segment("…", "muted")], view))
        return
    metrics = turn.metrics if turn else {}
    why = pieces_of(reason_lines(turn, view, view.room, _beside)) if turn is not None else None
    compared_here = (metrics.get(shown_in(metrics, where)) for where in _EVIDENT)
    differs = any(result is not None and result.status == "failed" for result in compared_here)
    if why is not None and not differs:
        yield why
    yield from _compared(expected, turn, metrics, view, places)
    if why is not None and differs:
        yield why


def _beside(name: str, sign: Segment, body: Iterable[Line], view: View) -> Iterator[Line]:
    return under((Segment("   "), sign, Segment(f" {name}", sign.style)), body)


def _compared(
    expected: dict[str, Any] | None,
    turn: Turn | None,
    metrics: dict[str, MetricResult],
    view: View,
    places: Anchors,
) -> Iterator[Piece]:
    """Yield calls, texts of agents, and answers."""
    calls, words = (metrics.get(shown_in(metrics, where)) for where in _EVIDENT)
    brief = worst(result.status for result in metrics.values()) in _PROBLEMS
    actual = None if turn is None else turn.so_far
    wanted, got = None if expected is None else tool_calls(expected), made_calls(turn, calls) or []
    if (metrics and calls is None and not wanted) or leaves_out(expected or {}, "intermediate_data"):
        # Only the answer has a reference, so no call is wrong.
        wanted = None
    views = partial(_view_of_call, places, view)
    for lines, made in call_section(wanted, got, calls, view, views, brief=brief):
        yield Piece(lines, places.call(made))
    yield from _intermediate(expected, actual or {}, view, places, brief=brief)
    answers = [None if side is None else side.get("final_response") for side in (expected, actual)]
    marks = (words.details.get("expected_marks"), words.details.get("actual_marks")) if words else (None, None)
    seen = _seen(places.answer, view)
    referenced = expected is not None and not leaves_out(expected, "final_response")
    yield pieces_of(_answer(answers[0], answers[1], marks, referenced, seen), places.answer)


def _view_of_call(places: Anchors, view: View, made: int) -> View:
    return _seen(places.call(made), view)


def _verdicts(turn: Turn, places: Anchors, scores: Collection[str] | None, view: View) -> Piece:
    """Return the scores, with reasons and match types if they are unfolded."""
    results = list(turn.metrics.values())
    anchor = None if places.user is None else Anchor(places.user.key.replace("user", "scores"), ())
    if _seen(anchor, view).full:
        calls = turn.metrics.get(shown_in(turn.metrics, "calls"))
        return pieces_of([*match_type_lines(calls, view), *turn_scores(results, view)], anchor)
    named = [result for result in results if scores is None or result.name in scores]
    lines = list(brief_scores(named, view))
    if any(result.reason and result.status in _PROBLEMS for result in results):
        lines.append(fold(" ▸ reasons and match type" if shown_in(turn.metrics, "calls") else " ▸ reasons", view.width))
    return pieces_of(lines, anchor)


def turn_status(turn: Turn | None) -> MetricStatus | None:
    """Return the worst verdict of a turn, or None without any."""
    return worst(result.status for result in turn.metrics.values()) if turn is not None else None


def _seen(anchor: Anchor | None, view: View) -> View:
    return view if anchor is None else anchor.view(view)


def _user(content: Any, view: View, *, brief: bool = False) -> list[Line]:
    text, others = content_text(content), other_parts(content)
    lines = text_lines(text, view.room, view, "user") if text or not others else []
    if brief and not view.full:
        lines = shortened(lines, _BRIEF, view.room)
    return [*lines, *(line for other in others for line in wrap([Segment(other, "muted")], view.room))]


def _one_side(invocation: dict[str, Any] | None, view: View) -> Iterator[Line]:
    if invocation is None:
        return
    for lines, _ in call_section(None, tool_calls(invocation), None, view):
        yield from lines
    yield from _texts(invocation, view)
    if invocation.get("final_response") is not None:
        text = content_text(invocation["final_response"])
        yield from under(label("answer"), text_lines(text, view.room, view))
        yield from _other_answer_parts(invocation["final_response"], view)


def _texts(invocation: dict[str, Any], view: View) -> Iterator[Line]:
    lead = label("agents")
    for author, text in intermediate_texts(invocation):
        yield from under(lead, _said(author, text, view))
        lead = ()


def _said(author: str, text: str, view: View, *, brief: bool = False) -> Iterator[Line]:
    yield from wrap([Segment(f"{one_line(author) or '(no author)'}", "name")], view.room)
    lines = text_lines(text, view.room, view)
    yield from shortened(lines, _BRIEF, view.room) if brief and not view.full else lines


def _intermediate(
    expected: dict[str, Any] | None, actual: dict[str, Any], view: View, places: Anchors, *, brief: bool
) -> Iterator[Piece]:
    """Yield the texts of agents before the answer, aligned by author."""
    wanted = [] if expected is None else intermediate_texts(expected)
    got = intermediate_texts(actual)
    if not wanted:
        lead = label("agents")
        for number, (author, text) in enumerate(got):
            anchor = places.text(number)
            yield pieces_of(under(lead, _said(author, text, _seen(anchor, view), brief=brief)), anchor)
            lead = ()
        return
    yield pieces_of(part("agents", [Segment(f"{len(wanted)} expected, {len(got)} actual", "muted")], view))
    number = 0
    for one, other in _by_author(wanted, got):
        author = (one or other or ("", ""))[0]
        anchor = places.text(number) if other is not None else None
        number += other is not None
        name = under((), wrap([Segment(one_line(author) or "(no author)", "name")], view.room))
        yield pieces_of([*name, *compared(one and one[1], other and other[1], _seen(anchor, view))], anchor)


def _by_author(
    wanted: list[tuple[str, str]], got: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str] | None, tuple[str, str] | None]]:
    row = column = 0
    for below, right in [
        *lcs_pairs([author for author, _ in wanted], [author for author, _ in got]),
        (len(wanted), len(got)),
    ]:
        for item in wanted[row:below]:
            yield item, None
        for item in got[column:right]:
            yield None, item
        if below < len(wanted):
            yield wanted[below], got[right]
        row, column = below + 1, right + 1


def _answer(expected: Any, actual: Any, marks: tuple[object, object], referenced: bool, view: View) -> Iterator[Line]:
    wanted = None if expected is None else content_text(expected)
    got = None if actual is None else content_text(actual)
    if not referenced or (wanted is None and got is None):
        empty = [Segment("none, and none expected" if referenced else "none", "muted")]
        yield from under(label("answer"), wrap(empty, view.room) if got is None else text_lines(got, view.room, view))
    elif wanted is not None and wanted == got:
        yield from under((*label("answer"), Segment(" = same", "diff-same")), text_lines(wanted, view.room, view))
    else:
        words = "the agent gave none" if got is None else "none was expected" if wanted is None else ""
        yield from part("answer", [Segment(words, "muted")], view)
        yield from compared(wanted, got, view, marks)
    yield from _other_answer_parts(actual, view)


def _other_answer_parts(content: Any, view: View) -> Iterator[Line]:
    for text in other_parts(content):
        yield from under(side_lead("and"), wrap([Segment(text, "muted")], view.room))


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


def _raw(turn: Turn | None, expected: dict[str, Any] | None, view: View) -> Iterator[Line]:
    yield from wrap(
        [Segment(" This turn does not have ADK's format. It is shown as recorded.", "status-error")], view.width
    )
    sides = [("expected", expected), ("user", turn.user if turn else None), ("actual", turn.actual if turn else None)]
    for name, value in sides:
        if value is not None:
            yield from under(label(name), pretty_lines(value, view.room))
