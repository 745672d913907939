"""Functions that read the details of judged criteria, and texts about votes, costs and judges.

They tolerate any content, because runs and reports can hold anything. The criteria (`workbench/criteria/judged`) and
`workbench.judges.base.record` document the format.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from workbench.events.events import MetricResult
from workbench.results.faces import BY_FUNCTION, SPLIT, VERDICTS, Face
from workbench.results.lines import Line, View, flow, label, part, safe, under
from workbench.store.execution import CaseRecord, Turn
from workbench.store.reasons import is_split_in, is_without_model, judge_in, judged_by, votes_differ
from workbench.text.counting import counted
from workbench.text.json_values import mapping, objects, parts_of, string
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.criteria.description import Shown

_SHORT = 0.05
"""Times below this, in seconds, are not shown."""


@cache
def is_shown_in(criterion: str, where: "Shown") -> bool:
    """Return whether the description of a criterion says that its details are shown in this place."""
    # Imported late, because a usage error must not wait for the descriptions.
    from workbench.criteria.registry import descriptions

    info = descriptions().get(criterion)
    return info is not None and where in info.shown_in


def shown_in(criteria: Iterable[str], where: "Shown") -> str:
    """Return the first criterion whose details are shown in this place, or ""."""
    return next((name for name in criteria if is_shown_in(name, where)), "")


class JudgeQuestion(NamedTuple):
    """A question to a judge: its criterion, turn (None: the whole case) and index."""

    criterion: str
    turn: int | None
    number: int
    question: dict[str, Any]

    @property
    def key(self) -> str:
        """The key of the question in the pane "Judges"."""
        return question_key(self.criterion, self.turn, self.number)


def question_key(criterion: str, turn: int | None, number: int) -> str:
    """Return the key of a question in the pane "Judges"."""
    return f"question/{criterion}/{'case' if turn is None else turn}/{number}"


def message_text(content: Any) -> str:
    """Return the texts of a message's parts, one per line."""
    return "\n".join(filter(None, (string(part.get("text")) for part in parts_of(content))))


def number(value: Any) -> float | None:
    """Return the value if it is a number that a float can hold, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) <= sys.float_info.max else None


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


def is_function(result: MetricResult) -> bool:
    """Return whether a function, not a language model, judged."""
    return is_without_model(judged_by(result.details))


def case_is_split(record: CaseRecord, criterion: str) -> bool:
    """Return whether a criterion's votes disagree anywhere in the case."""
    whole = record.metrics.get(criterion)
    found = [result for _, _, result in results(record, criterion)]
    return any(is_split_in(result.details) for result in (found if whole is None else [whole, *found]))


def is_cached(questions: Iterable[dict[str, Any]]) -> bool:
    """Return whether there are replies, and all of them came from the cache."""
    found = replies(questions)
    return bool(found) and all(reply.get("cached") is True for reply in found)


def versions(questions: Iterable[dict[str, Any]]) -> list[str]:
    """Return the models that answered, as reported by the service, in order of appearance."""
    return list(dict.fromkeys(found for reply in replies(questions) if (found := string(reply.get("model_version")))))


def verdict_of(reply: dict[str, Any]) -> str:
    """Return the single verdict of a reply, "unread" if the reply is unreadable, or "" if it has no single verdict."""
    verdict = reply.get("verdict")
    if isinstance(verdict, str) and verdict:
        return verdict
    if word := string(mapping(verdict).get("verdict")):
        return word
    return "unread" if reply.get("unread") or reply.get("fault") else ""


def mark(face: Face) -> Text:
    """Return the glyph and the word of a face: `◐ split`."""
    return Text.styled(f"{face.glyph} {face.word}", face.variable)


def verdict_mark(verdict: Any) -> Text:
    """Return a verdict with its glyph, or an unknown one as it is: `✓ yes`."""
    if isinstance(verdict, str) and verdict in VERDICTS:
        return mark(VERDICTS[verdict])
    return Text.styled(one_line(verdict, limit=40) if isinstance(verdict, str) and verdict else "no verdict", "muted")


def criterion_tags(record: CaseRecord, criterion: str) -> list[Line]:
    """Return tags that must accompany a verdict: `ƒ function`, `◐ split` for disagreeing votes, and `cached`."""
    result = record.metrics.get(criterion)
    tags = [mark(BY_FUNCTION)] if result is not None and is_function(result) else []
    tags += [mark(SPLIT)] if result is not None and case_is_split(record, criterion) else []
    cached = is_cached(item.question for item in judge_questions(record, criterion))
    return [*tags, *([Text.styled("cached", "muted")] if cached else [])]


