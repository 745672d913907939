import asyncio
import os
import pty
import signal
import stat
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.cli import following as interruption_module
from workbench.cli.following import Interruption
from workbench.cli.streams import let_go_of_streams, write_line
from workbench.events.events import CaseRef
from workbench.run.dask.files import Sending


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
async def test_each_further_signal_ends_more_of_the_run(numbers: list[signal.Signals], told: list[str]) -> None:
    heard, said, count = await send(*numbers)
    assert heard == told
    assert count == len(said) == len(numbers)


async def test_blocked_terminal_does_not_block_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interruption_module, "_BLOCKED", 0.1)
    run = Recorded()
    master, slave = pty.openpty()
    unread = os.fdopen(slave, "w", encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", unread)
    with unread, Interruption(run, lambda said: None) as interruption:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        assert write_line(unread, "x" * 1_000_000), "blocked, until the terminal is let go of"
        timer.join()
        while not interruption.count:
            await asyncio.sleep(0)
    os.close(master)
    assert run.told == ["stop", "cancel"]


@pytest.mark.parametrize(("pipes", "kept"), [(False, True), (True, False)])
def test_pipe_is_silenced_only_at_the_second_signal(monkeypatch: pytest.MonkeyPatch, pipes: bool, kept: bool) -> None:
    """A slow reader may not have read the whole report at the first signal."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb", buffering=0) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        let_go_of_streams(pipes=pipes)
        assert stat.S_ISFIFO(os.fstat(writer).st_mode) is kept
    os.close(reader)


async def test_hangup_signal_is_ignored_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption(Recorded(), print) as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
        assert interruption.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_ends_the_question_whether_files_may_leave_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    went_on: list[bool] = []

    def interrupted() -> str:
        signal.raise_signal(signal.SIGINT)
        went_on.append(True)
        return "y\n"

    async def asked() -> bool:
        return interruption_module.ask(Sending("dask", "dask://h:1", Path("/shop"), {}, {}))

    terminal = SimpleNamespace(isatty=lambda: True, readline=interrupted, write=len, flush=str, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(asked())
    assert not went_on


async def test_signal_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interruption(Recorded(), print):
        pass
    assert signal.getsignal(signal.SIGTERM) == before
