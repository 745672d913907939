"""A plugin that records the model calls of an ADK agent: requests and costs.

ADK's own recorder puts a key into the session's state at each model call, where the agent's templates and callbacks can
see it. This one changes no state.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

from google.genai import types  # type: ignore[import-not-found,unused-ignore]

from .adk_trace import Tracer
from .spans import Trace
from .usage import Usage, is_other_model, usage_of

# The retries that ADK's evaluation adds to model calls without their own retries. Built once, because that takes
# as long as everything else we do in a turn.
_RETRIES = types.HttpRetryOptions(
    attempts=7, initial_delay=5.0, max_delay=120, exp_base=2.0, http_status_codes=[408, 429, 500, 502, 503, 504]
)
_RETRYING = types.HttpOptions(retry_options=_RETRIES)


class Recorder(Tracer):
    """A plugin that records requests and usage.

    It runs after the app's own plugins, so it sees the requests that are really sent. It is also the tracer: ADK waits
    for each hook of each plugin, so one plugin does both.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.askers: Set[str] = set()
        """Names of the agents that asked a model. ADK makes the calls in its answers."""
        self.usage = Usage()
        """All model calls so far, including those of agents used as tools."""
        self._open: Dict[Tuple[str, str], Any] = {}
        """The newest unanswered request of each (invocation, agent)."""
        self._answered: Dict[str, Dict[str, Any]] = {}
        """Invocation → agent → its first answered request."""
        self._others: Dict[str, List[str]] = {}
        """Invocation → remarks about replies from other models than requested."""

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Optional[Any]:
        """Store the request, and set the same retries as ADK's evaluation."""
        self.askers.add(callback_context.agent_name)
        self._open[callback_context.invocation_id, callback_context.agent_name] = llm_request
        _retry(llm_request)
        await super().before_model_callback(callback_context=callback_context, llm_request=llm_request)
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Optional[Any]:
        """Count the answer, but not the streamed pieces before it.

        As in ADK, an unanswered request says nothing about the agent.
        """
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
            asked, answered = str(request.model or ""), str(getattr(llm_response, "model_version", None) or "")
            if is_other_model(asked, answered):
                self._others.setdefault(invocation, []).append(f"{agent} asked {asked}, but {answered} answered")
        self.usage = self.usage.plus(usage_of(llm_response.usage_metadata))

    def other_models(self, invocation_id: str) -> List[str]:
        """Return remarks about replies of a turn that came from other models than requested."""
        return list(dict.fromkeys(self._others.pop(invocation_id, [])))

    def app_details(self, invocation_id: str, authors: List[str]) -> Dict[str, Any]:
        """Return ADK's AppDetails of a turn: instructions and tools of each author that called a model.

        They are in the order of `authors`.
        """
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
        # A copy, because ADK adds headers to it.
        config.http_options = _RETRYING.model_copy()
    elif config.http_options.retry_options is None:
        config.http_options = config.http_options.model_copy(update={"retry_options": _RETRIES})