def judge_lines(record: CaseRecord, result: MetricResult, view: View) -> Iterator[Line]:
    """Yield the judge of a criterion: its name, the models that answered, a custom address and a note."""
    judge = judge_in(result.details)
    if judge:
        names = judge_names(judge, versions(item.question for item in judge_questions(record, result.name)))
        yield from under(label("judge"), flow(names, view.room))
        if note := string(judge.get("note")):
            yield from part("", safe(note, "muted"), view)


def judge_names(judge: dict[str, Any], answered_by: Iterable[str]) -> list[Line]:
    """Return the judge in parts: its name, up to four other models that answered, and a custom address."""
    parts: list[Line] = [Text.styled(one_line(string(judge.get("model")), limit=200) or "(no name)", "strong")]
    others = [one_line(version, limit=200) for version in answered_by if version != judge.get("model")]
    if others:
        parts.append(Text.assemble(("answered by ", "muted"), ", ".join(others[:4])))
    if base_url := string(judge.get("base_url")):
        parts.append(Text.assemble(("at ", "muted"), (one_line(base_url, limit=200), "status-not-evaluated")))
    return parts


def vote_words(item: dict[str, Any], verdict: str) -> list[Line]:
    """Return `4 of 5 votes (up to 7)` for `verdict`, then all counts if others got votes, or [] without votes."""
    votes = {name: count(many) for name, many in mapping(item.get("votes")).items() if count(many) > 0}
    asked, of = count(item.get("asked")), count(item.get("of"))
    lines: list[Line] = []
    if asked and votes:
        limit = f" (up to {of})" if asked < of else ""
        lines.append(Text.styled(f"{votes.get(verdict, 0)} of {counted(asked, 'vote')}{limit}", "muted"))
    ordered = sorted(votes.items(), key=lambda vote: -vote[1])
    every = ", ".join(f"{many} {one_line(str(name), limit=20)}" for name, many in ordered)
    if votes_differ(item):
        lines.append(Text.assemble(mark(SPLIT), (f": {every}", SPLIT.variable)))
    elif len(votes) > 1 or (votes and verdict not in votes):
        lines.append(Text.styled(every, "status-error"))
    return lines


def leading_vote(item: dict[str, Any]) -> str:
    """Return the verdict with the most votes, or "" without votes."""
    votes = mapping(item.get("votes"))
    return str(max(votes, key=lambda name: count(votes[name]))) if votes else ""


def cost_words(questions: Iterable[dict[str, Any]]) -> list[Line]:
    """Return the cost of questions in parts: `3 replies`, `1.2 s`, `2,310 → 120 tokens`, `5 attempts`, `cached`."""
    found = replies(questions)
    texts = [counted(len(found), "reply", "replies"), *reply_cost(found)]
    return [Text.styled(text, "muted") for text in texts]


def reply_cost(found: list[dict[str, Any]]) -> list[str]:
    """Return the time, tokens (in → out), attempts and cached count of some replies."""
    fresh = [reply for reply in found if reply.get("cached") is not True]
    seconds = sum(number(reply.get("seconds")) or 0.0 for reply in fresh)
    texts = _spent(
        seconds, *(sum(count(reply.get(key)) for reply in fresh) for key in ("input_tokens", "output_tokens"))
    )
    attempts = sum(count(reply.get("attempts")) for reply in fresh)
    if attempts > len(fresh):
        texts.append(counted(attempts, "attempt"))
    cached = len(found) - len(fresh)
    if cached:
        texts.append("cached" if cached == len(found) else f"{cached} cached")
    return texts


def tally_words(tally: dict[str, Any]) -> list[Line]:
    """Return the cost of a criterion in parts: `5 calls`, `2 cached`, `1.2 s`, `2,310 → 120 tokens`, or [].

    For a verdict that was kept, the last part is `in an earlier run`.
    """
    if not tally:
        return []
    cached, seconds = count(tally.get("cached")), number(tally.get("seconds")) or 0.0
    texts = [counted(count(tally.get("calls")), "call"), *([f"{cached:,} cached"] if cached else [])]
    texts += _spent(seconds, count(tally.get("input_tokens")), count(tally.get("output_tokens")))
    texts += ["in an earlier run"] if tally.get("kept") else []
    return [Text.styled(text, "muted") for text in texts]


def _spent(seconds: float, into: int, out: int) -> list[str]:
    """Return `1.2 s` and `2,310 → 120 tokens`, as far as they are known."""
    texts = [f"{seconds:.1f} s"] if seconds >= _SHORT else []
    return [*texts, *([f"{into:,} → {counted(out, 'token')}"] if into or out else [])]
