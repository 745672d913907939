"""The messages of a host, checked. They come from another machine, so nothing about them is taken for granted."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from workbench.agents.channel import Frame
from workbench.counting import counted
from workbench.places.foreign_text import beginning
from workbench.places.remote.preparing import PREPARATION

_OF_THE_PLACE = frozenset({"Placed", "Paused", "Resumed"})
"""Events that only our own side of the link may make."""
_OF_AGENTS = frozenset({"imported", "import_failed", "printed", "wrote", "stalled"})
_MOST_SECONDS = 1e10


class InvalidMessageError(ValueError):
    """A message that breaks the protocol. The text says how."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The host's description of its machine. `memory` is in bytes, 0 if unknown."""

    name: str
    python: str
    platform: str
    cpus: int
    memory: int

    @property
    def words(self) -> str:
        """The machine in words: `Python 3.12.4, Linux, 8 processors, 16.0 GB`. Raw text."""
        memory = [f"{self.memory / 1e9:.1f} GB"] if self.memory else []
        processors = counted(self.cpus, "processor")
        return ", ".join([f"Python {self.python}", self.platform, processors, *memory])


@dataclass(frozen=True, slots=True)
class FromAgent:
    """Message `frame` of an agent or, with an `id`, of an attempt. `size` is in bytes, `held` in seconds so far."""

    agent: int
    number: int
    held: float
    size: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """An agent's process that has started."""

    agent: int


@dataclass(frozen=True, slots=True)
class AgentFailed:
    """An agent's process that cannot be started. `died` means that its interpreter did start."""

    agent: int
    message: str
    died: bool


@dataclass(frozen=True, slots=True)
class AgentEnded:
    """The end of an agent's process: "was killed by SIGKILL"."""

    agent: int
    how: str


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life. `held` is in seconds so far."""

    held: float


@dataclass(frozen=True, slots=True)
class Leaving:
    """The host's last message."""

    why: str


@dataclass(frozen=True, slots=True)
class About:
    """An answer about a bundle."""

    frame: Frame


Message: TypeAlias = Welcome | FromAgent | AgentStarted | AgentFailed | AgentEnded | Beat | Leaving | About


def parse(frame: Frame) -> Message:
    """Return a message of a host.

    Raises:
        InvalidMessageError: it breaks the protocol.
    """
    op = frame.get("op")
    match op:
        case "from":
            held, inner = _seconds(frame, "held"), _inner(frame.get("frame"))
            return FromAgent(_count(frame, "agent"), _count(frame, "n"), held, _count(frame, "size"), inner)
        case "beat":
            return Beat(_seconds(frame, "held"))
        case "agent_started":
            return AgentStarted(_count(frame, "agent"))
        case "agent_failed":
            return AgentFailed(_count(frame, "agent"), _text(frame, "message"), frame.get("died") is True)
        case "agent_ended":
            return AgentEnded(_count(frame, "agent"), _text(frame, "how"))
        case "leaving":
            return Leaving(_text(frame, "why"))
        case "welcome":
            name, python, platform = (_text(frame, name) for name in ("name", "python", "platform"))
            return Welcome(name, python, platform, max(1, _count(frame, "cpus")), _count(frame, "memory"))
        case str() if op in PREPARATION:
            return About(frame)
    raise InvalidMessageError(f"unknown message {str(op)[:80]!r}")


def _inner(frame: Any) -> Frame:
    """Return the message of an agent or case, with nothing that only a place may say."""
    if not isinstance(frame, dict):
        raise InvalidMessageError("a message of an agent is not an object")
    if "id" in frame:
        number = _count(frame, "id")
        if "event" in frame:
            if not isinstance(frame["event"], str) or frame["event"] in _OF_THE_PLACE:
                raise InvalidMessageError(f"unknown event {str(frame['event'])[:80]!r}")
            return frame
        if frame.get("op") == "exited":
            how = None if frame.get("how") is None else _text(frame, "how")
            parent = {"parent": _text(frame, "parent")} if how is None and "parent" in frame else {}
            return {"op": "exited", "id": number, "how": how, **parent}
    elif frame.get("op") in _OF_AGENTS:
        return frame
    raise InvalidMessageError(f"unknown message {str(frame.get('op'))[:80]!r} of an agent")


def _count(frame: Frame, name: str) -> int:
    value = frame.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise InvalidMessageError(f"{name} is not a number")
    return value


def _seconds(frame: Frame, name: str) -> float:
    value = frame.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _MOST_SECONDS:
        raise InvalidMessageError(f"{name} is not a number of seconds")
    return float(value)


def _text(frame: Frame, name: str) -> str:
    value = frame.get(name)
    if not isinstance(value, str):
        raise InvalidMessageError(f"{name} is not a text")
    return beginning(value)
