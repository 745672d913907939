"""Cases on machines that come, go, fail and lie: each attempt reports once, and nothing after its loss."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.places.remote.fakes import START, WELCOME, FakeHost, FakeHosts, NoHosts, Took, begin, command, settle
from workbench.agents.worker.frames import MAX_FRAME, FrameTooLargeError
from workbench.places.place import NotStartedError
from workbench.places.remote import remote_place
from workbench.places.remote.remote_place import RemotePlace
from workbench.places.remote.spread_agent import SpreadAgent
from workbench.places.remote.time_passed import Awake


class World:
    """Two machines with two slots each; the agent is started on the first."""

    def __init__(self) -> None:
        self.one, self.two = FakeHost("one", 2), FakeHost("two", 2)
        self.hosts = FakeHosts(self.one, self.two)
        self.place = RemotePlace(lambda: self.hosts)
        self.took = Took()
        self.link: SpreadAgent

    async def begin(self) -> None:
        self.link = await begin(self.place, self.took, self.one, self.two)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.begin()
    yield world
    await world.place.close()


async def test_case_goes_to_the_machine_that_has_imported_the_agent(world: World) -> None:
    world.link.send(command(1))
    assert world.took.events(1) == ["Placed"]
    assert world.took.of[1][0]["machine"] == "one"
    assert world.one.agents == {1: {1}}
    world.one.say_from(1, id=1, event="Printed", stream="stdout", text="x")
    world.one.exits(1, 1)
    assert world.took.events(1) == ["Placed", "Printed", "exited"]


async def test_agent_starts_where_more_slots_are_free(world: World) -> None:
    for number in (1, 2, 3):
        world.link.send(command(number))
    assert world.took.events(3) == ["Paused"]
    await settle()
    assert "agent" in world.two.ops()
    world.two.starts(1)
    assert world.took.events(3) == ["Paused", "Placed", "Resumed"]
    assert [frame["op"] for frame in world.took.others] == ["imported"]


async def test_waiting_case_gets_its_messages_with_its_machine(world: World) -> None:
    for number in (1, 2, 3):
        world.link.send(command(number))
        world.link.send({"op": "turn", "id": number, "content": {}}, {"op": "end", "id": number})
    world.one.exits(1, 1)
    sent = [[inner["op"] for inner in frame["frames"]] for frame in world.one.sent if frame["op"] == "to"]
    assert sent[-1] == ["case", "turn", "end"]


async def test_waiting_case_can_be_ended_and_forgotten(world: World) -> None:
    for number in (1, 2, 3, 4):
        world.link.send(command(number))
    world.link.send({"op": "kill", "id": 3, "signal": 9})
    world.link.send({"op": "forget", "id": 4})
    await settle()
    assert world.took.events(3) == ["Paused", "exited"]
    world.one.exits(1, 1)
    assert world.took.events(4) == ["Paused"]


async def test_attempts_of_a_lost_machine_are_lost_once_and_silent(world: World) -> None:
    world.link.send(command(1))
    world.link.send(command(2))
    world.one.ended.set_result("the connection closed")
    await settle()
    world.one.say_from(1, id=1, event="TurnFinished")
    assert world.took.events(1) == world.took.events(2) == ["Placed", "lost"]
    lost = world.took.of[1][1]
    assert (lost["how"], lost["lost"], lost["machine"], lost["died"]) == (None, "the connection closed", "one", False)
    assert world.took.warnings == ["lost a machine: one: the connection closed"]
    assert not world.link.ended.done()
    world.link.send(command(3))
    await settle()
    world.two.starts(1)
    assert world.took.events(3) == ["Paused", "Placed", "Resumed"]


async def test_attempt_that_had_ended_before_the_loss_is_not_counted(world: World) -> None:
    for number in (1, 2):
        world.link.send(command(number))
    world.one.say_from(1, id=1, event="Ended")
    world.one.ended.set_result("the connection closed")
    await settle()
    assert world.took.events(1) == ["Placed", "Ended", "lost"]
    assert [state.lost for state in world.place.machines()] == [1, 0]


async def test_loss_of_all_machines_ends_the_link_with_the_reasons(world: World) -> None:
    world.link.send(command(1))
    for host in (world.one, world.two):
        host.say({"op": "leaving", "why": "the disk is full"})
    await settle()
    assert world.link.ended.result() == "has no machine left (one: the disk is full; two: the disk is full)"
    world.link.send(command(2))
    await settle()
    assert world.took.events(2) == ["lost"]


async def test_case_that_waits_when_all_machines_are_lost_starts_again_like_the_others(world: World) -> None:
    for number in (1, 2, 3):
        world.link.send(command(number))
    for host in (world.two, world.one):
        host.say({"op": "leaving", "why": "the disk is full"})
    await settle()
    assert world.took.events(3) == ["Paused", "lost"]
    lost = world.took.of[3][1]
    assert (lost["machine"], lost["died"]) == ("", False)
    assert lost["lost"] == "no machine is left: one: the disk is full; two: the disk is full"


async def test_idle_machine_takes_a_case_at_once() -> None:
    world, clock = World(), Clock()
    world.place.awake = Awake(clock)
    await world.begin()
    for _ in range(9):
        clock.now += 0.5
        world.place.awake.look()
        for machine in world.place.all():
            machine.tick(busy=world.place.slots.running(machine) > 0)
    world.link.send(command(1))
    assert world.took.events(1) == ["Placed"]
    await world.place.close()


async def test_late_machine_takes_waiting_cases(world: World) -> None:
    world.two.ended.set_result("gone")
    for number in (1, 2, 3):
        world.link.send(command(number))
    await settle()
    late = FakeHost("late", 1)
    world.hosts.join(late)
    late.say(WELCOME)
    await settle()
    late.starts(1)
    assert world.took.of[3][1]["machine"] == "late"


async def test_failed_import_on_a_later_machine_is_a_warning(world: World) -> None:
    for number in (1, 2, 3):
        world.link.send(command(number))
    await settle()
    world.two.say({"op": "agent_started", "agent": 1, "serves_one_case": False})
    world.two.say_from(1, op="import_failed", error={"kind": "import_failed", "message": "no module"}, files=[])
    assert world.took.warnings == ["desk does not run on a machine: two: the agent cannot be imported there: no module"]
    world.one.exits(1, 1)
    assert world.took.events(3)[-2:] == ["Placed", "Resumed"]
    assert [state.phase for state in world.place.machines()] == ["ready", "unusable"]
    await world.link.close()
    states = world.place.machines()
    assert [state.phase for state in states] == ["ready", "unusable"]
    assert "no module" in states[1].why
    world.place.open(8)
    assert [state.phase for state in world.place.machines()] == ["ready", "ready"]


async def test_case_that_must_be_alone_gets_a_machine_for_itself(world: World) -> None:
    world.link.send(command(1))
    world.link.send(command(2, alone=True))
    await settle()
    assert world.took.events(2) == ["Paused"]
    world.link.send(command(3))
    world.one.exits(1, 1)
    assert world.took.events(2) == ["Paused", "Placed", "Resumed"]
    assert world.took.events(3)[-1] != "Placed" or world.took.of[3][-1]["machine"] == "two"
    world.two.starts(1)
    assert world.took.of[3][1]["machine"] == "two"
    world.one.exits(1, 2)
    world.link.send(command(4))
    assert world.took.of[4][0]["machine"] == "one"


async def test_hung_process_loses_its_attempts(world: World) -> None:
    world.link.send(command(1))
    world.one.say_from(1, op="stalled", why="it was stopped by a signal")
    assert world.took.events(1) == ["Placed", "lost"]
    world.one.say_from(1, op="exited", id=1, how=None)
    assert world.took.events(1) == ["Placed", "lost"]
    world.link.send(command(2))
    await settle()
    assert [*world.one.ops(), *world.two.ops()].count("agent") == 2


async def test_dead_process_of_an_agent_is_started_again(world: World) -> None:
    world.link.send(command(1))
    world.one.exits(1, 1, None)
    world.one.say({"op": "agent_ended", "agent": 1, "how": "was killed by SIGKILL"})
    assert world.took.of[1][-1] == {"op": "exited", "id": 1, "how": None}
    assert not world.link.ended.done()
    world.link.send(command(2))
    await settle()
    host = world.one if world.one.ops().count("agent") == 2 else world.two
    host.starts(max(host.agents))
    assert world.took.events(2) == ["Paused", "Placed", "Resumed"]


async def test_shared_process_of_one_attempt_is_killed_on_its_machine_only(world: World) -> None:
    for number in (1, 2, 3):
        world.link.send(command(number, share=True))
    await settle()
    world.two.starts(1)
    assert (world.one.agents, world.two.agents) == ({1: {1, 2}}, {1: {3}})
    world.link.kill(3)
    assert (world.one.ops().count("kill"), world.two.ops().count("kill")) == (0, 1)
    world.link.kill(99)
    world.link.kill()
    assert (world.one.ops().count("kill"), world.two.ops().count("kill")) == (1, 2)


async def test_too_large_message_is_refused_also_for_a_waiting_case(world: World) -> None:
    large = {"op": "turn", "id": 3, "content": "x" * MAX_FRAME}
    for number in (1, 2, 3):
        world.link.send(command(number))
    for number in (1, 3):
        with pytest.raises(FrameTooLargeError):
            world.link.send({**large, "id": number}, {"op": "end", "id": number})
    assert world.took.events(3) == ["Paused"]


async def test_machine_that_fails_first_is_replaced_by_the_others() -> None:
    one, two, took = FakeHost("one"), FakeHost("two"), Took()
    place = RemotePlace(lambda: FakeHosts(one, two))
    starting = asyncio.create_task(place.start(START, took.take, cases=2))
    await settle()
    one.say(WELCOME)
    two.say(WELCOME)
    await settle()
    one.say({"op": "agent_failed", "agent": 1, "message": "no python", "died": False})
    await settle()
    two.starts(1)
    link = await starting
    link.send(command(1))
    assert took.of[1][0]["machine"] == "two"
    await place.close()


async def test_import_that_fails_everywhere_is_reported_as_of_one_process() -> None:
    one, two, took = FakeHost("one"), FakeHost("two"), Took()
    place = RemotePlace(lambda: FakeHosts(one, two))
    starting = asyncio.create_task(place.start(START, took.take, cases=2))
    await settle()
    for host in (one, two):
        host.say(WELCOME)
        await settle()
    error = {"kind": "import_failed", "message": "no module"}
    for host in (one, two):
        host.say({"op": "agent_started", "agent": 1, "serves_one_case": False})
        host.say_from(1, op="printed", stream="stdout", text=f"imported on {host.name}")
        host.say_from(1, op="import_failed", error=error, files=["/p/desk/agent.py", "/etc/x"])
        await settle()
    link = await starting
    error["message"] = "on one, two: no module"
    assert took.others == [
        {"op": "printed", "stream": "stdout", "text": "imported on one"},
        {"op": "import_failed", "error": error, "files": ["/p/desk/agent.py"]},
    ]
    assert "no module" in link.ended.result()
    await place.close()


async def test_failed_import_names_its_machine_and_why_the_others_cannot_run_the_agent() -> None:
    one, two, took = FakeHost("one"), FakeHost("two"), Took()
    place = RemotePlace(lambda: FakeHosts(one, two))
    starting = asyncio.create_task(place.start(START, took.take, cases=2))
    await settle()
    for host in (one, two):
        host.say(WELCOME)
        await settle()
    one.say({"op": "agent_started", "agent": 1, "serves_one_case": False})
    one.say_from(1, op="import_failed", error={"kind": "import_failed", "message": "no module"}, files=[])
    await settle()
    two.say({"op": "agent_failed", "agent": 1, "message": "no python", "died": False})
    await starting
    assert took.others[0]["error"] == {"kind": "import_failed", "message": "on one: no module; two: no python"}
    await place.close()


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        (["exited with 5", "exited with 5"], "exited with 5"),
        (
            ["exited with 5", "was killed"],
            "has no machine left (one: the agent's process exited with 5 during the import; "
            "two: the agent's process was killed during the import)",
        ),
    ],
)
async def test_death_during_the_import_everywhere_is_told_as_of_one_process(ends: list[str], how: str) -> None:
    hosts, took = (FakeHost("one"), FakeHost("two")), Took()
    place = RemotePlace(lambda: FakeHosts(*hosts))
    starting = asyncio.create_task(place.start(START, took.take, cases=2))
    await settle()
    for host in hosts:
        host.say(WELCOME)
        await settle()
    for host, end in zip(hosts, ends, strict=True):
        host.say({"op": "agent_started", "agent": 1, "serves_one_case": False})
        host.say_from(1, op="printed", stream="stdout", text=host.name)
        host.say({"op": "agent_ended", "agent": 1, "how": end})
        await settle()
    assert (await starting).ended.result() == how
    assert [frame["text"] for frame in took.others] == ["one"]
    await place.close()


async def test_place_without_machines_says_why() -> None:
    place = RemotePlace(FakeHosts)
    with pytest.raises(NotStartedError, match="no machine is connected"):
        await place.start(START, Took().take, cases=1)
    one = FakeHost("one")
    one.ended.set_result("its host key is not known")
    place = RemotePlace(lambda: FakeHosts(one))
    with pytest.raises(NotStartedError, match="one: its host key is not known"):
        await place.start(START, Took().take, cases=1)
    await place.close()


async def test_run_connects_twice_and_warns_once_if_no_machine_answers() -> None:
    connected: list[FakeHosts] = []
    warnings: list[str] = []

    def hosts() -> FakeHosts:
        host = FakeHost("one")
        host.ended.set_result("refused")
        connected.append(FakeHosts(host))
        return connected[-1]

    place = RemotePlace(hosts)
    for opened in (1, 2):
        place.open(8, lambda text, hint: warnings.append(text))
        for _ in range(4):
            with pytest.raises(NotStartedError, match="one: refused") as failed:
                await place.start(START, Took().take, cases=1)
            assert failed.value.elsewhere
        assert len(connected) == 2 * opened
        assert len(warnings) == opened
    await place.close()


async def test_next_start_connects_again_when_all_machines_were_lost(world: World) -> None:
    for host in (world.one, world.two):
        host.ended.set_result("gone")
    await settle()
    world.hosts = FakeHosts(third := FakeHost("third"))
    link = await begin(world.place, world.took, third)
    link.send(command(1))
    assert world.took.of[1][0]["machine"] == "third"


class Clock:
    """A clock that a test sets. Between two looks at it, this machine slept."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def _asleep(*later: FakeHosts) -> World:
    """Return a world with an attempt on a machine, after a sleep. Connecting again finds the hosts of `later`."""
    world, clock = World(), Clock()
    world.place.awake = Awake(clock)
    await world.begin()
    world.link.send(command(1))
    clock.now += 3600
    found = iter(later)
    world.place._make_hosts = lambda: next(found)
    world.one.say({"op": "beat", "t": 1, "held": 0})
    world.link.send(command(2))
    await settle()
    assert world.took.events(1) == ["Placed", "lost"]
    return world


