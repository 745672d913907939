"""The pane "Claims": every sentence of the answers with its label; beside the one under the cursor, why."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from workbench.counting import counted
from workbench.events import MetricResult
from workbench.json_values import mapping, objects, string
from workbench.rendering.document import Document, Subject, Target
from workbench.rendering.faces import HOLDS, LABELS, Face
from workbench.rendering.judge_words import judged_results
from workbench.rendering.judged import number, question_key, results, shown_in
from workbench.rendering.lines import (
    BLANK,
    Line,
    Segment,
    cut_line,
    flow,
    hang_text,
    heading,
    labelled,
    pad,
    safe,
)
from workbench.rendering.rows import View, part, under
from workbench.rendering.trace.conversation import events_of
from workbench.rendering.triaged import overridden
from workbench.scores import cut_score
from workbench.store import CaseRecord
from workbench.text import one_line, plain

_NARROW = 60
"""From this width on labels have a column of their own."""
_KINDS = {
    "instructions": "the agent's instructions",
    "user": "what the user said",
    "tools": "the description of a tool",
    "grounding": "the grounding of the answer",
    "said": "what was said before",
    "call": "a tool call",
    "result": "a tool result",
}
_TO_GO = Segment("enter goes there", "hint")
_TO_EVENT = Segment("i shows its event in the trace", "hint")
_TO_QUESTION = Segment("enter shows the question", "hint")


def build(subject: Subject, view: View) -> Document:
    """The whole pane: the criterion's verdict, then each text that was judged with its sentences in order."""
    document = Document()
    for record, result in judged_results(document, subject.record, _is_judged, view):
        found = list(results(record, result.name))
        texts = [text for _, _, turn in found for text in objects(turn.details.get("texts"))]
        document.add(_account(result, texts, view))
        column = _label_column(texts)
        for index, _, turn in found:
            _add_turn(document, subject, index, turn, column, view)
        document.opening_item = _first_problem(texts)
    return document


def _is_judged(record: CaseRecord, result: MetricResult) -> bool:
    return result.name == shown_in(record.metrics, "claims")


def _account(result: MetricResult, texts: list[dict[str, Any]], view: View) -> Iterator[Line]:
    """Tell the score, ADK's figure where the judge left passages out, and the share of all sentences."""
    labels = [string(item.get("label")) for text in texts for item in _counted(text)]
    if not texts:
        return
    adk_score = number(result.details.get("adk_score"))
    differs = adk_score is not None and adk_score != result.score
    if result.score is not None:
        meaning = f"{'' if differs else 'as ADK defines it: '}the mean over texts, then over turns"
        yield from part(
            "score", [Segment(cut_score(result.score, 2, 2), "strong"), Segment(f"  {meaning}", "muted")], view
        )
    if adk_score is not None and differs:
        told = [Segment(cut_score(adk_score, 2, 2), "strong"), Segment("  without what the judge left out", "muted")]
        yield from part("ADK's figure", told, view)
    if labels:
        holding = sum(label in HOLDS for label in labels)
        share = number(result.details.get("share"))
        share = holding / len(labels) if share is None else share
        yield from part(
            "sentences",
            [
                Segment(cut_score(share, 2, 2), "strong"),
                Segment(f"  {holding} of {counted(len(labels), 'sentence')} hold", "muted"),
            ],
            view,
        )
        yield from under((), flow(_tally(labels), view.room, "  "))


def _tally(labels: list[str]) -> Iterator[Line]:
    for name, face in LABELS.items():
        many = labels.count(name)
        if many:
            yield (Segment(f"{face.glyph} {many} {face.word}", face.variable),)


def _add_turn(document: Document, subject: Subject, index: int, result: MetricResult, column: int, view: View) -> None:
    score = () if result.score is None else (Segment(cut_score(result.score, 2, 2)),)
    document.begin_turn([heading(f"turn {index + 1}", view.width, score)])
    texts = objects(result.details.get("texts"))
    if not texts:
        document.add(part("", [Segment(plain(result.reason) or "nothing to judge", "muted")], view))
    asked = 0
    for place, text in enumerate(texts):
        if place:
            document.add([BLANK])
        document.add(_text_head(text, view))
        # For each text two questions: what its sentences are, and, if there are any, what they rest on.
        sentences = objects(text.get("sentences"))
        asked += 2 if sentences else 1
        said = _said_in(subject, index, text)
        for number_, item in enumerate(sentences):
            document.add_item(
                f"claim/{index}/{place}/{number_}",
                _sentence(item, column, view.width, _overridden(subject, result.name, index, item)),
                targets=(*_targets(item, result.name, index, asked - 1), *said),
                aside=partial(_aside, item, index, bool(said)),
            )
        document.add(_left_out(text, view))


def _text_head(text: dict[str, Any], view: View) -> Iterator[Line]:
    """`desk, the answer ··· 0.50 · 2 of 4 hold`: who said it, when, and how it came out."""
    author = one_line(string(text.get("author")), limit=100) or "the agent"
    step = text.get("step")
    when = "the answer" if text.get("final") is True else f"step {step + 1}" if isinstance(step, int) else "on the way"
    sentences = _counted(text)
    holding = sum(string(item.get("label")) in HOLDS for item in sentences)
    score = number(text.get("score"))
    told = [f"{holding} of {len(sentences)} hold"] if sentences else []
    if score is not None:
        told.append(cut_score(score, 2, 2))
    end = (Segment(" · ".join(told), "muted"),) if told else ()
    left: Line = (Segment(" "), Segment(author, "name"), Segment(f"  {when}", "label"))
    size = sum(len(segment.text) for segment in end)
    yield (
        (*pad(cut_line(left, max(view.width - size - 2, 8)), view.width - size - 1), *end)
        if end
        else cut_line(left, view.width)
    )
    if unread := string(text.get("unread")):
        yield from hang_text([Segment(" ! ", "status-error")], [safe(unread)], view.width, 3)
        if not objects(text.get("sentences")):
            yield from hang_text([], [safe(string(text.get("text")), "muted")], view.width, 3)


