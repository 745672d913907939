"""What a machine must have before an agent can start there: the project's files and an interpreter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from workbench.agents.channel import Frame
from workbench.places.place import AgentStart, MachineEnvironment

PREPARATION = frozenset({"need", "got", "ready", "unready"})
"""The `op` of messages in which a host answers about a bundle."""


@dataclass(frozen=True)
class Prepared:
    """A machine that has the project.

    `root` is its folder there. `interpreters`, and as far as they are known their `environments`, are by this machine's
    paths.
    """

    root: PurePosixPath
    interpreters: Mapping[Path, PurePosixPath]
    environments: Mapping[Path, MachineEnvironment] = field(default_factory=dict)


class Conversation(Protocol):
    """A machine during its preparation."""

    name: str
    sent: int
    """Bytes of the project's files that were sent to it so far. A bundle counts them here."""

    def send(self, *frames: Frame) -> None:
        """Send messages to the host."""
        ...

    async def receive(self) -> Frame:
        """Return the host's next message about the bundle (`PREPARATION`).

        Raises:
            NotStartedError: the machine is lost.
        """
        ...


class Bundle(Protocol):
    """The files and interpreters that the machines of one run get. A new one is made for each run."""

    async def prepare(self, start: AgentStart, machine: Conversation) -> Prepared:
        """Send what a machine lacks for an agent, and wait until it is ready.

        It may be called for several machines at the same time, but for each of them one agent after the other.

        Raises:
            NotStartedError: the machine cannot be used for this agent. The text says why.
        """
        ...


class SameFiles:
    """No bundle: the other machines have the same files at the same paths, and the same interpreters."""

    async def prepare(self, start: AgentStart, machine: Conversation) -> Prepared:
        """Return at once."""
        return Prepared(PurePosixPath(start.root), {start.interpreter: PurePosixPath(start.interpreter)})