async def test_cases_go_on_after_this_machine_slept() -> None:
    third = FakeHost("third")
    world = await _asleep(FakeHosts(third))
    assert world.took.events(2) == ["Paused"]
    assert world.one.closed
    assert world.two.closed
    third.say(WELCOME)
    await settle()
    third.starts(1)
    assert world.took.events(2) == ["Paused", "Placed", "Resumed"]
    assert world.took.of[2][1]["machine"] == "third"
    assert not world.link.ended.done()
    await world.place.close()


async def test_machines_that_stay_away_after_a_sleep_end_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_place, "_BACK_WITHIN", -1.0)
    world = await _asleep(NoHosts())
    assert world.took.events(2) == ["Paused", "lost"]
    assert "no scheduler answers" in world.link.ended.result()
    await world.place.close()


async def test_machines_lost_soon_after_connecting_are_not_connected_again(world: World) -> None:
    world.link.send(command(1))
    for host in (world.one, world.two):
        host.ended.set_result("gone")
    await settle()
    assert world.took.events(1) == ["Placed", "lost"]
    assert world.link.ended.done()


STEPS = ("case", "alone", "forget", "kill", "event", "exit", "starts", "fails", "dies", "join", "closes", "leaves")
FAULTS = ("lies", "hangs", "foreign")


