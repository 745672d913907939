"""Runs in their own thread: events in order, one wake-up, and a definite end."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from workbench.events.events import CaseRef, Noticed
from workbench.run.dask.files import MachineState
from workbench.ui.running.run_thread import Build, Ended, News, Publish, Refused, RunThread, SideRun


class Run:
    """A run that publishes an event and then waits to be cancelled."""

    def __init__(self, publish: Publish, count: int = 3) -> None:
        self.publish, self.count = publish, count
        self.calls: list[object] = []
        self.over = asyncio.Event()
        self.states: Sequence[MachineState] = ()

    async def execute(self) -> None:
        for number in range(self.count):
            self.publish(Noticed("info", str(number)))
        await self.over.wait()

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        self.calls.append((ref, kill))
        if ref is None:
            self.over.set()

    def stop(self) -> None:
        self.calls.append("stop")

    def machines(self) -> Sequence[MachineState]:
        return self.states


def made(make: Callable[[Publish], Run], runs: list[Run] | None = None) -> Build:
    """Return a function that builds a run at once and adds it to `runs`."""

    async def build(publish: Publish) -> Run:
        run = make(publish)
        if runs is not None:
            runs.append(run)
        return run

    return build


class Listener:
    """A listener that counts wake-ups and collects events."""

    def __init__(self) -> None:
        self.woken = 0
        self.called = threading.Event()
        self.thread = RunThread()
        self.thread.when_news.append(self._wake)

    def _wake(self) -> None:
        self.woken += 1
        self.called.set()

    def wait_for(self, count: int) -> list[News]:
        news: list[News] = []
        end = time.monotonic() + 60
        while len(news) < count and time.monotonic() < end:
            self.called.wait(0.05)
            news += self.thread.take()
        return news


REF = CaseRef("agent", "file", "set", "case")


def test_updates_arrive_in_order_with_the_end_last() -> None:
    listener = Listener()
    runs: list[Run] = []
    listener.thread.start(made(Run, runs))
    news = listener.wait_for(3)
    assert [item.message for item in news if isinstance(item, Noticed)] == ["0", "1", "2"]
    listener.thread.cancel([REF])
    listener.thread.cancel(None, kill=True)
    assert listener.wait_for(1) == [Ended(1)]
    assert runs[0].calls == [(REF, False), "stop", (None, True)]
    listener.thread.close()


def test_screen_is_notified_once_until_it_reads_the_updates() -> None:
    listener = Listener()
    done = threading.Event()

    class Noisy(Run):
        async def execute(self) -> None:
            await super().execute()
            done.set()

    listener.thread.start(made(lambda publish: Noisy(publish, 1000)))
    listener.called.wait(60)
    listener.thread.cancel(None)
    assert done.wait(60)
    assert listener.woken == 1
    assert len(listener.wait_for(1001)) == 1001
    listener.thread.close()


def test_exception_while_building_a_run_becomes_a_refusal_with_a_hint() -> None:
    class WrongError(Exception):
        hint = "the way out"

    async def build(publish: Publish) -> Run:
        raise WrongError("nothing is selected")

    listener = Listener()
    listener.thread.start(build)
    assert listener.wait_for(2) == [Refused("nothing is selected", "the way out"), Ended(1)]
    listener.thread.close()


def test_closing_ends_the_run_the_children_and_the_thread() -> None:
    before = set(threading.enumerate())
    ended: list[str] = []

    async def at_end() -> None:
        ended.append("children")

    thread = RunThread(at_end)
    thread.close()
    assert not ended, "nothing was started"
    runs: list[Run] = []
    thread.start(made(Run, runs))
    thread.close()
    assert ended == ["children"]
    assert (None, True) in runs[0].calls
    assert "workbench-run" not in [other.name for other in set(threading.enumerate()) - before]
    thread.close()
    assert ended == ["children"], "closing again does nothing"


@pytest.mark.parametrize("stubborn", ["run", "children"])
def test_closing_does_not_wait_for_a_run_that_never_ends(stubborn: str) -> None:
    class Stubborn(Run):
        def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
            if stubborn != "run":
                super().cancel(ref, kill=kill)

    async def at_end() -> None:
        await asyncio.sleep(600 if stubborn == "children" else 0)

    thread = RunThread(at_end)
    thread.start(made(Stubborn))
    began = time.monotonic()
    thread.close(timeout=0.2)
    assert time.monotonic() - began < 60


def test_call_while_the_thread_closes_starts_no_second_thread() -> None:
    ended: list[int] = []

    async def at_end() -> None:
        thread.start(made(Run))
        ended.append(len([one for one in threading.enumerate() if one.name == "workbench-run"]))

    before = len([one for one in threading.enumerate() if one.name == "workbench-run"])
    thread = RunThread(at_end)
    thread.start(made(Run))
    thread.close()
    assert ended == [before + 1]


def test_closed_thread_can_run_again() -> None:
    listener = Listener()
    for _ in range(2):
        listener.thread.start(made(lambda publish: Run(publish, 1)))
        assert isinstance(listener.wait_for(1)[0], Noticed)
        listener.thread.close()
        listener.wait_for(1)


def test_next_run_waits_for_the_end_of_the_previous_one() -> None:
    listener = Listener()
    runs: list[Run] = []

    build = made(lambda publish: Run(publish, 1), runs)
    listener.thread.start(build)
    assert len(listener.wait_for(1)) == 1
    listener.thread.start(build)
    listener.thread.cancel(None)
    news = listener.wait_for(2)
    assert [type(item) for item in news] == [Ended, Noticed]
    assert news[0] == Ended(1) != Ended(listener.thread.started)
    assert [run.calls for run in runs] == [["stop", (None, False)], []]
    listener.thread.cancel(None)
    assert listener.wait_for(1) == [Ended(2)]
    listener.thread.close()


def test_closing_does_not_wait_for_a_run_being_built() -> None:
    building = threading.Event()

    async def build(publish: Publish) -> Run:
        building.set()
        await asyncio.Event().wait()
        return Run(publish)

    thread = RunThread()
    thread.start(build)
    assert building.wait(60)
    began = time.monotonic()
    thread.close(timeout=600.0)
    assert time.monotonic() - began < 300
    assert thread.take() == [Ended(1)]


def test_machines_of_the_newest_run_stay_known_after_its_end() -> None:
    listener, runs = Listener(), list[Run]()
    assert listener.thread.machines() == ()
    listener.thread.start(made(lambda publish: Run(publish, 1), runs))
    listener.wait_for(1)
    runs[0].states = [MachineState("one", "ready", 8)]
    listener.thread.machines()
    looked = threading.Event()
    listener.thread.call(looked.set)
    assert looked.wait(60)
    listener.thread.cancel(None)
    listener.wait_for(1)
    assert listener.thread.machines() == (MachineState("one", "ready", 8),)
    listener.thread.close()


def test_side_run_is_cancelled_then_killed() -> None:
    runs: list[Run] = []
    woken = threading.Event()
    thread = RunThread()
    beside = SideRun(thread, made(_Stubborn, runs), woken.set)
    assert woken.wait(60)
    assert [beside.cancel(), beside.cancel()] == [False, True]
    thread.close()
    assert beside.over
    assert runs[0].calls == ["stop", (None, False), "stop", (None, True)]


class _Stubborn(Run):
    """A run that ends only if it is killed."""

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        self.calls.append((ref, kill))
        if kill:
            self.over.set()
