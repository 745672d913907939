"""Hosts without processes or sockets: a test says what they answer."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.agents.channel import Frame
from workbench.places.place import AgentStart, NotStartedError, OnFrame
from workbench.places.remote.link import HostLink
from workbench.places.remote.remote_place import RemotePlace
from workbench.places.remote.spread_agent import SpreadAgent

IMPORTED = {"op": "imported", "framework": "python", "adk": None, "can_fork": True, "why": ""}
WELCOME = {"op": "welcome", "protocol": 1, "name": "n", "python": "3.11", "platform": "linux", "cpus": 2, "memory": 1}
START = AgentStart(
    "desk", Path("/p/desk"), Path("/p"), "python", Path("/py"), {"env": {}, "cwd": "/p", "folder": "/p/desk"}
)


class FakeHost:
    """A link, and the host at its other end. `sent` has what the client sent."""

    host_died = False
    about = ""

    def __init__(self, name: str, slots: int | None = None) -> None:
        self.name = name
        self.slots = slots
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.on_frame: OnFrame = lambda frame, size: None
        self.sent: list[Frame] = []
        self.agents: dict[int, set[int]] = {}
        """Attempts that run, by the number of their agent."""
        self.number = 0
        self.closed = False

    def send(self, *frames: Frame) -> None:
        for frame in frames:
            self.sent.append(frame)
            match frame["op"]:
                case "agent":
                    self.agents[frame["agent"]] = set()
                case "to":
                    for inner in frame["frames"]:
                        if inner["op"] == "case" and frame["agent"] in self.agents:
                            self.agents[frame["agent"]].add(inner["id"])

    async def close(self) -> None:
        self.closed = True
        if not self.ended.done():
            self.ended.set_result("was closed")

    def say(self, frame: Frame) -> None:
        """Send a message to the client."""
        self.on_frame(frame, 100)

    def say_from(self, agent: int, **frame: Any) -> None:
        """Send a message of an agent or a case."""
        self.number += 1
        self.say({"op": "from", "agent": agent, "n": self.number, "t": 0, "held": 0, "size": 10, "frame": frame})

    def exits(self, agent: int, number: int, how: str | None = "ended") -> None:
        """Report the exit of an attempt."""
        self.agents[agent].discard(number)
        self.say_from(agent, op="exited", id=number, how=how)

    def starts(self, agent: int) -> None:
        """Report that an agent is started and imported."""
        self.say({"op": "agent_started", "agent": agent, "serves_one_case": False})
        self.say_from(agent, **IMPORTED)

    def ops(self) -> list[str]:
        return [frame["op"] for frame in self.sent]


class FakeHosts:
    """Hosts that a test adds. Those of `at_first` are there when the place connects."""

    def __init__(self, *at_first: FakeHost) -> None:
        self.hosts = list(at_first)
        self._on_link: Callable[[HostLink], OnFrame]

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        self._on_link = on_link
        for host in tuple(self.hosts):
            host.on_frame = on_link(host)

    async def close(self) -> None: ...

    def join(self, host: FakeHost) -> None:
        self.hosts.append(host)
        host.on_frame = self._on_link(host)


class NoHosts(FakeHosts):
    """Hosts that cannot be reached."""

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        raise NotStartedError("no scheduler answers")


class Took:
    """What the engine gets: the messages of each attempt, of the agent, and warnings."""

    def __init__(self) -> None:
        self.of: dict[int, list[Frame]] = {}
        self.others: list[Frame] = []
        self.warnings: list[str] = []

    def take(self, frame: Frame, size: int) -> None:
        if "id" in frame:
            self.of.setdefault(frame["id"], []).append(frame)
        else:
            self.others.append(frame)

    def events(self, number: int) -> list[str]:
        """Return what came of an attempt: names of events, and `exited` or `lost`."""
        return [frame.get("event") or ("lost" if "lost" in frame else "exited") for frame in self.of.get(number, [])]


async def settle() -> None:
    """Let all tasks run that can run."""
    for _ in range(12):
        await asyncio.sleep(0)


def command(number: int, **values: Any) -> Frame:
    return {"op": "case", "id": number, "attempt": 1, "case": {}, "share": False, "here": False, **values}


async def begin(place: RemotePlace, took: Took, *hosts: FakeHost) -> SpreadAgent:
    """Start the agent, on the first of the hosts."""
    place.open(8, lambda text, hint: took.warnings.append(text))
    starting = asyncio.create_task(place.start(START, took.take, cases=9))
    await settle()
    for host in hosts:
        host.say(WELCOME)
        await settle()
    hosts[0].starts(1)
    return await starting
