"""What a case needs of an agent, whatever framework it is made with."""

from __future__ import annotations

import abc
from typing import Any, Callable, Dict, NamedTuple, Optional

from .usage import Usage

Json = Dict[str, Any]
Shown = Callable[[Json], None]
"""Takes one step of the agent, an ADK invocation event, as soon as it is taken."""
Streamed = Callable[[str, str, bool], None]
"""Takes a piece of a text whose step is still to come: who says it, the piece, and whether it is a thought."""
Keep = Callable[[Json], None]
"""Takes what a model answered, before anything is done with it."""


class NotGivenWholeError(Exception):
    """The model gave an answer piece by piece and not as a whole, so that nothing of it is in the session."""


class FinishedTurn(NamedTuple):
    """`actual` is an ADK invocation; `note` what the user should know besides."""

    actual: Json
    note: str = ""


class Conversation(abc.ABC):
    """One session with an agent."""

    @abc.abstractmethod
    async def turn(self, content: Json, show: Shown, stream: Optional[Streamed] = None) -> Optional[FinishedTurn]:
        """One message of the user and all the agent does until its answer. None: the agent did nothing at all.
        `stream` is given texts as they grow, where the agent can do that; the turn is the same with and without it.

        Raises whatever the agent raises.
        """

    @abc.abstractmethod
    async def state(self) -> Any:
        """What the session remembers now: the agent's own objects, not to be changed."""

    @property
    @abc.abstractmethod
    def usage(self) -> Usage:
        """What was spent so far."""

    def keep_answers(self, keep: Keep) -> None:  # noqa: B027 (most make no calls that can be seen)
        """From here on `keep` is given what models answer, where that is known."""

    def recall(self, answer: Json) -> None:  # noqa: B027
        """Takes such an answer of an interrupted run: it is given in the place of the same call, once."""

    def spans(self) -> Optional[Json]:
        """What took how long since this was asked last (`spans.Trace.take`); None if that is not known."""
        return None

    async def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Lets go of what the agent holds. Raises whatever that raises."""
