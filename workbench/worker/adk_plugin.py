"""A plugin that records the agents, model calls and tool calls of a conversation as spans, and its requests and costs.

It is a plugin because ADK passes its plugins on to the runners of agents that are used as tools. It changes nothing but
the retries of model calls. Its own errors are noted in the trace, never raised. ADK's own recorder puts a key into the
session's state at each model call, where the agent's templates and callbacks can see it. This one changes no state.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from .faults import sentence
from .jsonable import digest, dumps, simplified
from .spans import Contents, Span, Trace, Usage, is_other_model, plain_text, usage_of

FROZEN = "answered from the recording"
_STORED = ("system", "tools", "config")
# The retries that ADK's evaluation adds to model calls without their own retries. Built once, because that takes
# as long as everything else that this plugin does in a turn.
_RETRIES = types.HttpRetryOptions(
    attempts=7, initial_delay=5.0, max_delay=120, exp_base=2.0, http_status_codes=[408, 429, 500, 502, 503, 504]
)
_RETRYING = types.HttpOptions(retry_options=_RETRIES)


class Sent(NamedTuple):
    """A request that goes to its model.

    `span` is None for an agent without this plugin. `parts` are `{"model", "previous", "contents", "system", "tools",
    "config"}`, digests except for the first two, or None if the request could not be stored.
    """

    span: Span | None
    parts: dict[str, Any] | None
    trace: Trace | None

    @property
    def digest(self) -> str:
        """A digest of the request that is equal in every conversation with the same steps, or "" if not known."""
        if self.parts is None or self.trace is None:
            return ""
        known = [self.parts["model"], self.parts["previous"], *map(self.parts.get, _STORED), *self.parts["contents"]]
        return digest(dumps([piece and self.trace.plain(piece) for piece in known]))

    @property
    def plain(self) -> dict[str, Any]:
        """The model and the digests of the other parts without generated IDs, or {} if not known."""
        if self.parts is None or self.trace is None:
            return {}
        parts, plain = self.parts, self.trace.plain
        known = {name: plain(parts[name]) for name in _STORED if name in parts}
        return {"model": parts["model"], **known, "contents": [plain(content) for content in parts["contents"]]}


NOT_SENT = Sent(None, None, None)


def _quiet(hook: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Return the hook with its exceptions collected in `troubles`: errors of the trace must not stop the agent."""

    @functools.wraps(hook)
    async def quiet(self: Recorder, **given: Any) -> None:
        try:
            await hook(self, **given)
        except Exception as error:
            self.troubles.add(f"{hook.__name__.lstrip('_')}: {type(error).__name__}: {error}")

    return quiet


