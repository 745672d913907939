"""Attempts to get one question answered: limits, timeouts, pauses, retries, and the queue of calls to one model.

All questions to a model share its quota, so the first refusal stops all of them. After the pause one question goes
first, and each answer admits one more. A small quota is then not spent on refusals. No question fails while answers
still arrive between pauses. After several pauses in a row without any answer, all waiting questions fail.

If all further questions would be refused too (an invalid key), the queue closes for the rest of the run. Until the
first attempt of a run has ended, only a few questions are sent, because such a refusal stops all others.
"""

import asyncio
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from workbench.judges.base import Answer, JudgeCallError, JudgeFault, Reply, Scrub, cut_fault
from workbench.text.counting import counted

TIMEOUT_VARIABLE = "AGENT_WORKBENCH_JUDGE_TIMEOUT"
ATTEMPTS_VARIABLE = "AGENT_WORKBENCH_JUDGE_ATTEMPTS"
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Timeouts and waits, in seconds except `attempts`.

    An attempt may take `timeout`. After the n-th failed one the wait is `first` × 2ⁿ⁻¹, at most `longest`, minus up to
    half of it by chance. After a quota error, a queue waits as long as the service asks, or `quota_first` × 2ⁿ⁻¹ at its
    n-th pause in a row, at most `longest_pause`, plus up to a tenth of it by chance. If the service asks for more than
    `longest_pause`, the question fails at once.
    `sleep`, `now` and `chance` (0 to 1) can be replaced in tests.
    """

    attempts: int = 5
    timeout: float = 60.0
    first: float = 1.0
    longest: float = 30.0
    quota_first: float = 4.0
    longest_pause: float = 300.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def before_next(self, attempt: int) -> float:
        """Return the seconds between the failed `attempt` (from 1) and the next one."""
        step: float = min(self.longest, self.first * 2 ** (attempt - 1))
        return step * (1 - self.chance() / 2)

    def pause(self, number: int) -> float:
        """Return the seconds of the `number`-th pause in a row (from 1) if the service does not name any."""
        step: float = min(self.longest_pause, self.quota_first * 2 ** (number - 1))
        return step * (1 + self.chance() / 10)


def retry_policy_of(values: Mapping[str, str], usual: RetryPolicy) -> RetryPolicy:
    """Return `usual` with the timeout (seconds) and number of attempts from the environment, where they are above 0."""
    timeout = _number(values.get(TIMEOUT_VARIABLE, ""))
    attempts = _number(values.get(ATTEMPTS_VARIABLE, ""))
    return replace(
        usual,
        timeout=usual.timeout if timeout is None else timeout,
        attempts=usual.attempts if attempts is None else max(1, int(attempts)),
    )


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def retry_after(value: str, now: datetime | None = None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for (0 for a past date), or None if it cannot be read.

    RFC 9110 allows a number of seconds or a date. Google writes "7s" into an error's details.
    """
    value = value.strip()
    if number := _DELAY.fullmatch(value):
        return float(number[1])
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


_WIDE = 100
"""Number of concurrent calls above which the queue counts as recovered."""
_FIRST = 8
"""Maximum number of concurrent calls before the first attempt of a run has ended."""
_WORTH_TELLING = 1.0
"""Seconds by which a pause must grow to be reported again: of many refusals at once, each asks for slightly more."""


