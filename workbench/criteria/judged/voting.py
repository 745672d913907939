"""Samples of one question, requested only while they can change the verdict.

The majority of the votes decides, and a tie is negative (ADK's rule). So a verdict is often known before all samples
are in: of five samples, three equal ones decide. The smallest number that can decide is requested at once. If that
leaves the verdict open, the same is done with the rest. The verdict is the same as with all samples.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workbench.criteria.judged.reply_text import UnreadableError
from workbench.judges.base import Judge, Question, Reply, record, reply_record

T = TypeVar("T")
MAX_TEXT = 4_000
"""Maximum characters of a rationale or an excerpt in details."""


@dataclass(frozen=True, slots=True)
class Sample(Generic[T]):
    """One reply of a judge. `answer` is what was read from it, or None; then `unread` says why."""

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
                sample.number,
                sample.reply,
                None if sample.answer is None else shown(sample.answer),
                sample.unread,
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
    """Request samples until `needed(answers, left)` is 0 or all samples are used. `read` raises UnreadableError."""
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
