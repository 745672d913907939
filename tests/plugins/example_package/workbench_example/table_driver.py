"""Agents that are tables: `root_agent = {"hello": "Hello!"}` answers from the table."""

from collections.abc import Iterator
from typing import Any


def recognise(found: Any) -> bool:
    """Return whether the `root_agent` of an `agent.py` is an agent of this kind."""
    return isinstance(found, dict)


def answer(agent: Any, message: str, session: Any) -> Iterator[Any]:
    """Answer a message. Yield the same items as agents in plain Python."""
    known = message in agent
    yield {"tool_call": {"name": "look_up", "args": {"key": message}}}
    yield {"tool_response": {"name": "look_up", "response": {"known": known}}}
    yield agent[message] if known else "I do not know."
