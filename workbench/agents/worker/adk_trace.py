"""Watches what an ADK agent does: its agents, model calls and tool calls as spans, those of agents that are used as
tools included.

A plugin, because ADK hands its plugins on to the runners of such inner agents. It changes nothing, and what goes wrong
in it is nobody's fault but ours: it is noted, never raised.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Awaitable, Callable, Dict, Iterator, Optional, Tuple

from google.adk.plugins.base_plugin import BasePlugin  # type: ignore[import-not-found,unused-ignore]

from .faults import sentence
from .spans import Contents, Span, Trace
from .usage import usage_of

_SHORT_CUT = "answered by a callback or a plugin: what the model said, if it was asked, is not known"


def _quiet(hook: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """A hook that never raises: an agent runs on whatever happens to its trace."""

    @functools.wraps(hook)
    async def quiet(self: Tracer, **given: Any) -> None:
        try:
            await hook(self, **given)
        except Exception as error:
            self.troubles.add(f"{hook.__name__}: {type(error).__name__}: {error}")

    return quiet


class Tracer(BasePlugin):  # type: ignore[misc]
    """Stands behind all other plugins, so it sees the requests that are really sent."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(name="agent_workbench")
        self.trace = trace
        self.troubles: set[str] = set()
        self.about_to_ask: Optional[Callable[[Any, Any], None]] = None
        """Called with a callback's context and the request that it is about."""
        self._contents = Contents(trace)
        self._agents: Dict[Any, list[Span]] = {}
        """The open spans of (invocation, agent, branch)."""
        self._models: Dict[Any, Span] = {}
        """The newest model call of the same."""
        self._requests: Dict[Span, Any] = {}
        """What was asked, of calls that are not answered yet."""
        self._tools: Dict[Any, Span] = {}
        self._unclaimed: Dict[Any, list[Span]] = {}
        """Model calls that were answered, whose event has not come yet."""

    # Agents

    @_quiet
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        key = _key(callback_context)
        span = self.trace.open("agent", agent.name)
        span.facts["type"] = type(agent).__name__
        self._agents.setdefault(key, []).append(span)

    @_quiet
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        self._end_agent(_key(callback_context))

    @_quiet
    async def on_agent_error_callback(self, *, agent: Any, callback_context: Any, error: Exception) -> None:
        self._end_agent(_key(callback_context), sentence(error))

    def _end_agent(self, key: Any, error: str = "") -> None:
        opened = self._agents.get(key)
        if opened:
            self.trace.close(opened.pop(), error=error)

    # Model calls

    @_quiet
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        key = _key(callback_context)
        self._end_unanswered(key)
        opened = self._agents.get(key)
        span = self.trace.open("model", str(llm_request.model or ""), opened[-1] if opened else None, inside=False)
        span.facts["agent"] = callback_context.agent_name
        self._models[key] = span
        self._requests[span] = llm_request
        if self.about_to_ask is not None:
            self.about_to_ask(callback_context, llm_request)

    def sent(self, request: Any) -> Tuple[Optional[Span], str]:
        """A request goes to its model now: its span, and a digest of all of it, "" where it is too much to be kept."""
        try:
            span = next(span for span, asked in self._requests.items() if asked is request)
            return span, self._keep_request(span)
        except Exception as error:
            self.troubles.add(f"sent: {type(error).__name__}: {error}")
            return None, ""

    @_quiet
    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        key = _key(callback_context)
        span = self._models.get(key)
        if span is None:
            return
        usage = usage_of(llm_response.usage_metadata)
        self.trace.spend(span, usage)
        if getattr(llm_response, "partial", None):
            span.facts["streamed"] = span.facts.get("streamed", 0) + 1
            return
        first = span.is_open
        code, said = llm_response.error_code, getattr(llm_response, "error_message", None)
        self.trace.close(span, error=f"{code}{f': {said}' if said else ''}" if code else "")
        self._keep_request(span)
        span.facts["response"] = self.trace.piece(_dumped(llm_response))
        if first:
            self._unclaimed.setdefault(key, []).append(span)

    @_quiet
    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        span = self._models.pop(_key(callback_context), None)
        if span is not None:
            self.trace.close(span, error=sentence(error))
            self._keep_request(span)

    def _end_unanswered(self, key: Any) -> None:
        """The call before was answered by somebody else."""
        span = self._models.pop(key, None)
        if span is not None and span.is_open:
            self.trace.close(span, note=_SHORT_CUT)
            self._keep_request(span)
            self._unclaimed.setdefault(key, []).append(span)

    def _keep_request(self, span: Span) -> str:
        """A digest of what was asked, "" where that is not kept (any more)."""
        request = self._requests.pop(span, None)
        if request is None or self.trace.is_full:
            return ""
        config = request.config
        contents = self._contents.names(request.contents or [], _dumped)
        said: Dict[str, Any] = self._contents.told(span.facts["agent"], span.number, contents)
        parts: Dict[str, str] = {}
        if config is not None:
            instruction = getattr(config, "system_instruction", None)
            if instruction:
                parts["system"] = self.trace.piece(_dumped(instruction))
            tools = [_dumped(tool) for tool in getattr(config, "tools", None) or []]
            if tools:
                parts["tools"] = self.trace.piece(tools)
            # Not `http_options`: headers can hold keys.
            rest = config.model_dump(exclude_none=True, exclude={"system_instruction", "tools", "http_options"})
            if rest:
                parts["config"] = self.trace.piece(rest)
        span.facts["request"] = {**said, **parts}
        before = [str(request.model), getattr(request, "previous_interaction_id", None)]
        return self.trace.together([*before, *map(parts.get, ("system", "tools", "config")), *contents])

    # Tool calls

    @_quiet
    async def before_tool_callback(self, *, tool: Any, tool_args: Dict[str, Any], tool_context: Any) -> None:
        opened = self._agents.get(_key(tool_context))
        span = self.trace.open("tool", tool.name, opened[-1] if opened else None)
        call = tool_context.function_call_id
        if call:
            span.facts["call"] = call
        span.facts["agent"] = tool_context.agent_name
        wrapped = getattr(tool, "agent", None)
        if wrapped is not None and getattr(wrapped, "name", None):
            span.facts["runs"] = wrapped.name
        span.facts["args"] = self.trace.piece(tool_args)
        self._tools[_tool_key(tool_context)] = span

    @_quiet
    async def after_tool_callback(
        self, *, tool: Any, tool_args: Dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        span = self._tools.get(_tool_key(tool_context))
        if span is not None:
            self.trace.close(span)
            span.facts["response"] = self.trace.piece(result)

    @_quiet
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Dict[str, Any], tool_context: Any, error: Any
    ) -> None:
        span = self._tools.get(_tool_key(tool_context))
        if span is not None:
            self.trace.close(span, error=sentence(error))

    # Events

    def link(self, event: Any, number: Optional[int]) -> None:
        """An event of the conversation came, the recorded one of that number (None: it is not recorded). The spans
        that it came from are told so."""
        try:
            self._link(event, number)
        except Exception as error:
            self.troubles.add(f"link: {type(error).__name__}: {error}")

    def _link(self, event: Any, number: Optional[int]) -> None:
        if getattr(event, "partial", None):
            return
        responses = event.get_function_responses()
        for response in responses:
            span = self._tools.pop((event.invocation_id, response.id), None)
            if span is not None and number is not None:
                span.facts.setdefault("events", []).append(number)
        if responses:
            return
        key = (event.invocation_id, event.author, getattr(event, "branch", None))
        unanswered = self._models.get(key)
        if unanswered is not None and unanswered.is_open and event.content is not None:
            self._end_unanswered(key)
        claimed = self._unclaimed.get(key)
        if claimed and (event.content is not None or getattr(event, "error_code", None)):
            span = claimed.pop(0)
            if number is not None:
                span.facts.setdefault("events", []).append(number)

    # Turns

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Everything inside is one turn."""
        self.trace.begin_turn()
        try:
            yield
        except BaseException as error:
            self._end_turn(sentence(error))
            raise
        self._end_turn("")

    def _end_turn(self, error: str) -> None:
        """What is still open ends with the turn."""
        try:
            for key in tuple(self._models):
                self._end_unanswered(key)
            self.trace.end_turn(error, "; ".join(sorted(self.troubles)))
        except Exception:
            # Whatever it was, the turn itself has its answer.
            return
        finally:
            self._agents.clear()
            self._tools.clear()
            self._unclaimed.clear()
            self._requests.clear()


def _key(context: Any) -> Any:
    inner = getattr(context, "_invocation_context", None)
    return context.invocation_id, context.agent_name, getattr(inner, "branch", None)


def _tool_key(context: Any) -> Any:
    return context.invocation_id, context.function_call_id or id(context)


def _dumped(value: Any) -> Any:
    """A value of google-genai's as data; `jsonable` knows what to do with the rest."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value
