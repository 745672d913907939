"""One machine of a remote place: its link, its lease, and the agents that run on it."""

import asyncio
import itertools
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol

from workbench.agents.channel import Frame
from workbench.places.foreign_text import beginning
from workbench.places.lease import ALIVE, LEASE
from workbench.places.place import MachineEnvironment, NotStartedError
from workbench.places.remote import messages
from workbench.places.remote.link import HostLink
from workbench.places.remote.messages import InvalidMessageError, Welcome, parse
from workbench.places.remote.time_passed import Awake, Silence

PROTOCOL = 1
_ACKNOWLEDGED_AFTER = 256 * 1024
"""Bytes after which messages are acknowledged at once."""
_LONGEST_FAULT = 500
_ANSWER_WITHIN = 2700.0
"""Seconds for the next answer about a bundle. A host gives up building an interpreter before."""
_ANSWERS = 1000
"""Answers about a bundle that may wait to be read."""
_ANSWERS_BYTES = 64 * 1024 * 1024


class AgentOwner(Protocol):
    """What an agent's process on another machine is started for. It gets all news of the process."""

    def started(self, agent: "RemoteAgent") -> None:
        """Take the news that the process has started."""

    def failed(self, agent: "RemoteAgent", why: str, *, died: bool) -> None:
        """Take the news that the process could not be started. No more news follows."""

    def came(self, agent: "RemoteAgent", frame: Frame, size: int) -> None:
        """Take a message of the agent or a case, of `size` bytes.

        Raises:
            InvalidMessageError: it breaks the protocol.
        """

    def over(self, agent: "RemoteAgent", how: str) -> None:
        """Take the news that the process has ended. No more news follows."""

    def lost(self, agent: "RemoteAgent", why: str, *, died: bool) -> None:
        """Take the news that the machine is lost. No more news follows. `died` means that the host process died."""

    def paused(self, agent: "RemoteAgent", seconds: float) -> None:
        """Take the news that the machine has been silent for some seconds, and still is."""

    def resumed(self, agent: "RemoteAgent", seconds: float) -> None:
        """Take the news that the machine is not silent any more, and that `seconds` before count for no case."""


class RemoteAgent:
    """An agent's process on `machine`, under a number that is used once."""

    def __init__(self, machine: "Machine", number: int, owner: AgentOwner) -> None:
        self.machine = machine
        self.number = number
        self.owner = owner

    def send(self, *frames: Frame) -> None:
        """Send messages to the agent."""
        self.machine.send({"op": "to", "agent": self.number, "frames": frames})

    def kill(self) -> None:
        """Kill the process and its cases."""
        self.machine.send({"op": "kill", "agent": self.number})

    def close(self) -> None:
        """End the process and everything in it. Its end is reported."""
        self.machine.send({"op": "close", "agent": self.number})


