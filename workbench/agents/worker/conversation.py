"""What a case needs of an agent, whatever framework it is made with."""

from __future__ import annotations

import abc
import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Type

from . import loading
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

    @classmethod
    @abc.abstractmethod
    async def open(cls, loaded: loading.Loaded, session_input: Optional[Json], *, threads: bool) -> Conversation:
        """Starts a session with the state, user and id of `session_input`; without one, with ADK's defaults. `threads`:
        synchronous agents are to run in threads, so that cases sharing a process do not wait for each other."""

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


def conversation_type(framework: str) -> Type[Conversation]:
    """The kind of conversation for agents of a framework; its module is imported here, as ADK may not be there."""
    if framework == "adk":
        from .adk_runner import AdkConversation

        return AdkConversation
    from .python_runner import PythonConversation

    return PythonConversation


class Opened:
    """A conversation together with what its agent's factory wants closed after it."""

    def __init__(self, conversation: Conversation, stack: Any, *, closing: bool) -> None:
        self.conversation = conversation
        self._stack = stack
        self._closing = closing

    @property
    def holds_something(self) -> bool:
        """Is there anything for `close` to do?"""
        return self._stack is not None or self._closing

    async def close(self) -> List[str]:
        """Closes what belongs to this conversation alone; what could not be closed, in words."""
        warnings = []
        if self._closing:
            warnings += await _closed("closing the agent's toolsets and plugins", self.conversation.close)
        if self._stack is not None:
            warnings += await _closed("closing the agent's exit stack", self._stack.aclose)
        return warnings


async def open_conversation(loaded: loading.Loaded, session_input: Optional[Json], *, shared: bool) -> Opened:
    """Starts a session; `get_agent_async` is awaited here, in the event loop of the case.

    `shared`: other cases use the same process, and the same agent object unless a factory made it for this one; its
    toolsets then stay open.
    """
    stack, closing = None, not shared
    if loaded.factory is not None:
        made = loaded.factory()
        made = await made if inspect.isawaitable(made) else made
        made, stack = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        loaded = loading.recognised(made, loaded.name, "what get_agent_async gives")
        closing = True
    conversation = await conversation_type(loaded.framework).open(loaded, session_input, threads=shared)
    return Opened(conversation, stack if hasattr(stack, "aclose") else None, closing=closing)


async def _closed(what: str, close: Callable[[], Any]) -> List[str]:
    try:
        await close()
    except Exception as error:
        return [f"{what} raised {type(error).__name__}: {error}"]
    return []