@settings(max_examples=80)
@given(st.lists(st.tuples(st.sampled_from(("case", "event", "exit", "starts", *STEPS, *FAULTS)), st.integers(0, 7))))
def test_each_attempt_reports_once_and_nothing_after_its_end(steps: list[tuple[str, int]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, int]]) -> None:
    story = Story()
    await story.world.begin()
    for step, which in steps:
        getattr(story, step)(which)
        await settle()
    await story.world.place.close()
    await story.world.link.close()
    await settle()
    for number in range(1, story.cases + 1):
        _check(story.world.took, number, story.forgotten.get(number))


class Story:
    """What can happen, each with a number that chooses the machine or the case."""

    def __init__(self) -> None:
        self.world = World()
        self.cases = 0
        self.forgotten: dict[int, int] = {}
        """How much had come of a forgotten attempt, by its number."""

    def case(self, which: int, **values: bool) -> None:
        self.cases += 1
        self.world.link.send(command(self.cases, **values))
        self.world.link.send({"op": "turn", "id": self.cases, "content": {}})

    def alone(self, which: int) -> None:
        self.case(which, alone=True)

    def forget(self, which: int) -> None:
        number = which % (self.cases + 1)
        if number and number not in self.forgotten:
            self.world.link.send({"op": "forget", "id": number})
            self.forgotten[number] = len(self.world.took.of.get(number, ()))

    def kill(self, which: int) -> None:
        self.world.link.send({"op": "kill", "id": which, "signal": 9})

    def host(self, which: int) -> FakeHost:
        return self.world.hosts.hosts[which % len(self.world.hosts.hosts)]

    def event(self, which: int) -> None:
        host, agent, number = self._running(which)
        if number:
            host.say_from(agent, id=number, event="Printed", host=host.name)

    def exit(self, which: int) -> None:
        host, agent, number = self._running(which)
        if number:
            host.exits(agent, number)

    def starts(self, which: int) -> None:
        host, agent, _ = self._running(which)
        host.starts(agent)

    def fails(self, which: int) -> None:
        host, agent, _ = self._running(which)
        host.say({"op": "agent_failed", "agent": agent, "message": "no", "died": False})

    def dies(self, which: int) -> None:
        host, agent, _ = self._running(which)
        host.agents.get(agent, set()).clear()
        host.say({"op": "agent_ended", "agent": agent, "how": "was killed"})

    def hangs(self, which: int) -> None:
        host, agent, _ = self._running(which)
        host.say_from(agent, op="stalled", why="stopped")

    def foreign(self, which: int) -> None:
        host, agent, _ = self._running(which)
        host.say_from(agent, id=10_000, event="Printed")

    def lies(self, which: int) -> None:
        self.host(which).say({"op": "from", "agent": 1, "n": -1})

    def join(self, which: int) -> None:
        if len(self.world.hosts.hosts) < 5:
            late = FakeHost(f"late {len(self.world.hosts.hosts)}", 1)
            self.world.hosts.join(late)
            late.say(WELCOME)

    def closes(self, which: int) -> None:
        host = self.host(which)
        if not host.ended.done():
            host.ended.set_result("cut")

    def leaves(self, which: int) -> None:
        self.host(which).say({"op": "leaving", "why": "told to"})

    def _running(self, which: int) -> tuple[FakeHost, int, int]:
        """Return a machine, the number of its last agent, and the number of a case there (0: none)."""
        host = self.host(which)
        agent = max(host.agents, default=0)
        running = sorted(host.agents.get(agent, ()))
        return host, agent, running[which % len(running)] if running else 0


def _check(took: Took, number: int, forgotten: int | None) -> None:
    events = took.events(number)
    ends = [event for event in events if event in ("exited", "lost")]
    if forgotten is not None:
        assert len(events) == forgotten
        assert len(ends) <= 1
    else:
        assert len(ends) == 1
        assert events[-1] in ("exited", "lost")
    assert events.count("Placed") <= 1
    machines = {frame.get("machine") or frame.get("host") for frame in took.of[number]} - {None}
    assert len(machines) <= 1  # A transcript never mixes machines.
