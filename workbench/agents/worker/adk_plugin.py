"""Listens to the model calls of an ADK agent: what was asked, and what it cost.

ADK's own recorder leaves a key in the session's state at each model call, where the agent's templates and callbacks
can see it; this one leaves nothing.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from google.genai import types  # type: ignore[import-not-found,unused-ignore]

from .adk_trace import Tracer
from .spans import Trace
from .usage import Usage, usage_of

# What ADK's evaluation adds to model calls that say nothing of retries themselves. Made once: it costs as much as the
# rest of what we do in a turn.
_RETRIES = types.HttpRetryOptions(
    attempts=7, initial_delay=5.0, max_delay=120, exp_base=2.0, http_status_codes=[408, 429, 500, 502, 503, 504]
)
_RETRYING = types.HttpOptions(retry_options=_RETRIES)


class Recorder(Tracer):
    """Comes after the app's own plugins, so it sees the requests that are really sent. A tracer besides: ADK waits for
    each hook of each plugin, so there is one of ours."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.usage = Usage()
        """All model calls so far, those of agents used as tools included."""
        self._open: Dict[Tuple[str, str], Any] = {}
        """The newest request of each (invocation, agent) that was not answered yet."""
        self._answered: Dict[str, Dict[str, Any]] = {}
        """Invocation → agent → its first request that was answered."""

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Optional[Any]:
        """Remembers the request, and has it retried as ADK's evaluation has."""
        self._open[callback_context.invocation_id, callback_context.agent_name] = llm_request
        _retry(llm_request)
        await super().before_model_callback(callback_context=callback_context, llm_request=llm_request)
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Optional[Any]:
        """Counts the answer, but not the pieces that come before it where it is streamed. A request that is never
        answered tells nothing about the agent, as in ADK."""
        if not getattr(llm_response, "partial", None):
            self._count(callback_context, llm_response)
        await super().after_model_callback(callback_context=callback_context, llm_response=llm_response)
        return None

    def _count(self, callback_context: Any, llm_response: Any) -> None:
        invocation, agent = callback_context.invocation_id, callback_context.agent_name
        request = self._open.pop((invocation, agent), None)
        if request is not None:
            self._answered.setdefault(invocation, {}).setdefault(agent, request)
            self.usage = self.usage.plus(Usage(1))
        self.usage = self.usage.plus(usage_of(llm_response.usage_metadata))

    def app_details(self, invocation_id: str, authors: List[str]) -> Dict[str, Any]:
        """ADK's AppDetails of a turn: instructions and tools of each of `authors` that asked a model, in that order."""
        requests = self._answered.pop(invocation_id, {})
        details = {name: _details(name, requests[name]) for name in dict.fromkeys(authors) if name in requests}
        return {"agent_details": details}


def _details(name: str, request: Any) -> Dict[str, Any]:
    config = request.config
    return {
        "name": name,
        "instructions": _instructions(getattr(config, "system_instruction", None)),
        "tool_declarations": [_tool(tool) for tool in getattr(config, "tools", None) or []],
    }


def _instructions(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    parts = getattr(value, "parts", None) or (value if isinstance(value, list) else [value])
    return "\n".join(part if isinstance(part, str) else getattr(part, "text", None) or "" for part in parts)


def _tool(tool: Any) -> Any:
    if hasattr(tool, "model_dump"):
        return tool.model_dump(exclude_none=True)
    return {"function_declarations": [{"name": getattr(tool, "__name__", type(tool).__name__)}]}


def _retry(request: Any) -> None:
    config = request.config
    if config is None:
        return
    if config.http_options is None:
        # A copy: ADK goes on to put headers into it.
        config.http_options = _RETRYING.model_copy()
    elif config.http_options.retry_options is None:
        config.http_options = config.http_options.model_copy(update={"retry_options": _RETRIES})
