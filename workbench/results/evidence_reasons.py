"""Reasons for the verdicts on a turn: unsupported claims, unmet rubrics, judges' explanations, and unrecorded calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.criteria.description import Shown
from workbench.criteria.value_rules import compare, described
from workbench.events.events import MetricResult, Thawed
from workbench.files.invocation import content_text
from workbench.results.calls import call_row, difference_lines
from workbench.results.claims import face_of, sentence_lines
from workbench.results.error import error_lines
from workbench.results.evidence_frame import gutter, labelled, room
from workbench.results.faces import BY_FUNCTION, FACES, FROZEN, HOLDS, VERDICTS, Face, short_name
from workbench.results.frozen import change_name, kind_words, side_text, thawed_words
from workbench.results.judged import is_function, is_shown_in, shown_in
from workbench.results.lines import Line, View, fold, hang, hang_text, safe, shortened, wrap
from workbench.store.execution import CaseRecord, Turn
from workbench.store.reasons import judge_in
from workbench.text.counting import counted
from workbench.text.json_values import objects, string
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from workbench.run.recordings.requests import MissedCall, MissedRequest

_ELSEWHERE: tuple[Shown, ...] = ("calls", "words", "simulator")
"""Parts of the evidence that show differences themselves. Criteria shown there need no reason in words."""
_VOTES = re.compile(r" by \d+ of \d+ votes?( \(\d+ samples?\))?")
"""The count of votes in a reason. It is left out, because the pane "Judges" shows it."""
_PARTS = {"instruction": "the instruction", "tools": "the tools", "config": "the config"}
"""Names for parts of requests to models, by their keys in recordings."""
_MARKS = {"changed": "differs", "gone": "missing", "new": "extra"}


def reason_lines(turn: Turn, view: View) -> Iterator[Line]:
    """Yield the reasons of each criterion that did not pass, unless another part of the turn shows them."""
    width = room(view)
    failed = [result for result in turn.metrics.values() if result.status in ("failed", "error", "not_evaluated")]
    results = [
        result
        for result in failed
        if result.status != "failed" or not any(is_shown_in(result.name, where) for where in _ELSEWHERE)
    ]
    answer = _words(content_text((turn.so_far or {}).get("final_response")))
    found = {result.name: list(_items(result, answer)) for result in results}
    few = sum(max(len(items), 1) for items in found.values()) <= 2
    most = 1_000_000 if view.full else 4 if few else 2  # Lines of each text and reason.
    for result in results:
        items = found[result.name]
        kept = items if view.full else items[:4]
        for label, face, text, why in kept:
            word: Line = Text() if face == VERDICTS["no"] else Text.styled(f"{face.word}  ", face.variable)
            lines = _item(word, text, why, result, width, most)
            yield from labelled(label, Text.styled(face.glyph, face.variable), lines, view)
        if len(items) > len(kept):
            yield from labelled("", Text(), [Text.styled(f"▸ {len(items) - len(kept)} more", "fold")], view)
        claimed = any(text.get("final") is True for text in objects(result.details.get("texts")))
        if not items and not claimed and result.reason:
            face = FACES[result.status]
            lines = _item(Text(), short_name(result.name), _VOTES.sub("", result.reason), result, width, most)
            label = "judge" if judge_in(result.details) else "reason"
            yield from labelled(label, Text.styled(face.glyph, face.variable), lines, view)


def _items(result: MetricResult, answer: str) -> Iterator[tuple[str, Face, str, str]]:
    """Yield label, face, text and reason (or "") of unmet rubrics, and of unsupported sentences before the answer."""
    for rubric in objects(result.details.get("rubrics")):
        verdict = string(rubric.get("verdict"))
        if verdict != "yes":
            text = string(rubric.get("text")).strip() or string(rubric.get("rubric_id"))
            face = VERDICTS.get(verdict, VERDICTS["missing"])
            why = string(rubric.get("rationale"))
            yield "rubric", face, text, "" if _words(why) == answer else why
    for judged in objects(result.details.get("texts")):
        if judged.get("final") is True:
            continue
        for sentence in objects(judged.get("sentences")):
            if string(sentence.get("label")) not in HOLDS:
                yield "claim", face_of(sentence), string(sentence.get("text")), string(sentence.get("rationale"))


def _words(text: str) -> str:
    return " ".join(plain(text).split())


def _item(word: Line, text: str, why: str, result: MetricResult, width: int, most: int) -> list[Line]:
    sign = Text.styled(f" {BY_FUNCTION.glyph}", BY_FUNCTION.variable) if is_function(result) else Text()
    shown = _words(text)
    lines = wrap(Text.assemble(word, (shown, "strong"), sign), width)
    reason = wrap(Text.styled(_words(why), "muted"), width) if why.strip() else []
    return [*shortened(lines, most, width), *shortened(reason, most, width)]


def final_claims(turn: Turn) -> list[dict[str, Any]]:
    """Return the judged sentences of a turn's answer."""
    result = turn.metrics.get(shown_in(turn.metrics, "claims"))
    texts = objects(result.details.get("texts")) if result is not None else []
    return [item for text in texts if text.get("final") is True for item in objects(text.get("sentences"))]


def claim_lines(claims: Sequence[dict[str, Any]], turn: int, view: View) -> Iterator[Line]:
    """Yield the sentences of turn `turn` (from 0) with their marks, and passages about unsupported sentences."""
    for holds, several in groupby(claims, key=lambda item: string(item.get("label")) in HOLDS):
        group = list(several)
        if holds and len(group) > 4 and not view.full:
            yield fold(f"▸ {counted(len(group), 'sentence')} supported", room(view))
            continue
        for item in group:
            yield from sentence_lines(item, turn, room(view), opened=view.full)


