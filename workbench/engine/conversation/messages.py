"""The user's messages in a case: a fixed list, or a source that decides after each answer."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from workbench.events import CaseError, CaseStatus, Usage


@dataclass(frozen=True, slots=True)
class NextMessage:
    """The user's next message, an ADK content.

    `last` means that no further message follows. `question` is the simulator's question (`UserSimulated.question`), or
    None if the user is not simulated.
    """

    content: dict[str, Any]
    last: bool = False
    question: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ConversationEnd:
    """The end of the conversation, by the simulated user's decision or at the turn limit."""

    how: Literal["stop_signal", "turn_limit"]
    question: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserFailure:
    """A failure to make the next message.

    `question` is the question without a usable reply, or {}. `status` is the case's status.
    """

    error: CaseError
    question: dict[str, Any] = field(default_factory=dict)
    status: CaseStatus = "error"


Move: TypeAlias = NextMessage | ConversationEnd | UserFailure


class MessageSource(Protocol):
    """The user of one execution of a case."""

    @property
    def usage(self) -> Usage:
        """The usage of its own calls so far, in the fields of judges."""
        ...

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        """Return the move after `turns` (ADK invocations), or an awaitable of it that may be cancelled. Never raise."""
        ...

    def close(self) -> None:
        """Release all resources, because the conversation is over."""
        ...


class FixedMessages:
    """The messages of a case without a simulated user, at least one."""

    usage = Usage()

    def __init__(self, contents: Sequence[dict[str, Any]]) -> None:
        self.contents = contents

    def next(self, turns: Sequence[dict[str, Any]]) -> NextMessage:
        """Return the message after `turns`."""
        turn = len(turns)
        return NextMessage(self.contents[turn], last=turn == len(self.contents) - 1)

    def close(self) -> None:
        """Do nothing, because there are no resources."""
