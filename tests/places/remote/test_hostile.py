"""Machines that lie about themselves: they are lost, or their time is limited, and nothing else suffers."""

from typing import Any

import pytest

from tests.places.remote.fakes import FakeHost, FakeHosts, Took, begin, command
from tests.places.remote.test_machine import OneMachine
from workbench.agents.channel import Frame
from workbench.places.place import NotStartedError
from workbench.places.remote import machine as machine_module
from workbench.places.remote import spread_agent
from workbench.places.remote.attempts import MOST_EXCUSED, Attempt
from workbench.places.remote.machine import Machine, RemoteAgent
from workbench.places.remote.remote_place import RemotePlace
from workbench.places.remote.time_passed import Awake


@pytest.mark.parametrize("held", [10**400, 1e300, float("inf"), -1, True, "1"])
async def test_seconds_that_cannot_be_lose_the_machine(held: Any) -> None:
    one = OneMachine()
    one.host.say({"op": "beat", "t": 0, "held": held})
    assert one.machine.why_lost == "it sent an invalid message: held is not a number of seconds"


async def test_message_that_cannot_be_handled_loses_only_its_machine() -> None:
    one = OneMachine()

    def came(agent: RemoteAgent, frame: Frame, size: int) -> None:
        raise RecursionError("x" * 10_000)

    one.owner.came = came  # type: ignore[method-assign]
    one.host.say_from(one.agent.number, op="wrote", files=[])
    assert one.machine.why_lost is not None
    assert one.machine.why_lost.startswith("its message cannot be handled: RecursionError: xxx")
    assert len(one.machine.why_lost) < 600


async def test_machine_that_never_says_what_it_is_is_lost() -> None:
    now = 0.0
    awake = Awake(lambda: now)
    host = FakeHost("m")
    machine = Machine(host, awake, lambda machine: None, lambda: None)
    host.on_frame = machine.take
    machine.greet()
    for second in range(62):
        now = float(second)
        awake.look()
        host.say({"op": "beat", "t": 0, "held": 0})
        machine.tick()
    assert machine.why_lost == "it did not say what it is within 60 s"


async def test_machine_that_never_prepares_the_project_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "_ANSWER_WITHIN", 0.0)
    one = OneMachine()
    with pytest.raises(NotStartedError, match="it did not prepare the project within 0 s"):
        await one.machine.receive()


async def test_machine_that_never_imports_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_agent, "_IMPORTED_WITHIN", 0.0)
    host = FakeHost("one", 2)
    place, took = RemotePlace(lambda: FakeHosts(host)), Took()
    place.open(8, lambda text, hint: took.warnings.append(text))
    with pytest.raises(NotStartedError, match="one: importing the agent there took longer than 0 s"):
        await begin(place, took, host)
    assert {"kill", "close"} <= set(host.ops())
    await place.close()


async def test_agent_that_hangs_before_it_is_imported_is_not_started_for_ever() -> None:
    host = FakeHost("one", 2)
    place, took = RemotePlace(lambda: FakeHosts(host)), Took()
    host.starts = lambda agent: host.say_from(agent, op="stalled", why="x")  # type: ignore[method-assign]
    with pytest.raises(NotStartedError, match="one: the agent's process hung during the import: x"):
        await begin(place, took, host)
    assert host.ops().count("agent") == 1
    await place.close()


async def test_sizes_that_a_host_states_too_small_do_not_count() -> None:
    host = FakeHost("one", 2)
    place, sizes = RemotePlace(lambda: FakeHosts(host)), list[int]()

    class Sizes(Took):
        def take(self, frame: Frame, size: int) -> None:
            sizes.append(size)

    took = Sizes()
    link = await begin(place, took, host)
    link.send(command(1))
    frame = {"id": 1, "event": "Printed", "stream": "stdout", "text": "x"}
    host.on_frame({"op": "from", "agent": 1, "n": 2, "t": 0, "held": 0, "size": 0, "frame": frame}, 5000)
    assert sizes[-1] == 5000
    await place.close()


async def test_answers_that_nobody_reads_are_limited() -> None:
    one = OneMachine()
    for _ in range(5):
        one.host.on_frame({"op": "unready", "number": 0}, 16 * 1024 * 1024)
    assert one.machine.why_lost == "it sent an invalid message: more answers than questions"


async def test_silence_and_waiting_excuse_a_case_only_for_a_while() -> None:
    attempt = Attempt(1, False)
    attempt.since = 1000.0
    assert attempt.excuse(5.0, 1002.0, goes_on=False) == 2.0, "what was before it does not concern it"
    assert attempt.excuse(3.0, 1010.0, goes_on=True) == 3.0
    assert attempt.excuse(0.0, 1050.0, goes_on=False) == 0.0
    total, now = 45.0, 1050.0
    while attempt.is_excused:
        now += 59.0
        total += attempt.excuse(59.0, now, goes_on=False)
    assert total == MOST_EXCUSED
    assert attempt.excuse(59.0, now + 59, goes_on=False) == 0.0


async def test_machine_that_always_waits_for_us_cannot_stop_a_clock() -> None:
    host = FakeHost("one", 2)
    place, took, clock = RemotePlace(lambda: FakeHosts(host)), Took(), [1000.0]
    place.awake = Awake(lambda: clock[0])
    link = await begin(place, took, host)
    link.send(command(1))
    for second in range(1, 2000):
        clock[0] += 1.0
        host.say({"op": "beat", "t": 0, "held": float(second)})
    excused = sum(frame["seconds"] for frame in took.of[1] if frame["event"] == "Resumed")
    assert excused == pytest.approx(MOST_EXCUSED)
    for _ in range(3):
        clock[0] += 2.0
        place._machines[0].tick()
        place.awake.look()
        clock[0] += 2.0
        place.awake.look()
        place._machines[0].tick()
        host.say({"op": "beat", "t": 0, "held": 0.0})
    assert "Paused" not in took.events(1)
    await place.close()
