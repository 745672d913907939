"""A dummy turn through google-adk: what it imports and builds late is then there before the first fork."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncGenerator, Dict

from google.adk.agents.llm_agent import LlmAgent  # type: ignore[import-not-found,unused-ignore]
from google.adk.models.base_llm import BaseLlm  # type: ignore[import-not-found,unused-ignore]
from google.adk.models.llm_response import LlmResponse  # type: ignore[import-not-found,unused-ignore]
from google.genai import types  # type: ignore[import-not-found,unused-ignore]

from .adk_runner import AdkConversation
from .loading import Loaded


class _Model(BaseLlm):  # type: ignore[misc]
    """Calls the tool, then answers."""

    model: str = "warm-up"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        called = any(part.function_response for content in llm_request.contents for part in content.parts or [])
        call = types.FunctionCall(name="add", args={"one": 1, "other": 2})
        part = types.Part(text="3") if called else types.Part(function_call=call)
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


_SESSION = {"app_name": "warm_up", "user_id": "nobody", "state": {"a": 1}}


def _add(one: int, other: int) -> Dict[str, int]:
    """Adds two numbers."""
    return {"sum": one + other}


def run_dummy_turn() -> None:
    """Runs one turn with a tool call in an event loop of its own, and closes that."""
    _add.__name__ = "add"
    agent = LlmAgent(name="warm_up", model=_Model(), instruction="Add.", tools=[_add])
    asyncio.run(_converse(Loaded("warm_up", "adk", agent=agent)))


async def _converse(loaded: Loaded) -> None:
    conversation = await AdkConversation.open(loaded, _SESSION, threads=False)
    await conversation.turn({"role": "user", "parts": [{"text": "1 + 2?"}]}, lambda shown: None)
    await conversation.close()