class Recorder(BasePlugin):  # type: ignore[misc]
    """A plugin that records spans, requests and usage.

    It runs after the app's own plugins, so it gets the requests that are really sent. ADK waits for each hook of each
    plugin, so one plugin does everything.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__(name="agent_workbench")
        self.trace = trace
        self.troubles: set[str] = set()
        self.on_request: Callable[[Any, Any], None] | None = None
        """A receiver of each request before it is sent, with the callback's context as first argument."""
        self._contents = Contents(trace)
        self._agents: dict[Any, list[Span]] = {}
        """The open spans of (invocation, agent, branch)."""
        self._models: dict[Any, Span] = {}
        """The newest model call of (invocation, agent, branch)."""
        self._requests: dict[Span, Any] = {}
        """The requests of calls that are not answered yet."""
        self._tools: dict[Any, Span] = {}
        """The tool calls whose event has not arrived yet."""
        self._unclaimed: dict[Any, list[Span]] = {}
        """Answered model calls whose event has not arrived yet."""
        self._inner_calls: list[dict[str, Any]] = []
        """The calls of this turn inside agents that are used as tools."""
        self.askers: set[str] = set()
        """Names of the agents that asked a model. ADK makes the calls in the answers of their models."""
        self.usage = Usage()
        """The usage of all model calls so far, including those of agents used as tools."""
        self._open: dict[tuple[str, str], Any] = {}
        """The newest unanswered request of each (invocation, agent)."""
        self._answered: dict[str, dict[str, Any]] = {}
        """Invocation → agent → its first answered request."""
        self._others: dict[str, list[str]] = {}
        """Invocation → remarks about replies from other models than requested."""

    @_quiet
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Open a span for the agent."""
        key = _key(callback_context)
        span = self.trace.open("agent", agent.name)
        span.facts["type"] = type(agent).__name__
        self._agents.setdefault(key, []).append(span)

    @_quiet
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Close the agent's span."""
        self._end_agent(_key(callback_context))

    @_quiet
    async def on_agent_error_callback(self, *, agent: Any, callback_context: Any, error: Exception) -> None:
        """Close the agent's span with the error."""
        self._end_agent(_key(callback_context), sentence(error))

    def _end_agent(self, key: Any, error: str = "") -> None:
        opened = self._agents.get(key)
        if opened:
            self.trace.close(opened.pop(), error=error)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any | None:
        """Note the request, and give it the retries of ADK's evaluation if it has none. Return None: it is sent."""
        self.askers.add(callback_context.agent_name)
        self._open[callback_context.invocation_id, callback_context.agent_name] = llm_request
        _retry(llm_request)
        await self._open_model_call(callback_context=callback_context, llm_request=llm_request)
        return None

    @_quiet
    async def _open_model_call(self, *, callback_context: Any, llm_request: Any) -> None:
        """Open the span of a model call, close an unanswered one, and pass the request to `on_request`."""
        key = _key(callback_context)
        self._end_unanswered(key)
        opened = self._agents.get(key)
        span = self.trace.open("model", str(llm_request.model or ""), opened[-1] if opened else None, inside=False)
        span.facts["agent"] = callback_context.agent_name
        self._models[key] = span
        self._requests[span] = llm_request
        if self.on_request is not None:
            self.on_request(callback_context, llm_request)

    def sent(self, request: Any) -> Sent:
        """Return the span and the parts of a request that now goes to its model, or `NOT_SENT` if unknown."""
        try:
            span = next((span for span, known in self._requests.items() if known is request), None)
            if span is not None:
                return self._keep_request(span)
            return NOT_SENT if self.trace.is_full else Sent(None, self._parts(request), self.trace)
        except Exception as error:
            self.troubles.add(f"sent: {type(error).__name__}: {error}")
            return NOT_SENT

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any | None:
        """Count the answer, but not its streamed parts, and close the call's span. Return None: the answer stays."""
        if not getattr(llm_response, "partial", None):
            self._count(callback_context, llm_response)
        await self._close_model_call(callback_context=callback_context, llm_response=llm_response)
        return None

    @_quiet
    async def _close_model_call(self, *, callback_context: Any, llm_response: Any) -> None:
        """Close the span of a model call with its response, or count a streamed part of the response."""
        key = _key(callback_context)
        span = self._models.get(key)
        if span is None:
            return
        self.trace.spend(span, usage_of(llm_response.usage_metadata))
        if getattr(llm_response, "partial", None):
            span.facts["streamed"] = span.facts.get("streamed", 0) + 1
            return
        first = span.is_open
        code, message = llm_response.error_code, getattr(llm_response, "error_message", None)
        self.trace.close(span, error=f"{code}{f': {message}' if message else ''}" if code else "")
        self._keep_request(span)
        span.facts["response"] = self.trace.piece(_dumped(llm_response))
        if first:
            self._unclaimed.setdefault(key, []).append(span)

    @_quiet
    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        """Close the span of a model call with the error."""
        span = self._models.pop(_key(callback_context), None)
        if span is not None:
            self.trace.close(span, error=sentence(error))
            self._keep_request(span)

    def _end_unanswered(self, key: Any) -> None:
        """Close the previous model call, which was answered by a callback or a plugin."""
        span = self._models.pop(key, None)
        if span is not None and span.is_open:
            note = "answered by a callback or a plugin; any answer of the model is unknown"
            self.trace.close(span, note=note)
            self._keep_request(span)
            self._unclaimed.setdefault(key, []).append(span)

    def _keep_request(self, span: Span) -> Sent:
        """Store the request of a model call if there is room. Return the request with its digests."""
        request = self._requests.pop(span, None)
        if request is None or self.trace.is_full:
            return Sent(span, None, self.trace)
        parts = self._parts(request)
        delta: dict[str, Any] = self._contents.delta(span.facts["agent"], span.number, parts["contents"])
        span.facts["request"] = {**delta, **{name: parts[name] for name in _STORED if name in parts}}
        return Sent(span, parts, self.trace)

    def _parts(self, request: Any) -> dict[str, Any]:
        parts: dict[str, Any] = {"model": str(request.model)}
        parts["previous"] = getattr(request, "previous_interaction_id", None)
        parts["contents"] = self._contents.digests(request.contents or [], _dumped)
        for name in _STORED if request.config is not None else ():
            value = _part(request.config, name)
            if value:
                parts[name] = self.trace.piece(value)
        return parts

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

    def other_models(self, invocation_id: str) -> list[str]:
        """Return and forget the remarks about replies of a turn that came from another model than the requested one."""
        return list(dict.fromkeys(self._others.pop(invocation_id, [])))

    def app_details(self, invocation_id: str, authors: list[str]) -> dict[str, Any]:
        """Return ADK's AppDetails of a turn: instructions and tools of each author whose model answered, as in ADK.

        The agents are in the order of `authors`. The requests of the turn are then forgotten.
        """
        requests = self._answered.pop(invocation_id, {})
        details = {name: _details(name, requests[name]) for name in dict.fromkeys(authors) if name in requests}
        return {"agent_details": details}

    @_quiet
    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> None:
        """Open a span for a tool call, and note a call inside an agent that is used as a tool."""
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
        outer = _outer_tool(span)
        if outer is not None:
            made = {"agent": tool_context.agent_name, "name": tool.name, "args": simplified(tool_args)}
            self._inner_calls.append({"call": outer.facts.get("call"), "tool": outer.name, **made})
        if wrapped is not None and getattr(tool, "include_plugins", True) is False:
            # ADK runs that agent without this plugin.
            hidden = {"tool": tool.name, "hidden": True}
            self._inner_calls.append({"call": (outer or span).facts.get("call"), **hidden})

    @_quiet
    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        """Close the span of a tool call with its response."""
        span = self._tools.get(_tool_key(tool_context))
        if span is not None:
            self.trace.close(span)
            span.facts["response"] = self.trace.piece(result)

    @_quiet
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Any
    ) -> None:
        """Close the span of a tool call with the error."""
        span = self._tools.get(_tool_key(tool_context))
        if span is not None:
            self.trace.close(span, error=sentence(error))

    def take_inner_calls(self) -> list[dict[str, Any]]:
        """Return and forget the calls inside agents that are used as tools, in the order in which they began."""
        taken, self._inner_calls = self._inner_calls, []
        return taken

    def mark_frozen(self, context: Any) -> None:
        """Mark the tool call of a context as answered from a recording."""
        span = self._tools.get(_tool_key(context))
        if span is not None:
            span.facts.update(frozen=True, note=FROZEN)

    def link(self, event: Any, number: int | None) -> None:
        """Add the number of an event (None: not recorded) to the spans that produced the event."""
        try:
            self._link(event, number)
        except Exception as error:
            self.troubles.add(f"link: {type(error).__name__}: {error}")

    def _link(self, event: Any, number: int | None) -> None:
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

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Record everything inside as one turn."""
        self.trace.begin_turn()
        try:
            yield
        except BaseException as error:
            self._end_turn(sentence(error))
            raise
        self._end_turn("")

    def _end_turn(self, error: str) -> None:
        """End the turn and everything still open in it."""
        try:
            for key in tuple(self._models):
                self._end_unanswered(key)
            self.trace.end_turn(error, "; ".join(sorted(self.troubles)))
        except Exception:
            # The turn itself has its answer, so the error does not matter.
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


def _outer_tool(span: Span) -> Span | None:
    """Return the outermost tool call around a span, or None if there is none."""
    outer, above = None, span.parent
    while above is not None:
        outer = above if above.kind == "tool" else outer
        above = above.parent
    return outer


def part_text(request: Any, name: str, index: int) -> str:
    """Return a part of a request as JSON text without generated IDs, or "". `index` selects one of the `contents`."""
    try:
        contents = request.contents or []
        if name == "contents":
            value = _dumped(contents[index]) if index < len(contents) else None
        else:
            value = None if request.config is None else _part(request.config, name)
        return plain_text(dumps(value)) if value else ""
    except Exception:
        # The miss itself is more important.
        return ""


def _part(config: Any, name: str) -> Any:
    """Return one part of a request's config as data: `system`, `tools`, or all other options but `http_options`."""
    if name == "system":
        return _dumped(getattr(config, "system_instruction", None))
    if name == "tools":
        return [_dumped(tool) for tool in getattr(config, "tools", None) or []]
    # Not `http_options`, because headers may contain keys.
    return config.model_dump(exclude_none=True, exclude={"system_instruction", "tools", "http_options"})


def _dumped(value: Any) -> Any:
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def _details(name: str, request: Any) -> dict[str, Any]:
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
