"""Attempts at cases as their agent's link sees them: waiting for a machine, or on one."""

from dataclasses import dataclass, field

from workbench.agents.channel import Frame
from workbench.agents.worker.frames import MAX_FRAME, encode
from workbench.places.remote.machine import RemoteAgent

_TOGETHER = 1024 * 1024
"""Bytes of messages that are sent as one."""
_ANY_NUMBER = 10**12
MOST_EXCUSED = 900.0
"""Seconds of an attempt that may not count, because its machine was silent or says that it had to wait for us."""


@dataclass(eq=False)
class Attempt:
    """An attempt. `agent` is the process that runs it, or None while it waits with its `messages` for a machine.

    `since` is the time when it was placed, on the clock of `Awake`.
    """

    number: int
    alone: bool
    messages: list[tuple[Frame, int]] = field(default_factory=list)
    """The messages and their sizes in bytes."""
    agent: RemoteAgent | None = None
    since: float = 0.0
    is_paused: bool = False
    """Whether its clock was stopped because it has no machine."""
    has_ended: bool = False
    """Whether it has told all it had to tell. Only the exit of its process is to come."""
    _excused: float = 0.0
    _silent_since: float | None = None

    def keep(self, frames: tuple[Frame, ...]) -> None:
        """Keep messages until the attempt has a machine.

        Raises:
            FrameTooLargeError: a message is too large to be sent; none is kept.
        """
        self.messages += [(frame, wrapped_size(frame)) for frame in frames]

    def excuse(self, seconds: float, now: float, *, goes_on: bool) -> float:
        """Return how many of the last `seconds` do not count. `goes_on` says whether the machine is still silent.

        A machine that is silent again and again, or only says that it waits, cannot keep a case for ever.
        """
        if self._silent_since is not None:
            self._excused += max(0.0, now - self._silent_since)
        self._silent_since = now if goes_on else None
        own = max(0.0, min(seconds, now - self.since, MOST_EXCUSED - self._excused))
        self._excused += own
        return own

    @property
    def is_excused(self) -> bool:
        """Whether more silence of its machine may not count."""
        return self._excused < MOST_EXCUSED

    def place(self, agent: RemoteAgent, now: float) -> None:
        """Send the kept messages to the process of the agent."""
        self.agent, self.since = agent, now
        together: list[Frame] = []
        size = 0
        for frame, bytes_of_it in self.messages:
            if together and size + bytes_of_it > _TOGETHER:
                agent.send(*together)
                together, size = [], 0
            together.append(frame)
            size += bytes_of_it
        agent.send(*together)
        self.messages = []


def wrapped_size(frame: Frame) -> int:
    """Return the size of a message on its way to another machine.

    Raises:
        FrameTooLargeError: it is too large.
    """
    assert MAX_FRAME > _TOGETHER
    return len(encode({"op": "to", "agent": _ANY_NUMBER, "frames": [frame]}))
