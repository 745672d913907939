"""Samples of one question, requested only while they can change the verdict, and their result.

The majority of the votes decides, and a tie is negative (ADK's rule). So a verdict is often known before all samples
are in: of five samples, three equal ones decide. The smallest number that can decide is requested at once. If that
leaves the verdict open, the same is done with the rest. The verdict is the same as with all samples.

Results of turns and cases are built in the same way by every judged criterion: anything that could not be judged makes
the criterion an error. The score of the rest is shown but never passes.

A reply is JSON anywhere in the text, else lines of the form `key: value`. Models that are not bound to a schema put
fences and prose around their JSON, reply with one object instead of a list, or use lines. Nothing found here is trusted
yet: the reader of each question decides what is valid.
"""

import asyncio
import json
import re
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from workbench.criteria.base import Scored, scored_result, unscored_result
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.judges.base import Judge, Question, Reply, record, reply_record, without_thoughts
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

MAX_LENGTH = 1_000_000
"""Maximum characters of a reply that are read."""
_DECODER = json.JSONDecoder()
_START = re.compile(r"[{\[]")
_DECORATION = " \t\r\n*_`'\"“”‘’#>-–—•.,;:!()[]{}<>|"
_LINE = re.compile(r"^[ \t>*#•\"'`{,(-]*([A-Za-z][A-Za-z _-]{0,40}?)[ \t*\"'`]*:[ \t*]*(.*)$")
_FIRST_WORD = re.compile(r"\w+")
_CHOICE = re.compile(r"""\W*\w+["'\s]*(?:/|\||,?\s*\bor\b|["']\s*,\s*["'])["'\s]*\w""")
"""A choice copied from the question instead of an answer: `valid or invalid`, `yes/no`."""


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a reply with exactly these properties, or of a part of the reply."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class UnreadableError(ValueError):
    """A reply without a clear answer. The message says why."""


def json_values(text: str) -> list[Any]:
    """Return the outermost JSON objects and lists in a text, in order, or [] if there is none.

    Raises:
        UnreadableError: The text is too long.
    """
    if len(text) > MAX_LENGTH:
        raise UnreadableError(f"the reply has {counted(len(text), 'character')}; the limit is {MAX_LENGTH:,}")
    return [value for _, _, value in _decoded(without_thoughts(text))]


def values_outside_json(text: str, keys: Collection[str]) -> list[Any]:
    """Return what follows `key:` outside of the values that `json_values` finds, up to the end of the line.

    If quotes are not escaped, a quotation may be the only valid JSON in a reply. Then the judge's own answer is outside
    of the JSON.
    """
    text = without_thoughts(text)
    pieces, reached = [], 0
    for start, end, _ in _decoded(text):
        pieces.append(text[reached:start])
        reached = end
    rest = " ".join([*pieces, text[reached:]])
    return re.findall(rf"\b(?:{'|'.join(keys)})[\"'`* \t]*:(.*)", rest, re.IGNORECASE)


