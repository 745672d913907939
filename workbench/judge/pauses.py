"""The queue to one model: it pauses when the service says that a quota is used up.

All questions to a model share its quota, so the first refusal stops all of them. When the pause is over one question
goes first, and each answer lets one more through, so that a small quota is not spent on refusals. As long as
answers come between the pauses, nothing gives up; after so many pauses in a row without a single answer, everything
does. A refusal that every further question would meet too (the key is not valid) shuts the queue for the rest of the
run. So that it comes before everything was sent, few questions go until the first attempt of a run has ended.
"""

import asyncio
from collections.abc import Callable

from workbench.judge.answering import JudgeCallError
from workbench.judge.retry import Patience

_WIDE = 100
"""So many at once, and the queue counts as started again."""
_FIRST = 8
"""So many may go before anything is known of the service."""
_WORTH_TELLING = 1.0
"""Seconds: of many refusals at once, each asks for a moment more than the one before."""


class Lane:
    """What goes to one model with one environment. `on_wait(model, seconds, reason)` is told of pauses, with 0 seconds
    when the queue goes on."""

    def __init__(self, model: str, patience: Patience, on_wait: Callable[[str, float, str], None]) -> None:
        self._model = model
        self._patience = patience
        self._on_wait = on_wait
        self._inside = 0
        self._width: int | None = None
        """How many may be inside while the queue starts again; None: any number."""
        self._tried = False
        """Whether an attempt of this run has ended."""
        self._pauses = 0
        """In a row, without an answer between them."""
        self._paused_at = -1.0
        self._until = 0.0
        self._timer: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._refusal: tuple[float, JudgeCallError] | None = None
        self._shut: JudgeCallError | None = None

    async def opened(self) -> None:
        """Waits until a question may go.

        Raises:
            JudgeCallError: the quota is used up for longer than anybody waits, or the queue is shut.
        """
        while True:
            if self._shut is not None:
                raise _again(self._shut)
            if self._refusal is not None:
                until, refusal = self._refusal
                if self._patience.now() < until:
                    raise _again(refusal)
                self._refusal = None
                self._pauses = min(self._pauses, self._patience.attempts - 1)
            if self._open():
                return
            await self._changed.wait()

    def enter(self) -> bool:
        """Takes a place, if the queue is still open; `leave` gives it back."""
        if not self._open() or self._refusal is not None or self._shut is not None:
            return False
        self._inside += 1
        return True

    def leave(self) -> None:
        self._inside -= 1
        self._wake()

    def tried(self) -> None:
        """An attempt ended, whatever came: if it did not shut the queue, others may go."""
        if not self._tried:
            self._tried = True
            self._wake()

    def answered(self) -> None:
        """The service answered: it has quota."""
        self._pauses = 0
        if self._width is not None:
            self._width = None if self._width >= _WIDE else self._width + 1
        self._wake()

    def refused(self, since: float, error: JudgeCallError) -> bool:
        """The attempt begun at `since` met the quota. Whether it is to be made again, after the pause that this brings
        about or that had begun already."""
        if self._refusal is not None:
            return False
        now, wait = self._patience.now(), error.retry_after
        if wait is not None and wait > self._patience.longest_pause:
            return self._give_up(now, wait, error)
        if since > self._paused_at:
            self._pauses += 1
            if self._pauses >= self._patience.attempts:
                return self._give_up(now, self._patience.pause(self._pauses), error)
            self._paused_at = now
            self._width = 1
            self._pause(now, self._patience.pause(self._pauses) if wait is None else wait, error)
        elif wait is not None and self._timer is not None:
            self._pause(now, wait, error)
        return True

    def shut(self, error: JudgeCallError) -> None:
        """Let no further question go until another run begins: each would be refused as this one was."""
        if self._shut is None:
            self._shut = JudgeCallError(error.kind, f"not asked, after a refusal: {error.message}", error.code)
            self._wake()

    def start_over(self) -> None:
        """Forgets what the service said before: another run begins. If it paused, one question goes first."""
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
        """Ends a pause without a word."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _open(self) -> bool:
        if not self._tried and self._inside >= _FIRST:
            return False
        return self._timer is None and (self._width is None or self._inside < self._width)

    def _pause(self, now: float, seconds: float, error: JudgeCallError) -> None:
        """Begins a pause, or makes it longer if that is worth telling."""
        seconds = max(seconds, self._patience.first / 2)
        if self._timer is not None and now + seconds < self._until + _WORTH_TELLING:
            return
        self._until = now + seconds
        self._on_wait(self._model, seconds, error.code or error.message)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._end_pause())

    async def _end_pause(self) -> None:
        while (left := self._until - self._patience.now()) > 0:
            await self._patience.sleep(left)
        self._timer = None
        self._on_wait(self._model, 0.0, "")
        self._wake()

    def _give_up(self, now: float, seconds: float, error: JudgeCallError) -> bool:
        """Nothing waits any more; for so many seconds nothing is asked either."""
        self._refusal = (now + seconds, _again(error))
        if self._timer is not None:
            self.close()
            self._on_wait(self._model, 0.0, "")
        self._wake()
        return False

    def _wake(self) -> None:
        """Everybody who waits looks again, in the order in which they came."""
        self._changed.set()
        self._changed.clear()


def _again(error: JudgeCallError) -> JudgeCallError:
    """The same error for somebody else: an exception that was raised holds on to the frames it went through."""
    return JudgeCallError(error.kind, error.message, error.code, error.retry_after)
