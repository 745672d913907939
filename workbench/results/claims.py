"""The judged sentences of answers with their labels. Unsupported or unfolded sentences also show the reason."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.document import Document, Subject, Target
from workbench.results.faces import HOLDS, LABELS, Face
from workbench.results.judged import is_shown_in, number, question_key, results
from workbench.results.lines import Line, View, cut_line, flow, hang, hang_text, pad, part, safe, shortened, under, wrap
from workbench.results.triage import overridden
from workbench.store.execution import CaseRecord
from workbench.text.counting import counted, cut_score
from workbench.text.json_values import mapping, objects, string
from workbench.text.safe_text import one_line, plain

_SIDES = (("+", "evidence-for", "supporting"), ("−", "evidence-against", "contradicting"))
_KINDS = {
    "instructions": "the agent's instructions",
    "user": "the user's message",
    "tools": "a tool's description",
    "grounding": "the answer's grounding",
    "said": "an earlier message",
    "call": "a tool call",
    "result": "a tool result",
}


def score_lines(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the score, ADK's score if it differs, and the share of supported sentences, or nothing without texts."""
    texts = [text for _, _, turn in results(record, result.name) for text in objects(turn.details.get("texts"))]
    labels = [string(item.get("label")) for text in texts for item in counted_sentences(text)]
    if not texts:
        return
    adk_score = number(result.details.get("adk_score"))
    differs = adk_score is not None and adk_score != result.score
    if result.score is not None:
        meaning = f"mean over texts, then over turns{'' if differs else ', as in ADK'}"
        shown = Text.assemble((cut_score(result.score, 2, 2), "strong"), (f"  {meaning}", "muted"))
        yield from part("score", shown, view)
    if adk_score is not None and differs:
        why = ("  ignores passages that the judge left out", "muted")
        yield from part("ADK's figure", Text.assemble((cut_score(adk_score, 2, 2), "strong"), why), view)
    if labels:
        holding = sum(label in HOLDS for label in labels)
        share = number(result.details.get("share"))
        share = holding / len(labels) if share is None else share
        words = f"  {holding} of {counted(len(labels), 'sentence')} grounded"
        yield from part("sentences", Text.assemble((cut_score(share, 2, 2), "strong"), (words, "muted")), view)
        counts = ((face, labels.count(name)) for name, face in LABELS.items() if name in labels)
        tally = (Text.styled(f"{face.glyph} {many} {face.word}", face.variable) for face, many in counts)
        yield from under(Text(), flow(tally, view.room, "  "))


def add_texts(document: Document, subject: Subject, index: int, result: MetricResult, view: View) -> list[str]:
    """Add the judged texts of turn `index`, each sentence as an item. Return the keys of unsupported sentences."""
    texts = objects(result.details.get("texts")) if is_shown_in(result.name, "claims") else []
    problems: list[str] = []
    question = 0
    for place, text in enumerate(texts):
        if place:
            document.add([Text()])
        document.add(_text_head(text, view))
        # Each text takes one question about its sentences, and a second one about their support if there are any.
        sentences = objects(text.get("sentences"))
        question += 2 if sentences else 1
        event: tuple[Target, ...] = ()
        if subject.record is not None and index < len(subject.record.turns):
            # The trace row of the event that has the text.
            step, last = text.get("step"), len(subject.record.turns[index].events) - 1
            number_of_event = step if type(step) is int else last
            event = (Target("Trace", (f"event/{index}/{number_of_event}",)),) if number_of_event >= 0 else ()
        for number_, item in enumerate(sentences):
            key, holds = f"claim/{index}/{place}/{number_}", string(item.get("label")) in HOLDS
            mine = overridden(subject, result.name, index + 1, "sentence", string(item.get("text")))
            opened = view.is_open(key) or not holds
            lines = list(hang(Text(" "), sentence_lines(item, index, view.width - 1, opened=opened, mine=mine), 1))
            if opened:
                lines += hang(Text(), flow(_hints(item, bool(event)), max(view.width - 3, 10), "  "), 3)
            targets = (*_targets(item, result.name, index, question - 1), *event)
            document.add_item(key, lines, opens=holds, targets=targets)
            if not holds:
                problems.append(key)
    return problems


def _text_head(text: dict[str, Any], view: View) -> Iterator[Line]:
    """Yield `order_agent  the answer ··· 2 of 4 grounded · 0.50`: the author, the step and the result."""
    author = one_line(string(text.get("author")), limit=100) or "the agent"
    step = text.get("step")
    when = f"step {step + 1}" if isinstance(step, int) else "before the answer"
    if text.get("final") is True:
        when = "the answer"
    sentences = counted_sentences(text)
    holding = sum(string(item.get("label")) in HOLDS for item in sentences)
    score = number(text.get("score"))
    figures = [f"{holding} of {len(sentences)} grounded"] if sentences else []
    if score is not None:
        figures.append(cut_score(score, 2, 2))
    end = Text.styled(" · ".join(figures), "muted") if figures else Text()
    left: Line = Text.assemble(" ", (author, "name"), (f"  {when}", "label"))
    size = end.cell_len
    if end:
        yield pad(cut_line(left, max(view.width - size - 2, 8)), view.width - size - 1) + end
    else:
        yield cut_line(left, view.width)
    if unread := string(text.get("unread")):
        yield from hang_text(Text.styled(" ! ", "status-error"), safe(unread), view.width, 3)
        if not objects(text.get("sentences")):
            yield from hang_text(Text(), safe(string(text.get("text")), "muted"), view.width, 3)


