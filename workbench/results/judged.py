"""Readers of the details of judged criteria. They tolerate any content, because runs and reports can hold anything.

The criteria (`workbench/criteria/judged`) and `workbench.judges.base.record` document the form.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.events.events import MetricResult
from workbench.store.execution import CaseRecord, Turn
from workbench.store.judge_details import is_split_in, is_without_model, judge_in, judged_by
from workbench.text.json_values import mapping, objects, parts_of, string

if TYPE_CHECKING:
    from workbench.criteria.description import Shown


@cache
def is_shown_in(criterion: str, where: "Shown") -> bool:
    """Return whether a criterion's description names that pane for its details."""
    # Imported late, so that a usage error need not wait for the descriptions.
    from workbench.criteria.registry import descriptions

    info = descriptions().get(criterion)
    return info is not None and where in info.shown_in


def shown_in(criteria: Iterable[str], where: "Shown") -> str:
    """Return the first criterion whose details are shown in that pane, or "" if there is none."""
    return next((name for name in criteria if is_shown_in(name, where)), "")


class JudgeQuestion(NamedTuple):
    """A question to a judge: its criterion, turn (None: the whole case) and index."""

    criterion: str
    turn: int | None
    number: int
    question: dict[str, Any]

    @property
    def key(self) -> str:
        """The name of the question in the judge pane."""
        return question_key(self.criterion, self.turn, self.number)


def question_key(criterion: str, turn: int | None, number: int) -> str:
    """Return the name of a question as in `JudgeQuestion.key`."""
    return f"question/{criterion}/{'case' if turn is None else turn}/{number}"


def message_text(content: Any) -> str:
    """Return the texts of a message's parts, one per line."""
    return "\n".join(filter(None, (string(part.get("text")) for part in parts_of(content))))


def number(value: Any) -> float | None:
    """Return the value if it is a number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def count(value: Any) -> int:
    """Return the value if it is a whole number, else 0."""
    return value if isinstance(value, int) else 0


def questions(details: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all questions in a result's details, those about the end of a conversation last."""
    return objects(details.get("questions")) + objects(mapping(details.get("stop")).get("questions"))


def replies(questions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all replies to some questions."""
    return [reply for question in questions for reply in objects(question.get("replies"))]


def results(record: CaseRecord, criterion: str) -> Iterator[tuple[int, Turn, MetricResult]]:
    """Yield a criterion's result in each turn that has one, with the turn counted from 0."""
    for index, turn in enumerate(record.turns):
        result = turn.metrics.get(criterion)
        if result is not None:
            yield index, turn, result


def judge_questions(record: CaseRecord, criterion: str) -> Iterator[JudgeQuestion]:
    """Yield every question of a criterion, turn by turn, then those about the whole case."""
    for index, _, result in results(record, criterion):
        for place, question in enumerate(questions(result.details)):
            yield JudgeQuestion(criterion, index, place, question)
    whole = record.metrics.get(criterion)
    if whole is not None:
        for place, question in enumerate(questions(whole.details)):
            yield JudgeQuestion(criterion, None, place, question)


def judge_of(result: MetricResult) -> dict[str, Any]:
    """Return the judge (`JudgeIdentity` as JSON), or {} if there was none."""
    return judge_in(result.details)


def is_function(result: MetricResult) -> bool:
    """Return whether a function judged, and not a language model."""
    return is_without_model(judged_by(result.details))


def is_split(result: MetricResult) -> bool:
    """Return whether the votes for this result disagree: those of its turn, of one of its rubrics, or of the end."""
    return is_split_in(result.details)


def case_is_split(record: CaseRecord, criterion: str) -> bool:
    """Return whether a criterion's votes disagree anywhere in the case."""
    whole = record.metrics.get(criterion)
    found = [result for _, _, result in results(record, criterion)]
    return any(map(is_split, found if whole is None else [whole, *found]))


def is_cached(questions: Iterable[dict[str, Any]]) -> bool:
    """Return whether there are replies, and all of them came from the cache."""
    found = replies(questions)
    return bool(found) and all(reply.get("cached") is True for reply in found)


def versions(questions: Iterable[dict[str, Any]]) -> list[str]:
    """Return the models that answered according to the service, in order of appearance."""
    return list(dict.fromkeys(found for reply in replies(questions) if (found := string(reply.get("model_version")))))


def verdict_of(reply: dict[str, Any]) -> str:
    """Return a reply's verdict as one word: "unread" if it could not be read, "" if it is longer."""
    verdict = reply.get("verdict")
    if isinstance(verdict, str) and verdict:
        return verdict
    if word := string(mapping(verdict).get("verdict")):
        return word
    return "unread" if reply.get("unread") or reply.get("fault") else ""


def reply_verdicts(question: dict[str, Any]) -> dict[str, int]:
    """Return the number of replies to a question for each one-word verdict."""
    return dict(Counter(filter(None, map(verdict_of, objects(question.get("replies"))))))
