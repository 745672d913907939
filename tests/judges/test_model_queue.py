"""The queue of one model, with a clock that advances when somebody sleeps."""

import asyncio

import pytest

from tests.judges.clocks import Clock
from tests.judges.conftest import Waits
from workbench.judges.answering import JudgeCallError
from workbench.judges.model_queue import ModelQueue


def full(retry_after: float | None = None) -> JudgeCallError:
    return JudgeCallError("quota", "the quota is used up", "429", retry_after, retryable=True)


@pytest.fixture
async def queue(clock: Clock, waits: Waits) -> ModelQueue:
    return ModelQueue("m", clock.retry_policy(), waits)


async def settle() -> None:
    """Run all tasks that can run."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_concurrent_refusals_make_one_pause(queue: ModelQueue, clock: Clock, waits: Waits) -> None:
    since = clock.now()
    assert all(queue.refused(since, full(10.0)) for _ in range(50))
    assert waits.told == [("m", 10.0, "429")]
    assert not queue.enter()
    await queue.opened()
    assert waits.told[-1] == ("m", 0.0, "")
    assert clock.slept == [10.0]


async def test_later_and_longer_wait_extends_the_pause(queue: ModelQueue, clock: Clock, waits: Waits) -> None:
    queue.refused(clock.now(), full(10.0))
    queue.refused(clock.now() - 1, full(40.0))
    assert [seconds for _, seconds, _ in waits.told] == [10.0, 40.0]
    started = clock.now()
    await queue.opened()
    assert clock.now() >= started + 40


async def test_each_answer_after_a_pause_admits_one_more(queue: ModelQueue, clock: Clock) -> None:
    queue.refused(clock.now(), full(1.0))
    await queue.opened()
    assert [queue.enter(), queue.enter()] == [True, False]
    queue.answered()
    assert [queue.enter(), queue.enter()] == [True, False]
    for _ in range(2):
        queue.leave()
        queue.answered()
    assert [queue.enter() for _ in range(5)] == [True, True, True, True, False]


async def test_pauses_in_a_row_without_an_answer_end(queue: ModelQueue, clock: Clock, waits: Waits) -> None:
    again = []
    for _ in range(5):
        await queue.opened()
        clock.time += 1
        again.append(queue.refused(clock.now(), full()))
        await settle()
    assert again == [True, True, True, True, False]
    with pytest.raises(JudgeCallError, match="quota"):
        await queue.opened()
    assert [seconds for _, seconds, _ in waits.told] == [4.0, 0.0, 8.0, 0.0, 16.0, 0.0, 32.0, 0.0]


async def test_answer_between_pauses_resets_the_count(queue: ModelQueue, clock: Clock) -> None:
    for _ in range(20):
        await queue.opened()
        clock.time += 1
        assert queue.refused(clock.now(), full(1.0))
        await settle()
        queue.answered()


async def test_waiting_caller_gets_an_error_when_the_queue_gives_up(queue: ModelQueue, clock: Clock) -> None:
    queue.refused(clock.now(), full(10.0))
    waiting = asyncio.create_task(queue.opened())
    await asyncio.sleep(0)
    queue.refused(clock.now(), full(86_400.0))
    with pytest.raises(JudgeCallError, match="quota"):
        await waiting


async def test_question_is_sent_after_the_quota_is_renewed(queue: ModelQueue, clock: Clock) -> None:
    assert not queue.refused(clock.now(), full(86_400.0))
    clock.time += 86_401
    await queue.opened()
    assert queue.enter()


async def test_cancelled_wait_leaves_the_queue_unchanged(queue: ModelQueue, clock: Clock) -> None:
    queue.refused(clock.now(), full(10.0))
    waiting = [asyncio.create_task(queue.opened()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert [task.cancelled() for task in waiting] == [True, False, False]
    assert queue.enter()


async def test_next_run_ends_the_pause_for_waiting_callers(queue: ModelQueue, clock: Clock, waits: Waits) -> None:
    queue.refused(clock.now(), full(10.0))
    waiting = asyncio.create_task(queue.opened())
    await asyncio.sleep(0)
    queue.start_over()
    await waiting
    assert clock.now() == 1000.0, "no time has passed"
    assert waits.told == [("m", 10.0, "429"), ("m", 0.0, "")]
    assert [queue.enter(), queue.enter()] == [True, False]


async def test_next_run_retries_after_an_exhausted_quota(queue: ModelQueue, clock: Clock) -> None:
    assert not queue.refused(clock.now(), full(86_400.0))
    queue.start_over()
    await queue.opened()
    assert queue.enter()
