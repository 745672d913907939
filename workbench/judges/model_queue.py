"""The queue of calls to one model. It pauses when the service reports an exhausted quota.

All questions to a model share its quota, so the first refusal stops all of them. After the pause one question goes
first, and each answer admits one more, so that a small quota is not spent on refusals. No question gives up while
answers still arrive between pauses. After several pauses in a row without any answer, all of them do.

A refusal that every further question would meet too (an invalid key) closes the queue for the rest of the run. Until
the first attempt of a run has ended, only a few questions are sent. So such a refusal stops the rest.
"""

import asyncio
from collections.abc import Callable

from workbench.judges.answering import JudgeCallError
from workbench.judges.retry import RetryPolicy

_WIDE = 100
"""Calls at once above which the queue counts as recovered."""
_FIRST = 8
"""Calls at once before the first attempt of a run has ended."""
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
        """Calls at once while the queue recovers. None: any number."""
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
        """Wait until a question may go.

        Raises:
            JudgeCallError: The quota is exhausted for too long, or the queue is closed.
        """
        while True:
            if self._shut is not None:
                raise _again(self._shut)
            if self._refusal is not None:
                until, refusal = self._refusal
                if self._retry_policy.now() < until:
                    raise _again(refusal)
                self._refusal = None
                self._pauses = min(self._pauses, self._retry_policy.attempts - 1)
            if self._open():
                return
            await self._changed.wait()

    def enter(self) -> bool:
        """Enter the queue if it is still open. `leave` must follow."""
        if not self._open() or self._refusal is not None or self._shut is not None:
            return False
        self._inside += 1
        return True

    def leave(self) -> None:
        """Leave the queue after an attempt."""
        self._inside -= 1
        self._wake()

    def tried(self) -> None:
        """Record that an attempt has ended. If it did not close the queue, others may go."""
        if not self._tried:
            self._tried = True
            self._wake()

    def answered(self) -> None:
        """Record an answer: the service has quota."""
        self._pauses = 0
        if self._width is not None:
            self._width = None if self._width >= _WIDE else self._width + 1
        self._wake()

    def refused(self, since: float, error: JudgeCallError) -> bool:
        """Pause the queue because the attempt that began at `since` was refused for its quota.

        Return whether to retry after the pause.
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
        """Refuse all further questions until the next run: each would meet the same refusal."""
        if self._shut is None:
            self._shut = JudgeCallError(error.kind, f"not sent after a refusal: {error.message}", error.code)
            self._wake()

    def start_over(self) -> None:
        """Forget the service's answers because another run begins. If the queue was paused, one question goes first."""
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
        """Release all waiting tasks, and refuse questions for that many seconds."""
        self._refusal = (now + seconds, _again(error))
        if self._timer is not None:
            self.close()
            self._on_wait(self._model, 0.0, "")
        self._wake()
        return False

    def _wake(self) -> None:
        """Wake all waiting tasks in the order of their arrival."""
        self._changed.set()
        self._changed.clear()


def _again(error: JudgeCallError) -> JudgeCallError:
    """Copy the error for another caller. An exception that was raised keeps its frames alive."""
    return JudgeCallError(error.kind, error.message, error.code, error.retry_after)
