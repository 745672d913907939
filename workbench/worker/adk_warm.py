"""Dummy cases, which trigger google-adk's lazy imports and fill its caches before the first fork."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from .case import Case
from .driver import Loaded
from .frames import Channel, SocketWire

_SPEC = {
    "eval_id": "warm_up",
    "session_input": {"app_name": "warm_up", "user_id": "nobody", "state": {"a": 1}},
    "calls": {"record": True, "replay": None},
    "answers": True,
}
_MESSAGE = {"role": "user", "parts": [{"text": "1 + 2?"}]}


class _Model(BaseLlm):  # type: ignore[misc]
    """A model that calls the tool, then answers."""

    model: str = "warm-up"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        """Yield a tool call, or the answer if the tool was called."""
        called = any(part.function_response for content in llm_request.contents for part in content.parts or [])
        call = types.FunctionCall(name="add", args={"one": 1, "other": 2})
        part = types.Part(text="3") if called else types.Part(function_call=call)
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


def _add(one: int, other: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": one + other}


def run_dummy_cases(count: int) -> None:
    """Run `count` cases of one turn with a tool call, each in its own event loop. Raise RuntimeError if one fails."""
    _add.__name__ = "add"
    loaded = Loaded("warm_up", "adk", agent=LlmAgent(name="warm_up", model=_Model(), instruction="Add.", tools=[_add]))
    for _ in range(count):
        _run_case(loaded)


def _run_case(loaded: Loaded) -> None:
    """Run a case from the first message to the last, exactly like a forked case. Raise RuntimeError if it fails."""
    own_end, end_of_case = socket.socketpair()
    with own_end:
        channel = Channel(own_end)
        channel.send({"op": "turn", "content": _MESSAGE})
        channel.send({"op": "end"})
        try:
            asyncio.run(Case(SocketWire(end_of_case), _SPEC, loaded, shared=False).run())
        finally:
            # A case sets a timer for its teardown, whose signal would end this process.
            signal.setitimer(signal.ITIMER_REAL, 0)
        while channel.fill():
            continue
        for message in channel.pending:
            if message["event"] == "Failed":
                raise RuntimeError(message["error"]["message"])