class ModelQueue:
    """Calls to one model with one environment.

    `on_wait(model, seconds, reason)` is called for each pause, and with 0 seconds when the queue continues.
    """

    def __init__(self, model: str, retry_policy: RetryPolicy, on_wait: Callable[[str, float, str], None]) -> None:
        self._model = model
        self._retry_policy = retry_policy
        self._on_wait = on_wait
        self._inside = 0
        self._width: int | None = None
        """Number of concurrent calls while the queue recovers, or None for no limit."""
        self._tried = False
        """Whether an attempt of this run has ended."""
        self._pauses = 0
        """Pauses in a row, without an answer between them."""
        self._paused_at = -1.0
        self._until = 0.0
        self._timer: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._refusal: tuple[float, JudgeCallError] | None = None
        self._shut: JudgeCallError | None = None

    async def opened(self) -> None:
        """Wait until a question may be sent.

        Raises:
            JudgeCallError: The quota is exhausted for too long, or the queue is closed.
        """
        while True:
            if self._shut is not None:
                raise _same_refusal(self._shut)
            if self._refusal is not None:
                until, refusal = self._refusal
                if self._retry_policy.now() < until:
                    raise _same_refusal(refusal)
                self._refusal = None
                self._pauses = min(self._pauses, self._retry_policy.attempts - 1)
            if self._open():
                return
            await self._changed.wait()

    def enter(self) -> bool:
        """Enter the queue if a question may be sent now. Return whether it was entered; if so, `leave` must follow."""
        if not self._open() or self._refusal is not None or self._shut is not None:
            return False
        self._inside += 1
        return True

    def leave(self) -> None:
        """Leave the queue after an attempt."""
        self._inside -= 1
        self._wake()

    def tried(self) -> None:
        """Record that an attempt has ended without closing the queue. More questions may now be sent at once."""
        if not self._tried:
            self._tried = True
            self._wake()

    def answered(self) -> None:
        """Record an answer. The row of pauses ends, and a recovering queue admits one more call."""
        self._pauses = 0
        if self._width is not None:
            self._width = None if self._width >= _WIDE else self._width + 1
        self._wake()

    def refused(self, since: float, error: JudgeCallError) -> bool:
        """Pause the queue because the attempt that began at `since` was refused for its quota.

        Return whether to retry after the pause. After too many pauses in a row, or if the service asks for too long a
        pause, all waiting questions fail.
        """
        if self._refusal is not None:
            return False
        now, wait = self._retry_policy.now(), error.retry_after
        if wait is not None and wait > self._retry_policy.longest_pause:
            return self._give_up(now, wait, error)
        if since > self._paused_at:
            self._pauses += 1
            if self._pauses >= self._retry_policy.attempts:
                return self._give_up(now, self._retry_policy.pause(self._pauses), error)
            self._paused_at = now
            self._width = 1
            self._pause(now, self._retry_policy.pause(self._pauses) if wait is None else wait, error)
        elif wait is not None and self._timer is not None:
            self._pause(now, wait, error)
        return True

    def shut(self, error: JudgeCallError) -> None:
        """Refuse all further questions until the next run, because each would be refused in the same way."""
        if self._shut is None:
            message = f"not sent, because an earlier call was refused: {error.message}"
            self._shut = JudgeCallError(error.kind, message, error.code)
            self._wake()

    def start_over(self) -> None:
        """Reset the queue for another run. If it was paused, one question goes first."""
        self._refusal = None
        self._shut = None
        self._tried = False
        self._pauses = 0
        if self._timer is not None:
            self.close()
            self._width = 1
            self._on_wait(self._model, 0.0, "")
        self._wake()

    def close(self) -> None:
        """End a pause without a report."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _open(self) -> bool:
        if not self._tried and self._inside >= _FIRST:
            return False
        return self._timer is None and (self._width is None or self._inside < self._width)

    def _pause(self, now: float, seconds: float, error: JudgeCallError) -> None:
        """Begin a pause, or extend it if the difference is worth a report."""
        seconds = max(seconds, self._retry_policy.first / 2)
        if self._timer is not None and now + seconds < self._until + _WORTH_TELLING:
            return
        self._until = now + seconds
        self._on_wait(self._model, seconds, error.code or error.message)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._end_pause())

    async def _end_pause(self) -> None:
        while (left := self._until - self._retry_policy.now()) > 0:
            await self._retry_policy.sleep(left)
        self._timer = None
        self._on_wait(self._model, 0.0, "")
        self._wake()

    def _give_up(self, now: float, seconds: float, error: JudgeCallError) -> bool:
        """Release all waiting tasks, and refuse questions for `seconds`. Return False: there is no retry."""
        self._refusal = (now + seconds, _same_refusal(error))
        if self._timer is not None:
            self.close()
            self._on_wait(self._model, 0.0, "")
        self._wake()
        return False

    def _wake(self) -> None:
        """Wake all waiting tasks in the order of their arrival."""
        self._changed.set()
        self._changed.clear()


def _same_refusal(error: JudgeCallError) -> JudgeCallError:
    """Copy the error for another caller. An exception that was raised keeps its frames alive."""
    return JudgeCallError(error.kind, error.message, error.code, error.retry_after)


_NOTHING_AGAIN = 1
"""Number of retries after an empty reply, which may be random."""
_LONGEST = 1_000_000
"""Maximum characters of a reply."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits that an attempt waits for: the `queue` of its model, the `slots` of the run, and its criterion's `cap`.

    Without a limit of the criterion, `cap` is None.
    """

    queue: ModelQueue
    slots: asyncio.Semaphore
    cap: asyncio.Semaphore | None
    retry_policy: RetryPolicy
    scrub: Scrub

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for all three limits, and release them after the attempt, even if it raises.

        Raises:
            JudgeCallError: The model's quota is exhausted for too long, or the model refuses every question.
        """
        async with self.cap or nullcontext():
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
    attempt: Callable[[], Awaitable[Answer]], limits: CallLimits, begin: Callable[[], JudgeFault | None]
) -> Reply:
    """Make attempts until one succeeds or no further one makes sense. Only cancellation raises.

    `begin` is called right before the first attempt. If it returns a fault, there is no attempt.
    """
    count = failed = empty = 0
    while True:
        try:
            async with limits.slot():
                if not count and (forbidden := begin()) is not None:
                    return Reply(None, forbidden, attempts=0)
                count += 1
                since = limits.retry_policy.now()
                result = await _one(attempt, limits)
                seconds = limits.retry_policy.now() - since
                again = _again(result, since, limits)
        except JudgeCallError as refusal:
            return Reply(None, _fault(refusal, count), attempts=count)
        if not isinstance(result, JudgeCallError):
            if (result.text or "").strip() or empty >= _NOTHING_AGAIN:
                return _reply(result, count, seconds)
            empty += 1
            continue
        wait = 0.0
        if result.kind != "quota":
            failed += 1
            wait = max(limits.retry_policy.before_next(failed), result.retry_after or 0.0)
        if not again or failed >= limits.retry_policy.attempts or wait > limits.retry_policy.longest_pause:
            return Reply(None, _fault(result, count), seconds=seconds, attempts=count)
        del result  # An exception keeps its frames alive.
        await limits.retry_policy.sleep(wait)


def _reply(answer: Answer, count: int, seconds: float) -> Reply:
    text = answer.text if (answer.text or "").strip() else None
    fault = cut_fault(answer.cut, begun=True) if answer.cut else None
    if text is not None and len(text) > _LONGEST:
        message = f"the reply has {counted(len(text), 'character')}, more than the limit of {_LONGEST:,}"
        text, fault = None, JudgeFault("unreadable", message)
    return Reply(text, fault, answer.model_version, answer.input_tokens, answer.output_tokens, seconds, count)


def _again(result: Answer | JudgeCallError, since: float, limits: CallLimits) -> bool:
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


async def _one(attempt: Callable[[], Awaitable[Answer]], limits: CallLimits) -> Answer | JudgeCallError:
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
