"""The attempts to get one question answered: places, time-outs, pauses, what is tried again and when it is given up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from workbench.counting import counted
from workbench.judge.answering import JudgeCallError, Scrub
from workbench.judge.base import JudgeFault
from workbench.judge.pauses import Lane
from workbench.judge.retry import TIMEOUT_VARIABLE, Patience

T = TypeVar("T")
_NOTHING_AGAIN = 1
"""An empty reply is asked for once more: it may be chance."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """`value` is None where nothing came, which `fault` explains. `seconds` is the time of the last attempt."""

    value: T | None
    fault: JudgeFault | None = None
    attempts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Road:
    """What an attempt passes: the cap of its criterion (None: no cap), the queue of its model, a place of the run."""

    lane: Lane
    places: asyncio.Semaphore
    cap: asyncio.Semaphore | None
    patience: Patience
    scrub: Scrub

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Holds all three for one attempt, however it ends.

        Raises:
            JudgeCallError: the model's quota is used up for longer than anybody waits, or it refuses every question.
        """
        if self.cap is None:
            async with self._place():
                yield
        else:
            async with self.cap, self._place():
                yield

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        while True:
            # A pause is waited for without a place, and may begin while a place is waited for.
            await self.lane.opened()
            await self.places.acquire()
            if self.lane.enter():
                break
            self.places.release()
        try:
            yield
        finally:
            self.lane.leave()
            self.places.release()


async def ask_until_answered(
    attempt: Callable[[], Awaitable[T]],
    nothing: Callable[[T], bool],
    road: Road,
    begin: Callable[[], JudgeFault | None],
) -> Outcome[T]:
    """Makes attempts until one brings something, or it makes no sense any more. `nothing` says of a value that it is
    an empty reply; `begin` is called right before the first attempt and may forbid it. Raises only when cancelled."""
    made = failed = empty = 0
    while True:
        try:
            async with road.place():
                if not made and (forbidden := begin()) is not None:
                    return Outcome(None, forbidden)
                made += 1
                since = road.patience.now()
                came = await _one(attempt, road)
                seconds = road.patience.now() - since
                again = _again(came, since, road)
        except JudgeCallError as refusal:
            return Outcome(None, _fault(refusal, made), made)
        if not isinstance(came, JudgeCallError):
            if not nothing(came) or empty >= _NOTHING_AGAIN:
                return Outcome(came, None, made, seconds)
            empty += 1
            continue
        failed += came.kind != "quota"
        wait = max(road.patience.before_next(failed), came.retry_after or 0.0) if came.kind != "quota" else 0.0
        if not again or failed >= road.patience.attempts or wait > road.patience.longest_pause:
            return Outcome(None, _fault(came, made), made, seconds)
        del came  # With it go the frames that it passed.
        await road.patience.sleep(wait)


def _again(came: object, since: float, road: Road) -> bool:
    """Tells the queue how the attempt went; whether it may be made again."""
    if not isinstance(came, JudgeCallError):
        road.lane.tried()
        road.lane.answered()
        return True
    if came.final:
        road.lane.shut(came)
        return False
    road.lane.tried()
    if came.kind == "quota" and came.retryable:
        return road.lane.refused(since, came)
    return came.retryable


async def _one(attempt: Callable[[], Awaitable[T]], road: Road) -> T | JudgeCallError:
    """What an attempt brought, or why it brought nothing."""
    limit = road.patience.timeout
    try:
        async with asyncio.timeout(limit):
            return await attempt()
    except JudgeCallError as error:
        return error
    except TimeoutError:
        message = f"no answer within {limit:g} s ({TIMEOUT_VARIABLE} sets another limit)"
        return JudgeCallError("timeout", message, retryable=True)
    except Exception as error:
        return JudgeCallError("unreadable", road.scrub(f"{type(error).__name__}: {error}"))


def _fault(error: JudgeCallError, made: int) -> JudgeFault:
    message = f"{error.message} ({counted(made, 'attempt')})" if made > 1 else error.message
    return JudgeFault(error.kind, message, error.code)