def _counted(text: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sentences that count for the score."""
    return [item for item in objects(text.get("sentences")) if item.get("counts") is not False]


def _left_out(text: dict[str, Any], view: View) -> Iterator[Line]:
    """Show the passages that older runs did not judge, because they were in none of the judge's sentences."""
    passages = text.get("left_out")
    for passage in passages if isinstance(passages, list) else ():
        told = [Segment("in no sentence of the judge: ", "status-error"), safe(string(passage))]
        yield from hang_text([Segment(" ! ", "status-error")], told, view.width, 3)


def face_of(item: dict[str, Any]) -> Face:
    """How the label of a sentence looks; one that is none of ours counts as no label."""
    return LABELS.get(string(item.get("label")), LABELS["unlabelled"])


def _label_column(texts: list[dict[str, Any]]) -> int:
    """As wide as the longest label that occurs."""
    found = [len(face_of(item).word) for text in texts for item in objects(text.get("sentences"))]
    return max(found, default=0) + 2


def _overridden(subject: Subject, criterion: str, index: int, item: dict[str, Any]) -> Line:
    return overridden(subject, criterion, index + 1, "sentence", string(item.get("text")))


def _sentence(item: dict[str, Any], column: int, width: int, mine: Line) -> Iterator[Line]:
    face = face_of(item)
    body = [Segment(" ".join(plain(string(item.get("text"))).split("\n")).strip() or "(empty)")]
    if mark := _mark(item):
        body.append(Segment(f"  ({mark})", "muted"))
    if width < _NARROW:
        # No room for a column of labels: the word stands behind its sentence.
        lead, gutter = [Segment(f" {face.glyph}", face.variable)], 3
        body.append(Segment(f"  {face.word}", face.variable))
    else:
        lead, gutter = [Segment(" "), Segment(f"{face.glyph} {face.word}", face.variable)], column + 3
    yield from hang_text(lead, [*body, *mine], width, gutter)


def _mark(item: dict[str, Any]) -> str:
    """Say where a passage comes from, unless it is a sentence as the judge cut it."""
    if item.get("origin") == "dropped":
        return "left out by the judge" if item.get("counts") is not False else "left out by the judge, not counted"
    if item.get("origin") == "reworded":
        return "reworded by the judge"
    return "the judge's own sentence" if item.get("added") is True else ""


def _targets(item: dict[str, Any], criterion: str, turn: int, asked: int) -> tuple[Target, ...]:
    """Where the sentence's evidence stands: in the log if it was said or done in this turn, else in the question."""
    source = mapping(item.get("source"))
    places: list[str] = []
    if source.get("kind") in ("call", "result") and (call := string(source.get("call_id"))):
        places.append(f"{source['kind']}/{turn}/{call}")
    if isinstance(source.get("event"), int):
        places.append(f"event/{turn}/{source['event']}")
    if source.get("kind") == "user":
        places.append(f"user/{turn}")
    question = Target("Judge", (question_key(criterion, turn, asked), question_key(criterion, turn, 0)))
    return (Target("Log", tuple(places)), question) if places else (question,)


def _said_in(subject: Subject, turn: int, text: dict[str, Any]) -> tuple[Target, ...]:
    """The event in which the text was said, as a row of the trace."""
    record, step = subject.record, text.get("step")
    if record is None or turn >= len(record.turns):
        return ()
    event = step if type(step) is int else len(events_of(record.turns[turn])) - 1
    return (Target("Trace", (f"event/{turn}/{event}",)),) if event >= 0 else ()


def _aside(item: dict[str, Any], turn: int, said: bool, width: int) -> Iterator[Line]:
    """Why the sentence has its label: the judge's reason, both excerpts, where they come from, and where it was
    said."""
    face = face_of(item)
    told = [
        ("why", "", string(item.get("rationale"))),
        ("supports", "evidence-for", string(item.get("supporting"))),
        ("speaks against", "evidence-against", string(item.get("contradicting"))),
    ]
    yield (Segment(f"{face.glyph} {face.word}", face.variable),)
    for name, style, text in told:
        if text.strip():
            yield from labelled(name, [safe(text.strip(), style)], width)
    if not any(text.strip() for _, _, text in told):
        yield (Segment("the judge gave no reason", "muted"),)
    if mapping(item.get("source")) or any(text.strip() for _, style, text in told if style):
        yield from labelled("from", _origin(item, turn), width)
    else:
        yield (_TO_QUESTION,)
    if said:
        yield (_TO_EVENT,)


def _origin(item: dict[str, Any], turn: int) -> Iterator[Segment]:
    source = mapping(item.get("source"))
    kind = _KINDS.get(string(source.get("kind")))
    if kind is None:
        yield Segment("no place that is known  ", "muted")
        yield _TO_QUESTION
        return
    name = one_line(string(source.get("name")), limit=100)
    yield Segment(f"{name}, " if name else "", "name")
    yield Segment(f"{kind} in turn {turn + 1}  ")
    yield _TO_GO


def _first_problem(texts: list[dict[str, Any]]) -> int:
    """The first sentence that does not hold."""
    labels = [string(item.get("label")) for text in texts for item in objects(text.get("sentences"))]
    return next((index for index, label in enumerate(labels) if label not in HOLDS), 0)


def applies(subject: Subject, criteria: frozenset[str]) -> bool:
    """Whether a case has such a pane."""
    record = subject.record
    return bool(shown_in(criteria, "claims") or (record is not None and shown_in(record.metrics, "claims")))
