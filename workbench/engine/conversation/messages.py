"""Where the user's messages of a case come from: a fixed list, or whoever decides after each answer."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from workbench.events import CaseError, CaseStatus, Usage


@dataclass(frozen=True, slots=True)
class Say:
    """The next message, an ADK content. `last`: it is known already that none will follow. `question` is what was asked
    for it (`UserSimulated.question`), None for a user who is not simulated."""

    content: dict[str, Any]
    last: bool = False
    question: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HangUp:
    """The conversation is over, by the simulated user's own decision or at the limit of turns."""

    how: Literal["stop_signal", "turn_limit"]
    question: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Silence:
    """A message should come, and it is known that none will. `question` is the one that brought no reply, {} if none
    was asked. `status` is that of the case."""

    error: CaseError
    question: dict[str, Any] = field(default_factory=dict)
    status: CaseStatus = "error"


Move: TypeAlias = Say | HangUp | Silence


class MessageSource(Protocol):
    """The user of one execution of a case."""

    @property
    def usage(self) -> Usage:
        """What its own calls cost so far, in the fields of judges."""
        ...

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        """What comes after `turns` (ADK invocations): at once, where it is known, else something to wait for, which may
        be cancelled. Never raises."""
        ...

    def close(self) -> None:
        """Lets go of what it holds: the conversation is over, however it ended."""
        ...


class FixedMessages:
    """The messages of a conversation that is written down, at least one."""

    usage = Usage()

    def __init__(self, contents: Sequence[dict[str, Any]]) -> None:
        self._contents = contents

    def next(self, turns: Sequence[dict[str, Any]]) -> Say:
        turn = len(turns)
        return Say(self._contents[turn], last=turn == len(self._contents) - 1)

    def close(self) -> None:
        """Holds nothing."""
