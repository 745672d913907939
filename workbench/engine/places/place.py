"""The protocol of a place where agents run: this machine's child processes, the caller's own process, other machines.

A place starts processes that import one agent each, carries messages (JSON objects) to and from them, and ends them.
Nothing else crosses: no file descriptor, no object of this process. `docs/worker-protocol.md` lists the messages.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from workbench.agents.channel import Frame
from workbench.engine.plan.plan import AgentSetting

Stream: TypeAlias = Literal["stdout", "stderr"]
OnFrame: TypeAlias = Callable[[Frame, int], None]
"""Takes a message that came, and the bytes that it had on its way (0 if it had none). Must not raise."""


class NotStartedError(Exception):
    """No process can be started for an agent; the text says why. `died` means that the interpreter did start."""

    def __init__(self, message: str, *, died: bool = False) -> None:
        super().__init__(message)
        self.died = died


class AgentLink(Protocol):
    """The way to one agent process.

    Each attempt at a case has a number of its own (`id`), which all messages of the attempt bear. A place hands on what
    an attempt said, its printed text included, before it says that the attempt has exited. It says so once for each
    attempt, also if the process ended first or was gone before.
    """

    ended: asyncio.Future[str]
    """Done when the process is gone: how it ended, in words that follow a subject."""
    serves_one_case: bool
    """Whether the process is there for a single case."""

    def send(self, *frames: Frame) -> None:
        """Send messages. They are dropped if their attempt or the process has ended.

        Raises:
            FrameTooLargeError: one is too large to be carried; none is sent.
        """
        ...

    def kill(self) -> None:
        """End the process with all its cases at once."""
        ...

    async def close(self) -> None:
        """End the process and whatever still runs in it."""
        ...


class Place(Protocol):
    """Somewhere agents can run."""

    def open(self, concurrency: int) -> None:
        """Prepare for a run with up to `concurrency` cases at a time."""
        ...

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> AgentLink:
        """Start a process that imports the agent and says so. `cases` of the run need the same interpreter.

        Raises:
            NotStartedError: there is no such process.
        """
        ...

    async def close(self) -> None:
        """End everything that was started here."""
        ...
