"""The questions of triage: about a label, a criterion, or the whole case."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from workbench.editing.triage.entry import (
    About,
    Entry,
    Judged,
    by_judge,
    deciding_criterion,
    judged_case,
    judged_criterion,
    judged_label,
    offered,
    says,
)
from workbench.results.faces import FACES, LABELS, VERDICTS, score_text
from workbench.results.judged import judge_questions, leading_vote, results, shown_in
from workbench.store.execution import CaseRecord, Execution
from workbench.text.json_values import objects, string
from workbench.text.safe_text import one_line

_SCALES = (("valid", "invalid"), ("yes", "no"))


@dataclass(frozen=True, slots=True)
class Option:
    """A possible answer to a question.

    `value` is the name of a choice or label, and `word` is its text on the screen. `key` is its letter, or "" if it has
    none.
    """

    value: str
    word: str
    help: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a verdict or label. `what` names it, and `judged_words` show it. Both are safe text."""

    about: About
    judged: Judged
    what: str
    judged_words: str
    options: tuple[Option, ...]

    def entry(self, option: Option, note: str, at: str) -> Entry:
        """Return the triage entry for a chosen option. `at` is the time of the answer."""
        if self.about.part:
            return Entry(self.about, self.judged, "", option.value, note, at)
        return Entry(self.about, self.judged, option.value, says(option.value, self.judged.says), note, at)

    def offers(self, value: str) -> bool:
        """Return whether one of the options has this value."""
        return any(option.value == value for option in self.options)

    def key(self) -> tuple[Any, ...]:
        """Return the key of this question's triage entries."""
        return Entry(self.about, self.judged).key


def questions(record: CaseRecord, item: str) -> list[Question]:
    """Return the questions about a case, the most likely first.

    A question about the label at `item`, the key of the pane's selected item, comes before those of `case_questions`.
    """
    return [*_of_item(record, item), *case_questions(record)]


def case_questions(record: Execution) -> list[Question]:
    """Return questions about the deciding criterion, if any, the case, and its other criteria that have a verdict."""
    names = [name for name, result in record.scores.items() if result.status in ("passed", "failed", "error")]
    first = deciding_criterion(record)
    order = [first, *(["", *names] if first else names)]
    return [_of_criterion(record, name) if name else _of_case(record) for name in dict.fromkeys(order)]


def first_options(record: Execution) -> tuple[Option, ...]:
    """Return the options of the first question about a case."""
    return _choices(record, deciding_criterion(record))


def _of_case(record: Execution) -> Question:
    face = FACES[record.state]
    failed = [result for result in record.scores.values() if result.status == "failed"]
    words = [f"{face.glyph} {face.word}", *(f"{one_line(one.name, limit=60)} {score_text(one)}" for one in failed)]
    if record.error is not None:
        words.append(one_line(f"{record.error.kind}: {record.error.message}", limit=160))
    return Question(About(record.ref.eval_id), judged_case(record), "the case", "  ".join(words), _choices(record))


def _of_criterion(record: Execution, name: str) -> Question:
    judged = judged_criterion(record, name)
    result = record.scores[name]
    words = f"{FACES[result.status].glyph} {score_text(result) or FACES[result.status].word}"
    if judged.judge:
        words += f"  by {one_line(judged.judge, limit=40)}"
    return Question(About(record.ref.eval_id, name), judged, one_line(name, limit=60), words, _choices(record, name))


def _choices(record: Execution, criterion: str = "") -> tuple[Option, ...]:
    status = record.scores[criterion].status if criterion else record.state
    choices = offered(status, by_judge=by_judge(record, criterion))
    return tuple(Option(choice.name, choice.label, choice.help, choice.key) for choice in choices)


def _of_item(record: CaseRecord, item: str) -> list[Question]:
    kind, _, rest = item.partition("/")
    # The pane may still show labels from before the case was scored again.
    with suppress(IndexError, KeyError, ValueError):
        match kind:
            case "claim":
                return list(_of_sentence(record, rest))
            case "rubric":
                return list(_of_rubric(record, rest))
            case "question":
                return list(_of_vote(record, item))
    return []


def _of_sentence(record: CaseRecord, rest: str) -> Iterator[Question]:
    turn, place, number = map(int, rest.split("/"))
    for index, _, result in results(record, shown_in(record.metrics, "claims")):
        if index == turn:
            sentence = objects(objects(result.details.get("texts"))[place].get("sentences"))[number]
            text, label = string(sentence.get("text")), string(sentence.get("label"))
            about = About(record.ref.eval_id, result.name, turn + 1, "sentence", text)
            known = [name for name in LABELS if name != "unlabelled"]
            yield _of_label(record, about, label, f"“{one_line(text, limit=160)}”", known)


def _of_rubric(record: CaseRecord, rest: str) -> Iterator[Question]:
    criterion, turn, place = rest.rsplit("/", 2)
    for index, _, result in results(record, criterion):
        if index == int(turn):
            rubric = objects(result.details.get("rubrics"))[int(place)]
            name = string(rubric.get("rubric_id"))
            about = About(record.ref.eval_id, criterion, index + 1, "rubric", name)
            text = one_line(string(rubric.get("text")), limit=160) or one_line(name, limit=60)
            yield _of_label(record, about, string(rubric.get("verdict")), f"rubric “{text}”", ["yes", "no"])


def _of_vote(record: CaseRecord, item: str) -> Iterator[Question]:
    """Yield the question about a judge's verdict on a turn or case, if the verdict is a single word."""
    for criterion in record.metrics:
        for exchange in judge_questions(record, criterion):
            if exchange.key != item:
                continue
            metrics = record.metrics if exchange.turn is None else record.turns[exchange.turn].metrics
            label = leading_vote(metrics[criterion].details)
            scale = next((scale for scale in _SCALES if label in scale), None)
            if scale is not None and label:
                turn = None if exchange.turn is None else exchange.turn + 1
                about = About(record.ref.eval_id, criterion, turn, "verdict", string(exchange.question.get("kind")))
                where = "on the case" if turn is None else f"on turn {turn}"
                yield _of_label(record, about, label, f"the judge's verdict {where}", list(scale))


def _of_label(record: CaseRecord, about: About, label: str, what: str, known: list[str]) -> Question:
    faces = {**LABELS, **VERDICTS}
    options = tuple(
        Option(name, f"{faces[name].glyph} {faces[name].word}", "The judge's label." if name == label else "")
        for name in known
    )
    judged = judged_label(record, about.criterion, label)
    words = f"{faces[label].glyph} {faces[label].word}" if label in faces else one_line(label, limit=40) or "no label"
    if judged.judge:
        words += f"  by {one_line(judged.judge, limit=40)}"
    return Question(about, judged, what, words, options)
