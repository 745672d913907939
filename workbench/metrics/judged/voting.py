"""Samples of one question, asked for as long as they can change a verdict.

A verdict goes to the majority of the votes, a tie is negative (ADK's rule). So it is known early: of five samples,
three equal ones decide. The smallest number that can decide is asked at once; what is still open after that is asked
in the same way. The verdict is that of asking all.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workbench.judge.base import Judge, Question, Reply, record, reply_record
from workbench.metrics.judged.reply_text import UnreadableError

T = TypeVar("T")
MAX_KEPT = 4_000
"""Characters of a rationale or an excerpt that details keep."""


@dataclass(frozen=True, slots=True)
class Sample(Generic[T]):
    """One asking: `answer` is what was read from the reply, None where `unread` says why nothing could be."""

    number: int
    reply: Reply
    answer: T | None
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """A question with the samples that were asked, in the order of their numbers, `of` so many at most."""

    question: Question
    samples: tuple[Sample[T], ...]
    of: int

    @property
    def answers(self) -> list[T]:
        """What could be read."""
        return [sample.answer for sample in self.samples if sample.answer is not None]

    @property
    def unread(self) -> str:
        """Why the first reply that could not be read could not; "" if all could."""
        return next((sample.unread for sample in self.samples if sample.unread), "")

    @property
    def cut(self) -> str:
        """Why a reply that arrived is incomplete; "" if none is."""
        faults = (sample.reply.fault for sample in self.samples if sample.reply.text)
        return next((fault.message for fault in faults if fault is not None), "")

    def record(self, judge: Judge, shown: Callable[[T], Any]) -> dict[str, Any]:
        """For `details["questions"]`; `shown` says what stands there for an answer."""
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
    """The verdict of these votes: a tie is negative, no vote at all is no verdict."""
    return yes > no if yes or no else None


def still_needed(yes: int, no: int, left: int) -> int:
    """The smallest number of further samples, of the `left` ones, that can decide; 0 if none can change the verdict."""
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
) -> Asked[T]:
    """Asks until `needed(answers, left)` is 0 or all samples are used up. `read` raises UnreadableError."""
    of = judge.options.samples
    samples: list[Sample[T]] = []
    while left := of - len(samples):
        answers = [sample.answer for sample in samples if sample.answer is not None]
        count = left if all_votes else needed(answers, left)
        if not count:
            break
        first = len(samples) + 1
        samples += await asyncio.gather(*(_one(judge, question, read, first + index) for index in range(count)))
    return Asked(question, tuple(samples), of)


async def ask_once(judge: Judge, question: Question, read: Callable[[str], T]) -> Asked[T]:
    """One sample, whatever the options say."""
    return Asked(question, (await _one(judge, question, read, 1),), 1)


async def _one(judge: Judge, question: Question, read: Callable[[str], T], number: int) -> Sample[T]:
    reply = await judge.ask(question, number)
    if reply.text is None or not reply.text.strip():
        return Sample(number, reply, None, reply.fault.message if reply.fault else "the reply was empty")
    try:
        return Sample(number, reply, read(reply.text))
    except UnreadableError as error:
        # What comes back from now on would be as useless: the next run is to ask.
        judge.forget(question, number)
        return Sample(number, reply, None, reply.fault.message if reply.fault else str(error))