def missed_in(record: CaseRecord, state: Path | None) -> "MissedCall | None":
    """Return the unrecorded tool call that ended a case, or None. This reads files."""
    if record.error is None or record.error.kind not in ("frozen_miss", "off_recording"):
        return None
    from workbench.run.recordings.requests import missed_call

    spans = (turn.spans for turn in record.turns if turn.spans is not None)
    return missed_call((*(event for turn in record.turns for event in turn.calls), *spans), state)


def missed_request_in(record: CaseRecord) -> "MissedRequest | None":
    """Return the unrecorded model request that ended a case, if any part of it can be ignored, else None."""
    if record.error is None or record.error.kind != "frozen_miss":
        return None
    from workbench.run.recordings.requests import missed_request

    return missed_request(event for turn in record.turns for event in turn.calls)


def part_words(name: str) -> str:
    """Return the name of a part of requests as safe text: `the instruction`."""
    return _PARTS.get(name) or one_line(name, limit=60)


def case_error_lines(record: CaseRecord, state: Path | None, view: View, key: str, root: str = "") -> Iterator[Line]:
    """Yield the error that ended a case, if any. If a call was not recorded, this reads files.

    `root` is the root of the project, or "" if it is unknown. `key` is the key that opens the choices for an unrecorded
    call, as raw text: `K`.
    """
    error = record.error
    if error is None:
        return
    missed = missed_in(record, state)
    if missed is not None:
        choices = _choices(key, *(["ignore an argument"] if missed.differing else []))
        yield from miss_lines(missed, view, choices if error.kind == "frozen_miss" else error.hint)
    elif error.kind == "frozen_miss" and (request := missed_request_in(record)) is not None:
        parts = " or ".join(map(part_words, request.parts))
        yield from error_lines(replace(error, hint=_choices(key, f"ignore {parts}")), view)
    elif error.kind in ("frozen_miss", "frozen_file") and record.frozen is not None and not record.frozen.recorded:
        yield from error_lines(replace(error, hint=f"{key}: run it live and freeze it, or run it live once"), view)
    else:
        yield from error_lines(error, view, root=root)


def _choices(key: str, *ignoring: str) -> str:
    return f"{key}: {', '.join(['keep this call after a live run', *ignoring, 'or run live'])}"


def miss_lines(missed: "MissedCall", view: View, hint: str) -> Iterator[Line]:
    """Yield the unrecorded call, its differences from the nearest recorded call, and the raw `hint` how to continue."""
    width = max(view.width - 1, 10)
    tool, agent = one_line(missed.tool), one_line(missed.agent)
    words = f"no recorded call of {tool} has these arguments"
    if missed.nearest is None:
        words = f"no call of {tool} by {agent} is recorded"
    elif not missed.differing:
        words = f"{tool} was called more often than recorded"
    style = "status-error-strong"
    yield from hang_text(Text.styled(" ! ", style), Text.styled(words, style), width, 3)
    recorded, called = missed.sides
    near = missed.nearest is not None
    found = [described(each) for each in compare(recorded, called, {}, "args")] if near else []
    row = {"mark": "differs" if found else "", "actual": {"name": missed.tool, "args": called}, "differences": found}
    yield from call_row("call", row, replace(view, sides=("recorded", "called")))
    if near:
        place = f"recorded in turn {missed.nearest_turn}"
        place += "; its answer was used for an earlier call" if missed.used else ""
        yield from hang(Text(), wrap(Text.styled(place, "muted"), room(view)), gutter(view))
    if missed.ignore:
        names = Text.styled(", ".join(map(one_line, missed.ignore)), "muted")
        yield from labelled("ignored", "", wrap(names, room(view)), view)
    yield from hang_text(Text.styled(" → ", "hint"), safe(hint), width, 3)


def thawed_lines(thawed: Thawed, view: View, *, drifted: bool) -> Iterator[Line]:
    """Yield the counts of a thawed case and each change, and how to accept the changes if the case `drifted`."""
    sides = replace(view, sides=("recorded", "now"))
    yield from hang_text(Text.styled(f" {FROZEN.glyph} ", FROZEN.variable), Text(thawed_words(thawed)), view.width, 3)
    for change in thawed.changes:
        kind, turn = string(change.get("kind")), change.get("turn")
        note = "" if kind in _MARKS else f"  {kind_words(change)}"  # The line above names what a mark means.
        note += f"  turn {turn}" if isinstance(turn, int) else ""
        call = list(wrap(Text.assemble((change_name(change), "name"), (note, "muted")), room(view)))
        about = "call" if change.get("about") == "call" else "other"
        yield from labelled(about, _MARKS.get(kind, ""), shortened(call, 3, room(view)), view)
        places = [_difference(place) for place in objects(change.get("where"))]
        lines = difference_lines(places, room(view), sides, named=True)
        yield from hang(Text(), lines, gutter(view))
    if drifted:
        yield from hang_text(Text.styled(" → ", "hint"), Text("A accepts changes into the recording"), view.width, 3)


def _difference(place: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a changed value to the form that `difference_lines` reads."""
    sides = {"expected": "then", "actual": "now"}
    texts = {f"{name}_shown": side_text(place, side) for name, side in sides.items()}
    return {"path": place.get("path"), **texts, **{f"{name}_type": "nothing" for name in sides}}
