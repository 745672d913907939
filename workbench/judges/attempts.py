"""Attempts to get one question answered: limits, timeouts, pauses and retries."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from workbench.judges.answering import JudgeCallError, Scrub
from workbench.judges.base import JudgeFault
from workbench.judges.model_queue import ModelQueue
from workbench.judges.retry import TIMEOUT_VARIABLE, RetryPolicy
from workbench.text.counting import counted

T = TypeVar("T")
_NOTHING_AGAIN = 1
"""Retries after an empty reply, which may be chance."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """Result of all attempts.

    `value` is None if there was no reply; then `fault` says why. `seconds` is the time of the last attempt.
    """

    value: T | None
    fault: JudgeFault | None = None
    attempts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits that an attempt waits for: its criterion's (None: no limit), its model's queue, and the run's slots."""

    queue: ModelQueue
    slots: asyncio.Semaphore
    cap: asyncio.Semaphore | None
    retry_policy: RetryPolicy
    scrub: Scrub

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold all three limits for one attempt, however it ends.

        Raises:
            JudgeCallError: The model's quota is exhausted for too long, or the model refuses every question.
        """
        if self.cap is None:
            async with self._slot():
                yield
        else:
            async with self.cap, self._slot():
                yield

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        while True:
            # Wait for the end of a pause without holding a slot. A pause may also begin while waiting for a slot.
            await self.queue.opened()
            await self.slots.acquire()
            if self.queue.enter():
                break
            self.slots.release()
        try:
            yield
        finally:
            self.queue.leave()
            self.slots.release()


async def ask_until_answered(
    attempt: Callable[[], Awaitable[T]],
    is_empty: Callable[[T], bool],
    limits: CallLimits,
    begin: Callable[[], JudgeFault | None],
) -> Outcome[T]:
    """Make attempts until one succeeds or no further one makes sense. Only cancellation raises.

    `is_empty` says whether a value is an empty reply. `begin` is called right before the first attempt and may forbid
    it.
    """
    count = failed = empty = 0
    while True:
        try:
            async with limits.slot():
                if not count and (forbidden := begin()) is not None:
                    return Outcome(None, forbidden)
                count += 1
                since = limits.retry_policy.now()
                result = await _one(attempt, limits)
                seconds = limits.retry_policy.now() - since
                again = _again(result, since, limits)
        except JudgeCallError as refusal:
            return Outcome(None, _fault(refusal, count), count)
        if not isinstance(result, JudgeCallError):
            if not is_empty(result) or empty >= _NOTHING_AGAIN:
                return Outcome(result, None, count, seconds)
            empty += 1
            continue
        failed += result.kind != "quota"
        wait = (
            max(limits.retry_policy.before_next(failed), result.retry_after or 0.0) if result.kind != "quota" else 0.0
        )
        if not again or failed >= limits.retry_policy.attempts or wait > limits.retry_policy.longest_pause:
            return Outcome(None, _fault(result, count), count, seconds)
        del result  # An exception keeps its frames alive.
        await limits.retry_policy.sleep(wait)


def _again(result: object, since: float, limits: CallLimits) -> bool:
    """Report the attempt to the queue, and return whether it may be repeated."""
    if not isinstance(result, JudgeCallError):
        limits.queue.tried()
        limits.queue.answered()
        return True
    if result.final:
        limits.queue.shut(result)
        return False
    limits.queue.tried()
    if result.kind == "quota" and result.retryable:
        return limits.queue.refused(since, result)
    return result.retryable


async def _one(attempt: Callable[[], Awaitable[T]], limits: CallLimits) -> T | JudgeCallError:
    """Return the result of an attempt, or the error that prevented one."""
    limit = limits.retry_policy.timeout
    try:
        async with asyncio.timeout(limit):
            return await attempt()
    except JudgeCallError as error:
        return error
    except TimeoutError:
        message = f"no answer within {limit:g} s ({TIMEOUT_VARIABLE} sets another limit)"
        return JudgeCallError("timeout", message, retryable=True)
    except Exception as error:
        return JudgeCallError("unreadable", limits.scrub(f"{type(error).__name__}: {error}"))


def _fault(error: JudgeCallError, count: int) -> JudgeFault:
    message = f"{error.message} ({counted(count, 'attempt')})" if count > 1 else error.message
    return JudgeFault(error.kind, message, error.code)
