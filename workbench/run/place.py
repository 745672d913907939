"""The protocol of a place on this machine where agents run: child processes, or the caller's own process.

A place starts processes that import one agent each, carries messages (JSON objects) to and from them, and ends them.
Nothing else is exchanged, neither file descriptors nor objects. `docs/worker-protocol.md` lists the messages.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from workbench.agents.channel import Frame
from workbench.run.plan.plan import AgentSetting

Stream: TypeAlias = Literal["stdout", "stderr"]
OnFrame: TypeAlias = Callable[[Frame, int], None]
"""A function that takes a received message and its size in bytes (0 if it was not sent). It must not raise."""


class NotStartedError(Exception):
    """An agent's process that cannot be started. The text says why. `died` says whether its interpreter did start."""

    def __init__(self, message: str, *, died: bool = False) -> None:
        super().__init__(message)
        self.died = died


class AgentLink(Protocol):
    """A connection to one agent process.

    Each attempt at a case has its own number (`id`), which is in all messages of the attempt. A place forwards all
    messages and printed text of an attempt before it reports the exit of the attempt. It reports each exit exactly
    once, even if the process ended first.
    """

    ended: asyncio.Future[str]
    """Done when the process has ended, with a phrase such as "ended with exit code 1"."""
    serves_one_case: bool
    """Whether the process is for a single case."""

    def send(self, *frames: Frame) -> None:
        """Send messages of one attempt. They are dropped if the attempt or the process has ended.

        Raises:
            FrameTooLargeError: a message is too large, so none was sent.
        """
        ...

    def kill(self) -> None:
        """Kill the process and all its cases."""
        ...

    async def close(self) -> None:
        """End the process and everything in it."""
        ...


class Place(Protocol):
    """A place where agents can run."""

    def open(self, concurrency: int) -> None:
        """Prepare for a run with up to `concurrency` cases at a time."""
        ...

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> AgentLink:
        """Start a process that imports the agent and reports that.

        `cases` is the number of the run's cases that need the same interpreter.

        Raises:
            NotStartedError: the process cannot be started.
        """
        ...