def _decoded(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield (start, end, value) of each JSON value."""
    position = 0
    for _ in range(2_000):
        start = _START.search(text, position)
        if start is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
        else:
            yield start.start(), position, value


def json_objects(text: str, inside: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the objects among the JSON values of a text, and those in lists.

    If an object has one of the keys `inside`, return the object under that key, or those in the list under it, instead.

    Raises:
        UnreadableError: The text is too long.
    """
    found: list[dict[str, Any]] = []
    for value in json_values(text):
        if isinstance(value, dict):
            value = next((value[key] for key in inside if isinstance(value.get(key), list | dict)), value)
        found += [value] if isinstance(value, dict) else [item for item in value if isinstance(item, dict)]
    return found


def line_objects(text: str, keys: Collection[str]) -> list[dict[str, Any]]:
    """Return objects written as lines `key: value`, without decoration. A repeated key starts the next object."""
    found: list[dict[str, Any]] = []
    for line in without_thoughts(text[:MAX_LENGTH]).splitlines():
        match = _LINE.match(line[:10_000])
        key = re.sub(r"[ -]+", "_", match[1].strip().lower()) if match else ""
        if match is None or key not in keys:
            continue
        if not found or key in found[-1]:
            found.append({})
        found[-1][key] = match[2].strip().rstrip(",")
    return found


def nameless_lines(entries: Sequence[dict[str, Any]], names: Collection[str], answers: Collection[str]) -> bool:
    """Return whether an object of `line_objects` has an answer but no name.

    A quoted or repeated line then shifted the answers, so that others may have the wrong name, too.
    """
    return any(first_present(entry, answers) and not any(entry.get(name) for name in names) for entry in entries)


def first_present(item: dict[str, Any], keys: Collection[str]) -> Any:
    """Return the value of the first key that is present, or None if none is."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def as_text(value: Any) -> str:
    """Return a text without blanks around it, or "" for any other value."""
    return value.strip() if isinstance(value, str) else ""


def normalised(text: str) -> str:
    """Return text in lower case with blanks collapsed, without quotes, bullets and emphasis around it."""
    return " ".join(text.strip(_DECORATION).lower().split())


def first_word(value: Any) -> str:
    """Return the deciding word: `**no**, because …` → no, true → true, ["yes"] → yes, else "" (`yes or no`)."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    chosen = isinstance(value, str) and not _CHOICE.match(value.lower())
    match = _FIRST_WORD.search(value.lower()) if chosen else None
    return match[0].strip("_") if match else ""


T = TypeVar("T")
MAX_TEXT = 4_000
"""Maximum characters of a rationale or an excerpt in details."""


@dataclass(frozen=True, slots=True)
class Sample(Generic[T]):
    """One reply of a judge. `answer` is what was read from the reply. If it is None, `unread` says why."""

    number: int
    reply: Reply
    answer: T | None
    unread: str = ""


@dataclass(frozen=True, slots=True)
class SampledQuestion(Generic[T]):
    """A question and its samples, in the order of their numbers. At most `of` samples are requested."""

    question: Question
    samples: tuple[Sample[T], ...]
    of: int

    @property
    def answers(self) -> list[T]:
        """Answers of the readable samples."""
        return [sample.answer for sample in self.samples if sample.answer is not None]

    @property
    def unread(self) -> str:
        """Fault of the first unreadable reply; "" if all replies were read."""
        return next((sample.unread for sample in self.samples if sample.unread), "")

    @property
    def cut(self) -> str:
        """Reason why a reply that arrived is incomplete; "" if none is."""
        faults = (sample.reply.fault for sample in self.samples if sample.reply.text)
        return next((fault.message for fault in faults if fault is not None), "")

    def record(self, judge: Judge, shown: Callable[[T], Any]) -> dict[str, Any]:
        """Return the entry for `details["questions"]`. `shown` converts an answer to JSON data."""
        replies = [
            reply_record(
                sample.number, sample.reply, None if sample.answer is None else shown(sample.answer), sample.unread
            )
            for sample in self.samples
        ]
        return record(self.question, judge.identity, replies)


def majority(yes: int, no: int) -> bool | None:
    """Return the verdict of these votes. A tie is negative. Without votes, the verdict is None."""
    return yes > no if yes or no else None


def still_needed(yes: int, no: int, left: int) -> int:
    """Return the smallest number of the `left` samples that can decide, or 0 if none can change the verdict."""
    for_yes = (no + left - yes) // 2 + 1
    for_no = -((no - yes - left) // 2)
    return min(left, max(0, min(for_yes, for_no)))


async def ask(
    judge: Judge,
    question: Question,
    read: Callable[[str], T],
    needed: Callable[[Sequence[T], int], int],
    *,
    all_votes: bool,
) -> SampledQuestion[T]:
    """Request samples, each time as many as `needed(answers, left)` says, until it says 0 or all are used.

    With `all_votes`, request all of them at once. `read` raises UnreadableError for a reply that it cannot read.
    """
    of = judge.options.samples
    samples: list[Sample[T]] = []
    while left := of - len(samples):
        answers = [sample.answer for sample in samples if sample.answer is not None]
        count = left if all_votes else needed(answers, left)
        if not count:
            break
        first = len(samples) + 1
        samples += await asyncio.gather(*(_one(judge, question, read, first + index) for index in range(count)))
    return SampledQuestion(question, tuple(samples), of)


async def ask_once(judge: Judge, question: Question, read: Callable[[str], T]) -> SampledQuestion[T]:
    """Request one sample, whatever the options say."""
    return SampledQuestion(question, (await _one(judge, question, read, 1),), 1)


async def _one(judge: Judge, question: Question, read: Callable[[str], T], number: int) -> Sample[T]:
    reply = await judge.ask(question, number)
    if reply.text is None or not reply.text.strip():
        return Sample(number, reply, None, reply.fault.message if reply.fault else "the reply was empty")
    try:
        return Sample(number, reply, read(reply.text))
    except UnreadableError as error:
        # Without this, the cache would return the unreadable reply again in the next run.
        judge.forget(question, number)
        return Sample(number, reply, None, reply.fault.message if reply.fault else str(error))


def judged_result(
    criterion: Criterion, score: float | None, reason: str, details: dict[str, Any], *, unjudged: bool = False
) -> MetricResult:
    """Return the result of a turn or a case: an error if a part of it is `unjudged`, or if there is no score."""
    result = scored_result(criterion, score, short(reason), details)
    return replace(result, status="error") if unjudged else result


def case_result(
    criterion: Criterion,
    turns: Sequence[MetricResult],
    score: float | None,
    reason: str,
    details: dict[str, Any],
    *,
    unjudged: str = "",
) -> Scored:
    """Return the result of the case.

    The case is not applicable if no turn is applicable. The case is an error if a turn is an error, or if `unjudged`
    says why something else could not be judged. `reason` is used if there is no error.
    """
    faults = [f"turn {number}: {turn.reason}" for number, turn in enumerate(turns, 1) if turn.status == "error"]
    faults += [unjudged] if unjudged else []
    if not faults and turns and all(turn.status == "not_applicable" for turn in turns):
        return Scored(unscored_result(criterion, "not_applicable", turns[0].reason, details), tuple(turns))
    result = judged_result(criterion, score, faults[0] if faults else reason, details, unjudged=bool(faults))
    return Scored(result, tuple(turns))


def first_failure(turns: Sequence[MetricResult], otherwise: str) -> str:
    """Return the reason of the first turn without the full score, with its number, or `otherwise` if there is none."""
    numbered = enumerate(turns, 1)
    found = (f"turn {number}: {turn.reason}" for number, turn in numbered if turn.score is not None and turn.score < 1)
    return next(found, otherwise)


def samples_text(count: int, of: int) -> str:
    """Return `3 of 5 samples`, or `5 samples` if all were requested."""
    return counted(of, "sample") if count == of else f"{count} of {counted(of, 'sample')}"


def short(reason: str) -> str:
    """Return a reason on one line, cut to 300 characters, because text from models can be long."""
    return one_line(reason, limit=300)


def exact_mean(scores: Iterable[float | None]) -> float | None:
    """Return the mean of the known scores, or None without any.

    It is rounded once at the end, as in ADK's rubric and hallucination criteria.
    """
    known = [score for score in scores if score is not None]
    return statistics.mean(known) if known else None


_VERDICT = ("verdict", "is_the_agent_response_valid", "is_valid", "valid")
_REASONS = ("reasoning", "rationale", "explanation", "reason")
_UNCLEAR = "unclear"
"""The judge's word for a question that it cannot decide. Like an unreadable reply, it is no vote."""
_WORDS = {
    **dict.fromkeys(("valid", "true", "yes"), True),
    **dict.fromkeys(("invalid", "false", "no", "almost", "partially", "partially_valid"), False),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Vote of one sample."""

    valid: bool
    reasoning: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the vote as stored in details."""
        return {"verdict": "valid" if self.valid else "invalid", "rationale": self.reasoning[:MAX_TEXT]}


def read_verdict(text: str) -> Verdict:
    """Return the vote in a reply.

    If the reply holds several verdicts, in its JSON or beside it, all must agree: one of them may only be quoted.

    Raises:
        UnreadableError: There is no verdict, an unknown one, or several different ones, the judge cannot tell, or the
            reply is too long.
    """
    found = [item for item in json_objects(text) if first_present(item, _VERDICT) is not None]
    found = found or [item for item in line_objects(text, (*_VERDICT, *_REASONS)) if first_present(item, _VERDICT)]
    if not found:
        raise UnreadableError("the reply has no verdict")
    words = [first_word(item[key]) for item in found for key in _VERDICT if item.get(key) is not None]
    if set(words) == {_UNCLEAR}:
        why = as_text(first_present(found[-1], _REASONS)) or "the judge gave no reason"
        raise UnreadableError(f"{_UNCLEAR}: {why}")
    unknown = next((word for word in words if word not in _WORDS), None)
    if unknown is not None:
        raise UnreadableError(f"the verdict is neither valid nor invalid: {unknown or '(empty)'}")
    words += [word for value in values_outside_json(text, _VERDICT) if (word := first_word(value)) in _WORDS]
    verdicts = {_WORDS[word] for word in words}
    if len(verdicts) > 1:
        raise UnreadableError("the reply has several different verdicts")
    return Verdict(verdicts.pop(), as_text(first_present(found[-1], _REASONS)))


def open_votes(verdicts: Sequence[Verdict], left: int) -> int:
    """Return the smallest number of further samples that can decide, or 0 if none can change the verdict."""
    valid = sum(verdict.valid for verdict in verdicts)
    return still_needed(valid, len(verdicts) - valid, left)


def verdict_of(sampled: SampledQuestion[Verdict]) -> bool | None:
    """Return whether most votes are valid, or None if there is no vote."""
    valid = sum(verdict.valid for verdict in sampled.answers)
    return majority(valid, len(sampled.answers) - valid)


def verdict_result(criterion: Criterion, judge: Judge, sampled: SampledQuestion[Verdict], **more: Any) -> MetricResult:
    """Return the result of a turn that one question judges: the score 1.0 or 0.0, or an error without any vote.

    `more` are further details.
    """
    verdict = verdict_of(sampled)
    details = {**verdict_details(sampled, judge), **more}
    score = None if verdict is None else float(verdict)
    return judged_result(criterion, score, verdict_reason(sampled, verdict), details)


def verdict_details(sampled: SampledQuestion[Verdict], judge: Judge) -> dict[str, Any]:
    """Return `votes`, `asked`, `of`, `split` and `questions`."""
    answers = sampled.answers
    valid = sum(verdict.valid for verdict in answers)
    return {
        "votes": {"valid": valid, "invalid": len(answers) - valid, "unread": len(sampled.samples) - len(answers)},
        "asked": len(sampled.samples),
        "of": sampled.of,
        "split": 0 < valid < len(answers),
        "questions": [sampled.record(judge, Verdict.as_json)],
    }


def verdict_reason(sampled: SampledQuestion[Verdict], verdict: bool | None) -> str:
    """Return one sentence with the votes and the first reasoning on the winning side, or why there is no verdict."""
    samples = samples_text(len(sampled.samples), sampled.of)
    if verdict is None:
        return f"no verdict ({samples}): {sampled.unread}"
    winners = [answer for answer in sampled.answers if answer.valid is verdict]
    name = "valid" if verdict else "invalid"
    summary = f"{name} by {len(winners)} of {counted(len(sampled.answers), 'vote')} ({samples})"
    reasoning = next((answer.reasoning for answer in winners if answer.reasoning), "")
    return f"{summary}: {reasoning}" if reasoning else summary
