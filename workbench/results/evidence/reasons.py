"""Reasons for failed criteria that the rest of a turn does not show: unmet rubrics, and what judges wrote."""

import re
from collections.abc import Iterator

from rich.text import Text

from workbench.criteria.description import Shown
from workbench.events.events import MetricResult
from workbench.files.invocation import content_text
from workbench.results.faces import BY_FUNCTION, FACES, HOLDS, VERDICTS, Face
from workbench.results.frame import labelled, room
from workbench.results.judged import is_function, is_shown_in, judge_of
from workbench.results.judges.claims import face_of
from workbench.results.lines import Line, shortened, wrap
from workbench.results.rows import View
from workbench.results.scores import short_name
from workbench.store.execution import Turn
from workbench.text.json_values import objects, string
from workbench.text.safe_text import plain

_ELSEWHERE: tuple[Shown, ...] = ("calls", "words", "simulator")
"""What the calls, the answer and the message show: criteria with these details need no reason in words."""
_MOST = 4
"""The number of rubrics or sentences of one criterion that are shown while the page is folded."""
_FEW = 2
_LINES_OF_FEW, _LINES_OF_MANY = 4, 2
"""The number of lines of each text and each reason, if there are at most `_FEW` of them, or more."""
_UNLIMITED = 1_000_000
_VOTES = re.compile(r" by \d+ of \d+ votes?( \(\d+ samples?\))?")


def reason_lines(turn: Turn, view: View) -> Iterator[Line]:
    """Yield the reasons of each criterion that did not pass, apart from those that the other parts of a turn show."""
    width = room(view)
    results = [result for result in turn.metrics.values() if _is_shown(result)]
    answer = _words(content_text((turn.so_far or {}).get("final_response")))
    found = {result.name: list(_items(result, answer)) for result in results}
    few = sum(max(len(items), 1) for items in found.values()) <= _FEW
    most = _UNLIMITED if view.full else _LINES_OF_FEW if few else _LINES_OF_MANY
    for result in results:
        items = found[result.name]
        kept = items if view.full else items[:_MOST]
        for label, face, text, why in kept:
            word: Line = Text() if face == VERDICTS["no"] else Text.styled(f"{face.word}  ", face.variable)
            lines = _item(word, text, why, result, width, most)
            yield from labelled(label, Text.styled(face.glyph, face.variable), lines, view)
        if len(items) > len(kept):
            yield from labelled("", Text(), [Text.styled(f"▸ {len(items) - len(kept)} more", "fold")], view)
        claimed = any(text.get("final") is True for text in objects(result.details.get("texts")))
        if not items and not claimed and result.reason:
            face = FACES[result.status]
            lines = _item(Text(), short_name(result.name), _without_votes(result.reason), result, width, most)
            label = "judge" if judge_of(result) else "reason"
            yield from labelled(label, Text.styled(face.glyph, face.variable), lines, view)


def _is_shown(result: MetricResult) -> bool:
    if result.status == "failed":
        return not any(is_shown_in(result.name, where) for where in _ELSEWHERE)
    return result.status in ("error", "not_evaluated")


def _without_votes(reason: str) -> str:
    """Return a reason without the count of votes, which the pane of scores shows."""
    return _VOTES.sub("", reason)


def _items(result: MetricResult, answer: str) -> Iterator[tuple[str, Face, str, str]]:
    """Yield label, face, text and reason of each unmet rubric, and of each sentence before the answer that fails.

    A reason that only repeats the `answer`, which is beside it, is left out.
    """
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
