"""The interface of a conversation, whatever framework the agent uses."""

from __future__ import annotations

import abc
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence

from .gate import Gate
from .usage import Usage

Json = Dict[str, Any]
OnStep = Callable[[Json], None]
"""A receiver of each step of the agent, an ADK invocation event, as soon as it happens."""
OnText = Callable[[str, str, bool], None]
"""A receiver of each piece of an unfinished step's text: the author, the piece, and whether it is a thought."""
OnAnswer = Callable[[Json], None]
"""A receiver of each answer of a model, before it is used."""


class NotGivenWholeError(Exception):
    """The model streamed an answer but never completed it, so the session does not contain it."""


class FinishedTurn(NamedTuple):
    """A finished turn.

    `actual` is an ADK invocation; `note` is a remark for the user. `inner_calls` are the calls inside agents that are
    used as tools, as in the event `TurnFinished`.
    """

    actual: Json
    note: str = ""
    inner_calls: Sequence[Json] = ()


class Conversation(abc.ABC):
    """One session with an agent."""

    @abc.abstractmethod
    async def turn(self, content: Json, show: OnStep, stream: Optional[OnText] = None) -> Optional[FinishedTurn]:
        """Send one user message. Return the finished turn, or None if the agent did nothing.

        `stream` gets texts as they grow, if the agent supports that. The turn is the same with and without it.
        Exceptions of the agent are passed on.
        """

    @abc.abstractmethod
    async def state(self) -> Any:
        """Return the session's current state: the agent's own objects, not to be changed."""

    @property
    @abc.abstractmethod
    def usage(self) -> Usage:
        """The usage so far."""

    def store_answers(self, on_answer: OnAnswer) -> None:  # noqa: B027 (most make no calls that can be seen)
        """Call `on_answer` with each model answer from now on, if the framework reveals them."""

    def recall(self, answer: Json) -> None:  # noqa: B027
        """Reuse a stored answer of an interrupted run for the same call, once."""

    def use(self, gate: Gate) -> None:  # noqa: B027 (a driver that makes no calls that can be seen)
        """Let all calls of tools and models from now on pass `gate`, as far as the framework reveals them."""

    def makes_calls_of(self, author: str) -> bool:
        """Return whether the framework makes the calls that an author's steps show, so that it reveals all of them."""
        return False

    def spans(self) -> Optional[Json]:
        """Return the spans since the last call (`spans.Trace.take`), or None if unknown."""
        return None

    async def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Release the agent's resources. Exceptions are passed on."""
