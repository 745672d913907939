import asyncio
import os
import signal

import pytest

from workbench.cli.interruption import Interruption
from workbench.events import CaseRef


class Recorded:
    """A run that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def stop(self) -> None:
        self.told.append("stop")

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        assert ref is None
        self.told.append("kill" if kill else "cancel")


async def send(*numbers: signal.Signals) -> tuple[list[str], list[str], int]:
    run, said = Recorded(), list[str]()
    with Interruption(run, said.append) as interruption:
        for count, number in enumerate(numbers, 1):
            os.kill(os.getpid(), number)
            while interruption.count < count:
                await asyncio.sleep(0)
    return run.told, said, interruption.count


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([signal.SIGINT], ["stop"]),
        ([signal.SIGINT, signal.SIGINT], ["stop", "stop", "kill"]),
        ([signal.SIGTERM], ["stop", "cancel"]),
        ([signal.SIGTERM, signal.SIGTERM], ["stop", "cancel", "stop", "kill"]),
        ([signal.SIGINT, signal.SIGTERM], ["stop", "stop", "kill"]),
        ([signal.SIGHUP], ["stop", "cancel"]),
    ],
)
async def test_each_signal_goes_one_step_further(numbers: list[signal.Signals], told: list[str]) -> None:
    heard, said, count = await send(*numbers)
    assert heard == told
    assert count == len(said) == len(numbers)


async def test_a_hang_up_that_was_to_be_ignored_is() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption(Recorded(), print) as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
        assert interruption.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_after_it_signals_mean_what_they_meant() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interruption(Recorded(), print):
        pass
    assert signal.getsignal(signal.SIGTERM) == before
