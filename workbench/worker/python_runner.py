"""A conversation with a plain-Python agent: calls of `root_agent(message, session)`, and the items that they yield.

`docs/python-agents.md` describes the protocol for users.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import functools
import inspect
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from .driver import Conversation, Driver, FinishedTurn, Json, Loaded, OnStep, OnText, state_of, text_of, turns_of
from .faults import sentence, wrong_type
from .gate import Gate
from .jsonable import dumps
from .python_tools import Tools
from .spans import Span, Trace, Usage

_ITEM = "an agent yields str, or a dict with one of text, tool_call, tool_response, usage"
_END = object()


class Message(str):
    """The text of the user's message, as a str. `content` is the complete message as ADK's Content."""

    content: Json

    @classmethod
    def from_content(cls, content: Json) -> Message:
        """Return the message for a Content."""
        message = cls(text_of(content))
        message.content = content
        return message


class Session:
    """Data that lasts for the conversation.

    The agent may change `state`. `history` has a dict for each past turn, with `user` and `answer` as text and
    `invocation` as ADK records it. The first items are the turns of `session_input.events`.
    """

    def __init__(self, given: Json, agent: str) -> None:
        self.id: str = given.get("session_id") or str(uuid.uuid4())
        self.app_name: str = given.get("app_name") or agent
        self.user_id: str = given.get("user_id") or "test_user_id"
        earlier = given.get("events") or []
        self.state: dict[str, Any] = {**(given.get("state") or {}), **state_of(earlier)}
        self.history: list[dict[str, Any]] = list(turns_of(earlier, agent))
        self._tools = Tools(agent, self)

    def tool(self, name: str, args: dict[str, Any], call: Callable[..., Any]) -> Any:
        """Return `call(**args)`, recorded as a call of the tool `name`. A frozen run answers from the recording.

        With an async `call`, the result is awaitable.
        """
        return self._tools.call(name, args, call)


class PythonConversation(Conversation):
    """A session with a plain-Python agent, which is called once in each turn."""

    def __init__(self, loaded: Loaded, session_input: Json | None, threads: bool) -> None:
        self._agent = loaded.agent
        self._name = loaded.name
        self._threads = threads
        self._session = Session(session_input or {}, loaded.name)
        self._trace = Trace()
        self._usage = Usage()

    async def state(self) -> Any:
        """Return the session's state."""
        return self._session.state

    def use(self, gate: Gate) -> None:
        """Send the calls of `session.tool` through `gate`."""
        self._session._tools.gate = gate

    def spans(self) -> Json | None:
        """Return the spans since the last call, or None if there are none."""
        return self._trace.take()

    @property
    def usage(self) -> Usage:
        """The usage that the agent reported so far."""
        return self._usage

    async def turn(self, content: Json, show: OnStep, stream: OnText | None = None) -> FinishedTurn | None:
        """Call the agent with one message. Return the turn with its items, or None if it returns or yields none."""
        steps = Steps(self._trace, self._name)
        recorded = _Recorded(self._name, show, steps, stream)
        timestamp, started = time.time(), time.monotonic()
        try:
            with steps.turn():
                await self._run(Message.from_content(copy.deepcopy(content)), recorded.take)  # The agent may change it.
        finally:
            self._usage = self._usage.plus(recorded.usage)
        if recorded.answer is None and not recorded.events:
            return None
        actual: Json = {"invocation_id": str(uuid.uuid4()), "user_content": content}
        if recorded.answer is not None:
            actual["final_response"] = _content("model", {"text": recorded.answer})
            show({"author": self._name, "content": actual["final_response"]})
        actual["intermediate_data"] = {"invocation_events": recorded.events}
        actual["creation_timestamp"] = timestamp
        actual["duration"] = round(time.monotonic() - started, 3)
        answer = recorded.answer or ""
        self._session.history.append({"user": text_of(content), "answer": answer, "invocation": actual})
        return FinishedTurn(actual, "" if recorded.answer is not None else "the agent gave no final answer")

    async def _run(self, message: Message, take: Callable[[Any], None]) -> None:
        """Call the agent, and pass on each item that it returns or yields. Raise TypeError for anything else."""
        given = await self._call(self._agent, message, self._session)
        if inspect.isawaitable(given):
            given = await given
        if hasattr(given, "__aiter__"):
            try:
                async for item in given:
                    take(item)
            finally:
                if hasattr(given, "aclose"):
                    await given.aclose()
        elif isinstance(given, (str, dict)):
            take(given)
        elif hasattr(given, "__iter__"):
            iterator = iter(given)
            while (item := await self._call(next, iterator, _END)) is not _END:
                take(item)
        elif given is not None:
            raise wrong_type(f"{_ITEM}, or returns one of these or a list of them", given)

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if not self._threads or _is_async(function):
            return function(*arguments)
        call = functools.partial(contextvars.copy_context().run, _without_stop, function, *arguments)
        return await asyncio.get_running_loop().run_in_executor(None, call)


