"""The agent's part of an execution of a case, which may run in a child process or on another machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.agents.channel import Frame
from workbench.engine.conversation.messages import MessageSource
from workbench.engine.conversation.transcript import Transcript
from workbench.engine.plan.answers import Answer
from workbench.events import CaseError, CaseRef, Event, LostAttempt


@dataclass(frozen=True)
class Execution:
    """What an agent gets for one execution of a case, and who is told what happens.

    `spec` is the protocol's CaseSpec without `answers`. `before` are messages that precede the first turn. `answers`
    are stored answers of models. `user` makes the user at the start of the conversation. `begin` is called at the start
    of each attempt, with the name of the machine ("" for this one) and the attempt that was lost before, if any. All
    events before that are void.
    """

    ref: CaseRef
    spec: dict[str, Any]
    before: Sequence[Frame]
    answers: Sequence[Answer]
    user: Callable[[], MessageSource]
    begin: Callable[[str, LostAttempt | None], None]
    emit: Callable[[Event], None]


class AgentPart(Protocol):
    """The agent's part of one execution. Await `transcript`, then `closed`, then `finish`."""

    async def transcript(self) -> Transcript:
        """Run the agent, again if an attempt is lost without its fault, and return the transcript."""
        ...

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """End the execution with `reason` as its error. With `kill`, kill it at once."""
        ...

    async def closed(self) -> None:
        """Wait until no relevant output follows."""
        ...

    async def finish(self) -> None:
        """Wait until the process of the case has ended."""
        ...