class Machine:
    """The machine at the other end of `link`. `on_change` is called when it becomes usable and when it is lost.

    Call `tick` about twice a second. `on_overslept` is called when this process turns out to have slept for too long.
    """

    def __init__(
        self,
        link: HostLink,
        awake: Awake,
        on_change: Callable[["Machine"], None],
        on_overslept: Callable[[], None],
    ) -> None:
        self.link = link
        self.name = link.name
        self.welcome: Welcome | None = None
        self.why_lost: str | None = None
        """Why the machine is lost, or None."""
        self.sent = 0
        """Bytes of the project's files that were sent to it. The bundle counts them."""
        self.lost_attempts = 0
        """The number of attempts that were lost with it."""
        self.environments: dict[Path, MachineEnvironment] = {}
        """What agents run in there, by the path of their interpreter here."""
        self._awake = awake
        self._on_change = on_change
        self._on_overslept = on_overslept
        self._silence = Silence(awake.now)
        self._numbers = itertools.count(1)
        self._agents: dict[int, RemoteAgent] = {}
        self._handled = 0
        """The number of the last message of an agent."""
        self._unacknowledged = 0
        self._acknowledged = 0
        self._since = self._sent_at = awake.now
        self._answers: asyncio.Queue[tuple[Frame, int] | None] = asyncio.Queue()
        """Answers about a bundle with their sizes, and None at the end."""
        self._answers_bytes = 0
        self.preparing = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether agents and cases can start there now."""
        return self.welcome is not None and self.why_lost is None and not self._silence.is_noticed

    @property
    def phase(self) -> Literal["connecting", "preparing", "ready", "lost"]:
        """What the machine is doing."""
        if self.why_lost is not None:
            return "lost"
        if self.welcome is None:
            return "connecting"
        return "preparing" if self.preparing.locked() else "ready"

    @property
    def is_coming(self) -> bool:
        """Whether it is, or may become, usable."""
        return self.why_lost is None

    def greet(self) -> None:
        """Send the first message, and watch for the end of the link. Call it once the link's messages come here."""
        self.send({"op": "hello", "protocol": PROTOCOL, "client": uuid.uuid4().hex, "lease": LEASE})
        self.link.ended.add_done_callback(lambda ended: self._link_ended(ended.result()))

    def send(self, *frames: Frame) -> None:
        """Send messages to the host. They are dropped if the machine is lost.

        Raises:
            FrameTooLargeError: a message is too large.
        """
        if self.why_lost is None:
            self._sent_at = self._awake.now
            self.link.send(*frames)

    def start_agent(self, message: dict[str, Any], owner: AgentOwner) -> RemoteAgent:
        """Start an agent. `message` has the fields of the message `agent`, except its number.

        Raises:
            FrameTooLargeError: the message is too large.
            NotStartedError: the machine is lost.
        """
        if self.why_lost is not None:
            raise NotStartedError(self.why_lost)
        agent = RemoteAgent(self, next(self._numbers), owner)
        self.send({**message, "op": "agent", "agent": agent.number})
        self._agents[agent.number] = agent
        return agent

    def forget(self, agent: RemoteAgent) -> None:
        """Drop further news of an agent."""
        self._agents.pop(agent.number, None)

    async def receive(self) -> Frame:
        """Return the next message about a bundle.

        Raises:
            NotStartedError: the machine is lost.
        """
        answer = None
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                answer = await self._answers.get() if self.why_lost is None else None
        except TimeoutError:
            self.lose(f"it did not prepare the project within {_ANSWER_WITHIN:g} s")
        if answer is None:
            raise NotStartedError(self.why_lost or f"{self.name} is lost")
        self._answers_bytes -= answer[1]
        return answer[0]

    def take(self, frame: Frame, size: int) -> None:
        """Handle a message of the host."""
        if self._awake.look():
            self._on_overslept()
        if self.why_lost is not None:
            return
        try:
            self._handle(parse(frame), size)
        except InvalidMessageError as error:
            self.lose(f"it sent an invalid message: {error}")
        except Exception as error:  # Not expected, but no message of a machine may harm the others.
            self.lose(f"its message cannot be handled: {type(error).__name__}: {beginning(str(error), _LONGEST_FAULT)}")

    def tick(self, *, busy: bool = True) -> None:
        """Notice silence, and send what is due. `busy`: whether cases run there, so that it should send more."""
        if self.why_lost is not None:
            return
        now = self._awake.now
        if now - self._silence.since > LEASE:
            self.lose(f"nothing came from it for {LEASE:g} s")
            return
        if self.welcome is None and now - self._since > LEASE:
            self.lose(f"it did not say what it is within {LEASE:g} s")
            return
        if silent := self._silence.notice(now, busy=busy):
            for agent in tuple(self._agents.values()):
                agent.owner.paused(agent, silent)
        if self._handled > self._acknowledged:
            self._acknowledge()
        elif now - self._sent_at >= ALIVE:
            self.send({"op": "alive", "t": now})

    def lose(self, why: str, *, died: bool = False) -> None:
        """Give the machine up with everything on it. Only the first reason counts."""
        if self.why_lost is not None:
            return
        self.why_lost = why
        self._closing = asyncio.get_running_loop().create_task(self.link.close())
        self._answers.put_nowait(None)
        agents, self._agents = self._agents, {}
        for agent in agents.values():
            agent.owner.lost(agent, why, died=died)
        self._on_change(self)

    async def close(self) -> None:
        """End the host and everything in it."""
        self.lose("was closed")
        if self._closing is not None:
            await self._closing

    def _link_ended(self, why: str) -> None:
        self.lose(why, died=self.link.host_died)

    def _handle(self, message: messages.Message, size: int) -> None:
        self._end_silence(message.held if isinstance(message, messages.FromAgent | messages.Beat) else None)
        match message:
            case messages.FromAgent():
                self._handle_from(message, size)
            case messages.Beat():
                pass
            case messages.Leaving(why):
                self.lose(why)
            case messages.About(frame):
                self._answers_bytes += size
                if self._answers.qsize() >= _ANSWERS or self._answers_bytes > _ANSWERS_BYTES:
                    raise InvalidMessageError("more answers than questions")
                self._answers.put_nowait((frame, size))
            case Welcome():
                self.welcome = message
                self._on_change(self)
            case _:
                self._handle_news(message)

    def _handle_news(self, message: messages.AgentStarted | messages.AgentFailed | messages.AgentEnded) -> None:
        agent = self._agents.get(message.agent)
        if agent is None:
            return
        if not isinstance(message, messages.AgentStarted):
            del self._agents[message.agent]
        match message:
            case messages.AgentStarted():
                agent.owner.started(agent)
            case messages.AgentFailed(_, why, died):
                agent.owner.failed(agent, why, died=died)
            case messages.AgentEnded(_, how):
                agent.owner.over(agent, how)

    def _end_silence(self, held: float | None) -> None:
        was_silent = self._silence.is_noticed
        lost = self._silence.heard(self._awake.now, held)
        if lost or was_silent:
            for agent in tuple(self._agents.values()):
                agent.owner.resumed(agent, lost)
        if was_silent:
            self._on_change(self)

    def _handle_from(self, message: messages.FromAgent, size: int) -> None:
        if message.number != self._handled + 1:
            raise InvalidMessageError(f"message {message.number} after {self._handled}")
        self._handled = message.number
        self._unacknowledged += size
        agent = self._agents.get(message.agent)
        if agent is not None:
            # The size that the host states could be wrong, and limits of cases count it.
            agent.owner.came(agent, message.frame, max(message.size, size))
        if self._unacknowledged >= _ACKNOWLEDGED_AFTER:
            self._acknowledge()

    def _acknowledge(self) -> None:
        self._unacknowledged, self._acknowledged = 0, self._handled
        self.send({"op": "ack", "n": self._handled})


def with_name(machine: Machine, why: str) -> str:
    """Return the reason for something about a machine, with its name in front unless it is there already."""
    return why if why.startswith(f"{machine.name}: ") else f"{machine.name}: {why}"
