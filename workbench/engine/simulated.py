"""Simulated users in the scorer: the operations of its event loop that hold their conversations."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from workbench.judge.desk import Desk, JudgeEnvironment

HANDLERS: Mapping[
    str,
    Callable[[dict[str, Any], Callable[[dict[str, Any]], None], Desk, Mapping[str, JudgeEnvironment]], Awaitable[None]],
] = {}
"""Operation → what deals with its frame (`workbench.engine.asking.Handler`)."""
