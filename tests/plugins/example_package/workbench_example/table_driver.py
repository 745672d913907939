"""Agents that are tables: `root_agent = {"hello": "Hello!"}` answers from the table."""

from collections.abc import Iterator
from typing import Any


def recognise(found: Any) -> bool:
    """Say whether what an `agent.py` calls `root_agent` is an agent of this kind."""
    return isinstance(found, dict)


def answer(agent: Any, message: str, session: Any) -> Iterator[Any]:
    """Answer one message; the items are those of plain-Python agents."""
    known = message in agent
    yield {"tool_call": {"name": "look_up", "args": {"key": message}}}
    yield {"tool_response": {"name": "look_up", "response": {"known": known}}}
    yield agent[message] if known else "I do not know."
