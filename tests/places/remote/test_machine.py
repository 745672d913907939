"""Leases, silence and acknowledgements of one machine, on a clock that a test moves."""

from typing import Any

import pytest

from tests.places.remote.fakes import WELCOME, FakeHost
from workbench.agents.channel import Frame
from workbench.places.lease import Lease
from workbench.places.place import NotStartedError
from workbench.places.remote.machine import Machine, RemoteAgent
from workbench.places.remote.time_passed import Awake


class Owner:
    """Takes the news of an agent."""

    def __init__(self) -> None:
        self.news: list[Any] = []

    def started(self, agent: RemoteAgent) -> None:
        self.news.append("started")

    def failed(self, agent: RemoteAgent, why: str, *, died: bool) -> None:
        self.news.append(("failed", why, died))

    def came(self, agent: RemoteAgent, frame: Frame, size: int) -> None:
        self.news.append(frame)

    def over(self, agent: RemoteAgent, how: str) -> None:
        self.news.append(("over", how))

    def lost(self, agent: RemoteAgent, why: str, *, died: bool) -> None:
        self.news.append(("lost", why, died))

    def paused(self, agent: RemoteAgent, seconds: float) -> None:
        self.news.append(("paused", seconds))

    def resumed(self, agent: RemoteAgent, seconds: float) -> None:
        self.news.append(("resumed", seconds))


