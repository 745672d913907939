"""Why criteria other than calls and words failed a turn: unmet rubrics, unsupported sentences, reasons of judges."""

from collections.abc import Iterator

from workbench.events import MetricResult
from workbench.json_values import objects, string
from workbench.rendering.claims import face_of
from workbench.rendering.faces import FACES, HEURISTIC, HOLDS, VERDICTS, Face
from workbench.rendering.judged import is_heuristic, is_shown_in, judge_of
from workbench.rendering.lines import Line, Segment, shortened, wrap
from workbench.rendering.review.frame import labelled, room
from workbench.rendering.rows import View
from workbench.store import Turn
from workbench.text import one_line, plain

_MOST = 4
"""The number of rubrics or sentences of one criterion that are shown while the page is folded."""
_REASON_LINES = 2


def reason_lines(turn: Turn, view: View) -> Iterator[Line]:
    """Yield the reasons of each criterion that did not pass, apart from those that the calls and the answer show."""
    for result in turn.metrics.values():
        if result.status not in ("failed", "error", "not_evaluated"):
            continue
        if result.status == "failed" and (is_shown_in(result.name, "calls") or is_shown_in(result.name, "words")):
            continue
        found = list(_items(result))
        kept = found if view.full else found[:_MOST]
        for label, face, text, why in kept:
            yield from _item(label, face, text, why, result, view)
        if len(found) > len(kept):
            yield from labelled("", "", [(Segment(f"▸ {len(found) - len(kept)} more", "fold"),)], view)
        if not found and result.reason:
            name, judged = one_line(result.name, limit=80), bool(judge_of(result))
            yield from _item("judge" if judged else "reason", FACES[result.status], name, result.reason, result, view)


def _items(result: MetricResult) -> Iterator[tuple[str, Face, str, str]]:
    """Yield label, face, text and reason of each unmet rubric and each sentence that does not hold."""
    for rubric in objects(result.details.get("rubrics")):
        verdict = string(rubric.get("verdict"))
        if verdict != "yes":
            text = string(rubric.get("text")).strip() or string(rubric.get("rubric_id"))
            face = VERDICTS.get(verdict, VERDICTS["missing"])
            yield "rubric", face, text, string(rubric.get("rationale"))
    for judged in objects(result.details.get("texts")):
        for sentence in objects(judged.get("sentences")):
            if string(sentence.get("label")) not in HOLDS:
                yield "claim", face_of(sentence), string(sentence.get("text")), string(sentence.get("rationale"))


def _item(label: str, face: Face, text: str, why: str, result: MetricResult, view: View) -> Iterator[Line]:
    width = room(view)
    word: Line = () if label in ("judge", "reason") else (Segment(f"{face.word}  ", face.variable),)
    heuristic = (Segment(f" {HEURISTIC.glyph}", HEURISTIC.variable),) if is_heuristic(result) else ()
    shown = " ".join(plain(text).split())
    lines = list(wrap([*word, Segment(shown, "strong"), *heuristic], width))
    reason = list(wrap([Segment(" ".join(plain(why).split()), "muted")], width)) if why.strip() else []
    if not view.full:
        lines, reason = shortened(lines, _REASON_LINES, width), shortened(reason, _REASON_LINES, width)
    yield from labelled(label, Segment(face.glyph, face.variable), [*lines, *reason], view)