def counted_sentences(text: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sentences that count for the score."""
    return [item for item in objects(text.get("sentences")) if item.get("counts") is not False]


def face_of(item: dict[str, Any]) -> Face:
    """Return the face of a sentence's label. An unknown label has the face of a missing one."""
    return LABELS.get(string(item.get("label")), LABELS["unlabelled"])


def mark_of(item: dict[str, Any]) -> str:
    """Return a note on the origin of a sentence, or "" if the judge copied the sentence from the answer."""
    if item.get("origin") == "dropped":
        return "left out by the judge" if item.get("counts") is not False else "left out by the judge, not counted"
    if item.get("origin") == "reworded":
        return "reworded by the judge"
    return "the judge's own sentence" if item.get("added") is True else ""


def _targets(item: dict[str, Any], criterion: str, turn: int, number: int) -> tuple[Target, ...]:
    """Return the places of the sentence's evidence: in the trace, if known, and the judge's question."""
    source = mapping(item.get("source"))
    places: list[str] = []
    if source.get("kind") in ("call", "result") and (call := string(source.get("call_id"))):
        places.append(f"{source['kind']}/{turn}/{call}")
    if isinstance(source.get("event"), int):
        places.append(f"event/{turn}/{source['event']}")
    if source.get("kind") == "user":
        places.append(f"user/{turn}")
    question = Target("Judges", (question_key(criterion, turn, number), question_key(criterion, turn, 0)))
    return (Target("Trace", tuple(places)), question) if places else (question,)


def _hints(item: dict[str, Any], has_event: bool) -> Iterator[Line]:
    known = string(mapping(item.get("source")).get("kind")) in _KINDS
    yield Text.styled("enter goes there" if known else "enter shows the question", "hint")
    if has_event:
        yield Text.styled("i shows its event in the trace", "hint")


def sentence_lines(
    item: dict[str, Any], turn: int, width: int, *, opened: bool, mine: Line | None = None
) -> Iterator[Line]:
    """Yield a sentence of turn `turn` (from 0) with its mark and the user's label `mine`.

    If it is `opened`, also yield passages about it and the judge's reason, all of them, else only if it is unsupported,
    and shortened.
    """
    face, holds = face_of(item), string(item.get("label")) in HOLDS
    text = " ".join(plain(string(item.get("text"))).split()) or "(empty)"
    words = Text.styled(text, "" if holds else "strong")
    if mark := mark_of(item):
        words.append(f"  ({mark})", "muted")
    if face.word != "supported":
        words.append(f"  {face.word}", face.variable)
    yield from hang_text(Text.styled(f"{face.glyph} ", face.variable), words + (mine or Text()), width, 2)
    if opened or not holds:
        yield from hang(Text(), _passages(item, turn, max(width - 4, 8), full=opened), 2)


def _passages(item: dict[str, Any], turn: int, width: int, *, full: bool) -> Iterator[Line]:
    """Yield the passages about a sentence and their source: `− "eta": "Tue"`, `track_parcel, a tool result in turn 1`.

    Without passages or if `full`, also yield the judge's reason.
    """
    most = 1_000_000 if full else 2
    found = [(sign, style, text) for sign, style, key in _SIDES if (text := string(item.get(key)).strip())]
    for sign, style, text in found:
        lines = shortened(wrap(safe(" ".join(text.split()), style), width), most, width)
        yield from hang(Text.styled(f"{sign} ", style), lines, 2)
    if (found or full) and mapping(item.get("source")):
        yield from hang(Text(), wrap(origin_words(item, turn), width), 2)
    reason = " ".join(plain(string(item.get("rationale"))).split())
    if full or not found:
        reason = reason or ("" if found or not full else "the judge gave no reason")
        yield from shortened(wrap(Text.styled(reason, "muted"), width), most, width) if reason else ()


def origin_words(item: dict[str, Any], turn: int) -> Line:
    """Return the source of the passages about a sentence: `find_order, a tool result in turn 1`, or `unknown place`."""
    source = mapping(item.get("source"))
    kind = _KINDS.get(string(source.get("kind")))
    if kind is None:
        return Text.styled("unknown place", "muted")
    name = one_line(string(source.get("name")), limit=100)
    return Text.assemble((f"{name}, " if name else "", "name"), f"{kind} in turn {turn + 1}")
