"""The claims of an answer as marks beside its sentences, with the passages that support or contradict them."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from workbench.results.faces import HOLDS
from workbench.results.frame import room
from workbench.results.judged import shown_in
from workbench.results.judges.claims import face_of, mark_of, origin_words
from workbench.results.lines import Line, fold, hang, hang_text, safe, shortened, wrap
from workbench.results.rows import View
from workbench.store.execution import Turn
from workbench.text.counting import counted
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import plain

_ALIKE = 4
"""Maximum number of sentences in a row that hold and are each shown."""
_PASSAGE_LINES = 2


def final_claims(turn: Turn) -> list[dict[str, Any]]:
    """Return the judged sentences of a turn's answer."""
    result = turn.metrics.get(shown_in(turn.metrics, "claims"))
    texts = objects(result.details.get("texts")) if result is not None else []
    return [item for text in texts if text.get("final") is True for item in objects(text.get("sentences"))]


def claim_lines(claims: Sequence[dict[str, Any]], turn: int, view: View) -> Iterator[Line]:
    """Yield the sentences with their marks. Below those that do not hold are the passages about them.

    `turn` counts from 0.
    """
    for holds, several in groupby(claims, key=lambda item: string(item.get("label")) in HOLDS):
        group = list(several)
        if holds and len(group) > _ALIKE and not view.full:
            yield fold(f"▸ {counted(len(group), 'sentence')} supported", room(view))
            continue
        for item in group:
            yield from claim(item, turn, view)


def claim(item: dict[str, Any], turn: int, view: View) -> Iterator[Line]:
    """Yield one sentence with its mark, and the passages about it if it does not hold or the view is full."""
    face, holds = face_of(item), string(item.get("label")) in HOLDS
    text = " ".join(plain(string(item.get("text"))).split()) or "(empty)"
    words = Text.styled(text, "" if holds else "strong")
    if mark := mark_of(item):
        words.append(f"  ({mark})", "muted")
    if face.word != "supported":
        words.append(f"  {face.word}", face.variable)
    yield from hang_text(Text.styled(f"{face.glyph} ", face.variable), words, room(view), 2)
    if not holds or view.full:
        yield from hang(Text(), _passages(item, turn, view), 2)


def _passages(item: dict[str, Any], turn: int, view: View) -> Iterator[Line]:
    """Yield `− "eta": "Tue"  track_parcel, a tool result in turn 1`, else the judge's reason."""
    width, most = max(room(view) - 4, 8), 1_000_000 if view.full else _PASSAGE_LINES
    found = [(sign, style, string(item.get(key)).strip()) for sign, style, key in _SIDES]
    origin = origin_words(item, turn) if mapping(item.get("source")) else Text()
    for sign, style, text in found:
        if text:
            lines = shortened(wrap(safe(" ".join(text.split()), style), width), most, width)
            yield from hang(Text.styled(f"{sign} ", style), lines, 2)
    if origin and any(text for _, _, text in found):
        yield from hang(Text(), wrap(origin, width), 2)
    reason = " ".join(plain(string(item.get("rationale"))).split())
    if reason and (view.full or not any(text for _, _, text in found)):
        yield from shortened(wrap(Text.styled(reason, "muted"), width), most, width)


_SIDES = (("+", "evidence-for", "supporting"), ("−", "evidence-against", "contradicting"))