class _Recorded:
    """The record of one turn. Steps are shown as soon as they occur."""

    def __init__(self, author: str, show: OnStep, steps: Steps, stream: OnText | None) -> None:
        self._author = author
        self._show = show
        self._steps = steps
        self._stream = stream
        self.answer: str | None = None
        self.events: list[Json] = []
        self.usage = Usage()

    def take(self, item: Any) -> None:
        """Record an item that the agent yielded. Raise TypeError if the item is not part of the protocol."""
        if isinstance(item, dict) and "text" in item and not item.get("author"):
            item = _typed(item["text"], str, "text")
        if isinstance(item, str):
            self.answer = (self.answer or "") + item
            if self._stream is not None:
                self._stream(self._author, item, False)
            return
        if not isinstance(item, dict):
            raise wrong_type(_ITEM, item)
        event: Json = {"author": _typed(item.get("author") or self._author, str, "author"), **self._step(item)}
        # A copy, because the agent may change the item later.
        event = json.loads(dumps(event))
        self._steps.take(event, len(self.events))
        self.events.append(event)
        self._show(event)

    def _step(self, item: Json) -> Json:
        if "text" in item:
            return {"content": _content("model", {"text": _typed(item["text"], str, "text")})}
        if "tool_call" in item or "function_call" in item:
            return {"content": _content("model", {"function_call": _call(item)})}
        if "tool_response" in item or "function_response" in item:
            return {"content": _content("user", {"function_response": _response(item)})}
        if "usage" in item:
            usage, names = _typed(item["usage"], dict, "usage"), ("input_tokens", "output_tokens")
            sent, received = (_typed(usage.get(name, 0), int, f"usage.{name}") for name in names)
            self.usage = self.usage.plus(Usage(1, sent, received))
            return {"usage_metadata": {"prompt_token_count": sent, "candidates_token_count": received}}
        raise wrong_type(_ITEM, item)


def _call(item: Json) -> Json:
    given = _typed(item.get("tool_call", item.get("function_call")), dict, "tool_call")
    call: Json = {"name": _typed(given.get("name"), str, "tool_call.name")}
    call["args"] = _typed(given.get("args") or {}, dict, "tool_call.args")
    return _with_id(call, given)


def _response(item: Json) -> Json:
    given = _typed(item.get("tool_response", item.get("function_response")), dict, "tool_response")
    response = given.get("response")
    # ADK wraps the results of tools the same way.
    answer = response if isinstance(response, dict) else {"result": response}
    return _with_id({"name": _typed(given.get("name"), str, "tool_response.name"), "response": answer}, given)


def _with_id(part: Json, given: Json) -> Json:
    return {**part, "id": str(given["id"])} if given.get("id") is not None else part


def _typed(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise wrong_type(f"{what} must be {kind.__name__}", value)
    return value


def _content(role: str, part: Json) -> Json:
    return {"role": role, "parts": [part]}


def _without_stop(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function`. A StopIteration becomes a RuntimeError, as in a coroutine, because no future can carry it."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise RuntimeError("the agent raised StopIteration") from error


def _is_async(function: Any) -> bool:
    for candidate in (function, getattr(function, "__call__", None)):  # noqa: B004 (an object with an async __call__)
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            return True
    return False


class Steps:
    """The spans of one turn of the agent `name`, as far as its items reveal them.

    A tool call lasts from the item that starts it to the item with its result. A model call is assumed to start after
    the previous item, and ends when its `usage` is yielded.
    """

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name
        self._agent: Span | None = None
        self._calls: list[Span] = []
        self._reached = 0.0

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Record everything inside as one turn."""
        self._trace.begin_turn()
        self._agent = self._trace.open("agent", self._name)
        self._reached = self._agent.start
        error = ""
        try:
            yield
        except BaseException as raised:
            error = sentence(raised)
            raise
        finally:
            self._trace.close(self._agent, error=error)
            self._trace.end_turn(error)

    def take(self, event: dict[str, Any], number: int) -> None:
        """Record an item that became the recorded event of this number."""
        if self._agent is None:
            return
        for part in (event.get("content") or {}).get("parts") or ():
            if "function_call" in part:
                self._begin(part["function_call"], number)
            elif "function_response" in part:
                self._end(part["function_response"], number)
        if "usage_metadata" in event:
            self._model(event["usage_metadata"], number)
        self._reached = self._trace.now()

    def _begin(self, call: dict[str, Any], number: int) -> None:
        span = self._trace.open("tool", call["name"], self._agent, inside=False)
        span.key = call.get("id")
        if span.key is not None:
            span.facts["call"] = span.key
        span.facts.update({"agent": self._name, "args": self._trace.piece(call.get("args")), "events": [number]})
        self._calls.append(span)

    def _end(self, response: dict[str, Any], number: int) -> None:
        """Close the call with the response's ID, or else the oldest one with its name."""
        found = [
            span
            for span in self._calls
            if (span.key == response.get("id") if span.key is not None else span.name == response["name"])
        ]
        if found:
            self._trace.close(found[0])
            self._calls.remove(found[0])
            found[0].facts["response"] = self._trace.piece(response.get("response"))
            found[0].facts["events"].append(number)

    def _model(self, usage: dict[str, Any], number: int) -> None:
        span = self._trace.open("model", "", self._agent, inside=False)
        span.start = self._reached
        tokens = Usage(1, usage.get("prompt_token_count") or 0, usage.get("candidates_token_count") or 0)
        self._trace.spend(span, tokens)
        span.facts.update({"agent": self._name, "events": [number]})
        note = "start assumed at the previous item, because the agent reports only the end of a model call"
        self._trace.close(span, note=note)


class PythonDriver(Driver):
    """The driver for anything callable."""

    name = "python"

    def recognise(self, found: Any, name: str) -> Loaded | None:
        """Return `found` as an agent if it can be called, else None."""
        return Loaded(name, self.name, agent=found) if callable(found) else None

    async def open(self, loaded: Loaded, session_input: Json | None, *, threads: bool) -> Conversation:
        """Start a session with ADK's defaults for missing fields."""
        return PythonConversation(loaded, session_input, threads)


DRIVER = PythonDriver()
