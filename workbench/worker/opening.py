"""Conversations as a case uses them: opened by the agent's driver, closed with their factory's resources."""

from __future__ import annotations

import inspect
from typing import Any, Callable, List, Optional

from .conversation import Conversation, Json
from .driver import Loaded
from .drivers import driver_of, recognised


class Opened:
    """A conversation together with the exit stack of the agent's factory."""

    def __init__(self, conversation: Conversation, stack: Any, *, closing: bool) -> None:
        self.conversation = conversation
        self._stack = stack
        self._closing = closing

    @property
    def needs_closing(self) -> bool:
        """Whether `close` has anything to do."""
        return self._stack is not None or self._closing

    async def close(self) -> List[str]:
        """Close what belongs to this conversation alone. Return failures as texts."""
        warnings = []
        if self._closing:
            warnings += await _closed("closing the agent's toolsets and plugins", self.conversation.close)
        if self._stack is not None:
            warnings += await _closed("closing the agent's exit stack", self._stack.aclose)
        return warnings


async def open_conversation(loaded: Loaded, session_input: Optional[Json], *, shared: bool) -> Opened:
    """Start a session. `get_agent_async` is awaited here, in the event loop of the case.

    With `shared`, other cases use the same process and, unless a factory made it for this case, the same agent object.
    Its toolsets then stay open.
    """
    stack, closing = None, not shared
    if loaded.factory is not None:
        made = loaded.factory()
        made = await made if inspect.isawaitable(made) else made
        made, stack = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        loaded = recognised(made, loaded.name, "the result of get_agent_async")
        closing = True
    conversation = await driver_of(loaded).open(loaded, session_input, threads=shared)
    return Opened(conversation, stack if hasattr(stack, "aclose") else None, closing=closing)


async def _closed(what: str, close: Callable[[], Any]) -> List[str]:
    try:
        await close()
    except Exception as error:
        return [f"{what} raised {type(error).__name__}: {error}"]
    return []
