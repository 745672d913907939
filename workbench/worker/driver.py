"""The interface of an agent kind: how to recognise its agents and open a conversation with one."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Optional

from .conversation import Conversation, Json
from .faults import Fault


@dataclass(frozen=True)
class Loaded:
    """A loaded agent.

    Exactly one of `agent` (ADK's, a callable or a plugin's) and `factory` (`get_agent_async`, to be awaited in each
    case's own event loop) is set. `app` is ADK's App around `agent`.
    """

    name: str
    framework: str
    """The name of the driver: `adk`, `python` or a plugin's."""
    agent: Any = None
    app: Any = None
    factory: Any = None
    artifacts: Any = None
    """ADK's artifact service, if one exists already. Otherwise each conversation gets its own."""


class UnusableError(Exception):
    """The interpreter lacks what agents of this kind need."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault["message"])
        self.fault = fault


class Driver(abc.ABC):
    """The driver of one agent kind."""

    name: str

    @abc.abstractmethod
    def recognise(self, found: Any, name: str) -> Optional[Loaded]:
        """Return the agent `name` that `found` is, or None if it is not of this kind.

        Imports no framework: a framework that was not imported cannot have made the object.
        """

    @abc.abstractmethod
    async def open(self, loaded: Loaded, session_input: Optional[Json], *, threads: bool) -> Conversation:
        """Start a session with the state, user, ID and earlier `events` of `session_input`, or with ADK's defaults.

        With `threads`, synchronous agents run in threads, so that cases sharing a process do not wait for each other.
        """

    def prepare(self, loaded: Loaded) -> None:  # noqa: B027 (most need nothing)
        """Do once what each case would otherwise repeat.

        Raises:
            UnusableError: the interpreter lacks what such agents need.
        """

    def version(self) -> Optional[str]:
        """Return the version of the framework, or None."""
        return None