class OneMachine:
    """A machine with an agent, and its clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.busy = True
        self.awake = Awake(lambda: self.now)
        self.host = FakeHost("m")
        self.overslept = 0
        self.machine = Machine(self.host, self.awake, lambda machine: None, self._overslept)
        self.host.on_frame = self.machine.take
        self.machine.greet()
        self.host.say(WELCOME)
        self.owner = Owner()
        self.agent = self.machine.start_agent({"cases": 1}, self.owner)

    def pass_by(self, seconds: float) -> None:
        """Let time pass in small steps, as in a loop that runs all the time."""
        for _ in range(round(seconds * 2)):
            self.jump(0.5)

    def jump(self, seconds: float) -> None:
        """Let time pass at once, as in a process that was stopped."""
        self.now += seconds
        if self.awake.look():
            self._overslept()
        self.machine.tick(busy=self.busy)

    def beat(self, held: float = 0.0) -> None:
        self.host.say({"op": "beat", "t": 0, "held": held})

    def _overslept(self) -> None:
        self.overslept += 1
        self.machine.lose("slept")


async def test_sign_of_life_is_sent_every_five_seconds() -> None:
    one = OneMachine()
    for _ in range(20):
        one.pass_by(1)
        one.beat()
    assert one.host.ops() == ["hello", "agent", *["alive"] * 4]


async def test_silent_machine_is_lost_when_its_lease_is_over() -> None:
    one = OneMachine()
    one.pass_by(60)
    assert one.machine.why_lost is None
    one.pass_by(1)
    assert one.owner.news == [("paused", 2.5), ("lost", "nothing came from it for 60 s", False)]
    one.beat()
    with pytest.raises(NotStartedError, match="nothing came from it"):
        one.machine.start_agent({}, one.owner)


async def test_time_in_which_this_process_slept_is_no_silence() -> None:
    one = OneMachine()
    one.jump(50)
    assert one.owner.news == []
    one.pass_by(11)
    assert one.machine.why_lost is None


async def test_sleep_beyond_the_lease_loses_what_came_meanwhile() -> None:
    one = OneMachine()
    one.now += 61
    one.host.say_from(one.agent.number, id=1, event="TurnFinished")
    assert one.overslept == 1
    assert one.owner.news == [("lost", "slept", False)]


async def test_silence_stops_clocks_until_the_next_message() -> None:
    one = OneMachine()
    one.pass_by(2)
    assert one.machine.is_usable
    one.pass_by(8)
    assert not one.machine.is_usable
    one.beat()
    assert one.owner.news == [("paused", 2.5), ("resumed", 0.0)]
    assert one.machine.is_usable


async def test_machine_without_cases_may_be_silent_for_longer() -> None:
    one = OneMachine()
    one.busy = False
    one.pass_by(5)
    one.beat()
    one.pass_by(4)
    one.busy = True
    one.pass_by(1)
    assert one.machine.is_usable
    one.pass_by(1.5)
    assert not one.machine.is_usable
    one.beat()
    one.busy = False
    one.pass_by(7.5)
    assert not one.machine.is_usable


async def test_time_in_which_the_host_waited_for_us_does_not_count() -> None:
    one = OneMachine()
    one.pass_by(1)
    one.beat(held=0.75)
    one.pass_by(1)
    one.beat(held=1000.0)
    one.pass_by(1)
    one.beat(held=3.0)
    assert one.owner.news == [("resumed", 0.75), ("resumed", 1.0)]


async def test_messages_are_acknowledged_together() -> None:
    one = OneMachine()
    for _ in range(100):
        one.host.say_from(one.agent.number, op="wrote", files=[])
    assert "ack" not in one.host.ops()
    one.jump(0.5)
    assert one.host.sent[-1] == {"op": "ack", "n": 100}
    for _ in range(3000):
        one.host.say_from(one.agent.number, op="wrote", files=[])
    assert one.host.sent[-1] == {"op": "ack", "n": 100 + 2622}


async def test_end_of_the_link_loses_the_machine_with_its_reason() -> None:
    one = OneMachine()
    one.host.host_died = True
    one.machine._link_ended("the host was killed by SIGKILL")
    assert one.owner.news == [("lost", "the host was killed by SIGKILL", True)]
    one.machine.lose("later")
    assert len(one.owner.news) == 1


async def test_preparation_ends_with_the_machine() -> None:
    one = OneMachine()
    one.host.say({"op": "need", "files": []})
    assert await one.machine.receive() == {"op": "need", "files": []}
    one.host.say({"op": "leaving", "why": "full"})
    with pytest.raises(NotStartedError, match="full"):
        await one.machine.receive()


def _from(**frame: Any) -> Frame:
    return {"op": "from", "agent": 1, "n": 1, "held": 0, "size": 1, "frame": frame}


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"op": "hello"},
        {"op": "beat", "held": -1},
        {"op": "beat", "held": float("nan")},
        {"op": "beat", "held": "1"},
        {"op": "agent_started", "agent": True},
        {"op": "agent_ended", "agent": 1},
        {"op": "leaving", "why": 3},
        {"op": "welcome", "name": "x"},
        {**_from(op="wrote"), "n": 2},
        {**_from(op="wrote"), "size": -1},
        {**_from(op="wrote"), "frame": []},
        _from(op="pong"),
        _from(id="1", event="Printed"),
        _from(id=1, event="Placed", machine="other"),
        _from(id=1, event="Resumed", seconds=1e9),
        _from(id=1, event=7),
        _from(id=1, op="exited", how=7),
        _from(id=1, op="imported"),
    ],
)
async def test_invalid_message_loses_the_machine(frame: Frame) -> None:
    one = OneMachine()
    one.host.say(frame)
    assert one.machine.why_lost is not None
    assert one.machine.why_lost.startswith("it sent an invalid message: ")
    assert [news[0] for news in one.owner.news] == ["lost"]


async def test_host_cannot_report_a_loss_itself() -> None:
    one = OneMachine()
    one.host.say(_from(id=1, op="exited", how=None, lost="why", machine="x", died=True, parent="was killed"))
    assert one.owner.news == [{"op": "exited", "id": 1, "how": None, "parent": "was killed"}]


def test_lease_ends_without_signs_of_life() -> None:
    now = [0.0]
    lease = Lease(60, lambda: now[0])
    for _ in range(5):
        now[0] += 50
        assert not lease.is_over
        lease.renew()
    now[0] += 61
    assert lease.is_over
