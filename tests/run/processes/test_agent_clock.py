"""The agent's time limit does not count the time in which the workbench was stopped."""

import asyncio

import pytest

from workbench.run.processes.agent_clock import AgentClock, done_within


class Time:
    """The event loop's clock, put forward by hand; timers that are due run at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 1000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self._now)

    async def pass_by(self, seconds: float) -> None:
        """Move the clock in small steps, as in a loop that runs all the time."""
        for _ in range(round(seconds * 10)):
            await self.jump(0.1)

    async def jump(self, seconds: float) -> None:
        """Move the clock at once, as in a process that was stopped."""
        self._now += seconds
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
async def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


async def test_clock_expires_after_its_running_time(time: Time) -> None:
    over = asyncio.Event()
    AgentClock(3.0, over.set).start()
    await time.pass_by(2.8)
    assert not over.is_set()
    await time.pass_by(0.4)
    assert over.is_set()


@pytest.mark.parametrize("at", [0.0, 0.3, 1.9, 2.4])
async def test_time_with_a_stopped_workbench_does_not_count(time: Time, at: float) -> None:
    over = asyncio.Event()
    AgentClock(3.0, over.set).start()
    await time.pass_by(at)
    await time.jump(100.0)
    assert not over.is_set()
    await time.pass_by(max(0.0, 2.4 - at))  # Up to a beat of the stop may count.
    assert not over.is_set()
    await time.pass_by(0.8)
    assert over.is_set()


async def test_time_of_repeated_stops_does_not_count(time: Time) -> None:
    over = asyncio.Event()
    AgentClock(3.0, over.set).start()
    for _ in range(3):
        await time.pass_by(0.4)
        await time.jump(20.0)
    assert not over.is_set()


async def test_stopped_clock_counts_no_time(time: Time) -> None:
    over = asyncio.Event()
    clock = AgentClock(3.0, over.set)
    clock.start()
    await time.pass_by(2.0)
    clock.stop()
    await time.jump(100.0)
    clock.start()
    await time.pass_by(0.8)
    assert not over.is_set()
    await time.pass_by(0.5)
    assert over.is_set()


async def test_stopped_clock_never_expires(time: Time) -> None:
    over = asyncio.Event()
    clock = AgentClock(3.0, over.set)
    clock.start()
    clock.start()
    clock.stop()
    clock.stop()
    await time.pass_by(5.0)
    assert not over.is_set()


async def test_waiting_for_a_future_does_not_end_during_a_stop(time: Time) -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(done_within(future, 3.0))
    await time.pass_by(1.0)
    await time.jump(100.0)
    future.set_result(1)
    assert await waiting


async def test_waiting_for_a_future_ends_at_the_limit(time: Time) -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(done_within(future, 3.0))
    await time.pass_by(3.5)
    assert not await waiting
    assert not future.cancelled()
