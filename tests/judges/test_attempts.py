"""Timeouts and waits between attempts."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.clocks import Clock
from tests.judges.conftest import Waits
from workbench.judges.attempts import ModelQueue, RetryPolicy, retry_after, retry_policy_of
from workbench.judges.base import JudgeCallError

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("17", 17.0),
        (" 2.5 ", 2.5),
        ("7s", 7.0),
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90.0),
        ("Saturday, 21-Nov-26 12:01:30 GMT", 90.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("Sat, 21 Nov 2026 12:00:05 -0000", 5.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1e9", None),
        ("Sat, 99 Nov 2026 12:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_seconds(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text())
def test_retry_after_never_raises(value: str) -> None:
    seconds = retry_after(value, NOW)
    assert seconds is None or seconds >= 0


@given(st.integers(min_value=0, max_value=10**6))
def test_retry_after_may_be_a_date_or_a_number(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after(date, NOW) == retry_after(str(seconds), NOW)


def test_back_off_doubles_up_to_a_limit_with_jitter() -> None:
    least, most = RetryPolicy(chance=lambda: 1.0), RetryPolicy(chance=lambda: 0.0)
    assert [most.before_next(n) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert [least.before_next(n) for n in range(1, 8)] == [0.5, 1, 2, 4, 8, 15, 15]


@pytest.mark.parametrize(
    ("value", "seconds"), [("90", 90.0), ("0.5", 0.5), ("", 60.0), ("0", 60.0), ("-1", 60.0), ("nan", 60.0), ("x", 60)]
)
def test_environment_sets_the_timeout(value: str, seconds: float) -> None:
    assert retry_policy_of({"AGENT_WORKBENCH_JUDGE_TIMEOUT": value}, RetryPolicy()).timeout == seconds


@pytest.mark.parametrize(
    ("value", "attempts"), [("2", 2), ("1", 1), ("", 5), ("0", 5), ("-1", 5), ("inf", 5), ("x", 5)]
)
def test_environment_sets_the_attempts(value: str, attempts: int) -> None:
    assert retry_policy_of({"AGENT_WORKBENCH_JUDGE_ATTEMPTS": value}, RetryPolicy()).attempts == attempts
    assert retry_policy_of({}, RetryPolicy()) == RetryPolicy()


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


async def test_each_answer_after_a_pause_admits_one_more_question(queue: ModelQueue, clock: Clock) -> None:
    queue.refused(clock.now(), full(1.0))
    await queue.opened()
    assert [queue.enter(), queue.enter()] == [True, False]
    queue.answered()
    assert [queue.enter(), queue.enter()] == [True, False]
    for _ in range(2):
        queue.leave()
        queue.answered()
    assert [queue.enter() for _ in range(5)] == [True, True, True, True, False]


async def test_queue_gives_up_after_several_pauses_without_an_answer(
    queue: ModelQueue, clock: Clock, waits: Waits
) -> None:
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
