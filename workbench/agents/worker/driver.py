"""What every kind of agents has: how one is recognised, and how a conversation with it is opened."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Optional

from .conversation import Conversation, Json
from .faults import Fault


@dataclass(frozen=True)
class Loaded:
    """What defines the agent. Exactly one of `agent` (ADK's, a callable or a plugin's) and `factory`
    (`get_agent_async`, to be awaited in each case's own event loop) is set; `app` is ADK's App around `agent`."""

    name: str
    framework: str
    """The name of the driver: `adk`, `python` or a plugin's."""
    agent: Any = None
    app: Any = None
    factory: Any = None
    artifacts: Any = None
    """ADK's artifact service, where somebody has one ready; else each conversation gets its own."""


class UnusableError(Exception):
    """The interpreter lacks what agents of a kind need."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault["message"])
        self.fault = fault


class Driver(abc.ABC):
    """One kind of agents."""

    name: str

    @abc.abstractmethod
    def recognise(self, found: Any, name: str) -> Optional[Loaded]:
        """Return the agent `name` that `found` is, or None if it is not of this kind. Imports no framework: what was
        not imported cannot have made it."""

    @abc.abstractmethod
    async def open(self, loaded: Loaded, session_input: Optional[Json], *, threads: bool) -> Conversation:
        """Start a session with the state, user and id of `session_input`; without one, with ADK's defaults. `threads`:
        synchronous agents run in threads, so that cases sharing a process do not wait for each other."""

    def prepare(self, loaded: Loaded) -> None:  # noqa: B027 (most need nothing)
        """Do once what each case would have to do again.

        Raises:
            UnusableError: the interpreter lacks what such agents need.
        """

    def version(self) -> Optional[str]:
        """Return the version of the framework; None if there is none."""
        return None
