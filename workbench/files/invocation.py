"""Pure functions that read one turn: an ADK invocation, as a dict with snake_case keys.

The rules are ADK's (`google.adk.evaluation.eval_case`). `intermediate_data` holds a turn's steps in one of two shapes.
People write the first (`tool_uses`, `tool_responses`, `intermediate_responses`); ADK records the second
(`invocation_events`). Every function here reads both.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.text.json_values import mapping, objects, parts_of

Invocation = dict[str, Any]
OPAQUE = frozenset(
    {"args", "response", "state", "state_delta", "part_metadata", "tool_declarations", "final_session_state"}
)
"""Keys whose values belong to the user, such as arguments and state. Nothing inside them is dropped or renamed."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call. `args` is None if the file has no arguments. `author` is known only for recorded calls.

    `inside` is the tool whose agent made the call, or "".
    """

    name: str
    args: dict[str, Any] | None
    id: str | None = None
    author: str | None = None
    inside: str = ""


def leaves_out(invocation: Invocation, key: str) -> bool:
    """Return whether a reference expects nothing for a part of its turn: the part's key is null, as in datasets."""
    return key in invocation and invocation[key] is None


def recorded_events(invocation: object) -> list[dict[str, Any]] | None:
    """Return the turn's events as ADK records them, or None if it has the hand-written form."""
    events = mapping(mapping(invocation).get("intermediate_data")).get("invocation_events")
    return events if isinstance(events, list) else None


def tool_calls(invocation: Invocation) -> list[ToolCall]:
    """Return the turn's tool calls in order, from either shape, or [] without `intermediate_data`."""
    written = mapping(invocation.get("intermediate_data")).get("tool_uses") or ()
    calls = [_tool_call(call, {}) for call in written]
    calls += [
        _tool_call(part["function_call"], event)
        for event, part in _recorded_parts(invocation)
        if part.get("function_call") is not None
    ]
    return calls


def with_inner_calls(invocation: Invocation, inner: Sequence[dict[str, Any]]) -> Invocation:
    """Return a recorded turn with the calls inside agents that are used as tools (event `InnerCalls`).

    Each call becomes an event after that of the outer call, with the outer tool in the key `inside`. Hidden calls are
    left out.
    """
    events = recorded_events(invocation)
    if not inner or events is None:
        return invocation
    waiting: dict[Any, list[dict[str, Any]]] = {}
    for call in inner:
        if not call.get("hidden"):
            part = {"function_call": {"name": call.get("name"), "args": call.get("args")}}
            content = {"role": "model", "parts": [part]}
            waiting.setdefault(call.get("call"), []).append(
                {"author": call.get("agent"), "content": content, "inside": call.get("tool")}
            )
    merged: list[dict[str, Any]] = []
    for event in events:
        merged.append(event)
        for part in parts_of(event.get("content")):
            merged += waiting.pop(mapping(part.get("function_call")).get("id"), [])
    merged += (event for events in waiting.values() for event in events)
    data = {**mapping(invocation.get("intermediate_data")), "invocation_events": merged}
    return {**invocation, "intermediate_data": data}


def tool_responses(invocation: Invocation) -> list[dict[str, Any]]:
    """Return the turn's tool responses in order, as FunctionResponse objects (`id`, `name`, `response`)."""
    responses = list(mapping(invocation.get("intermediate_data")).get("tool_responses") or ())
    responses += [
        part["function_response"]
        for _, part in _recorded_parts(invocation)
        if part.get("function_response") is not None
    ]
    return responses


def tool_results(invocation: Invocation) -> list[dict[str, Any] | None]:
    """Return the tool response of each call, in the order of `tool_calls`, or None for a call without one.

    A call and its response have the same ID. Responses without an ID are assigned in order, by tool.
    """
    waiting: dict[tuple[str, Any], deque[dict[str, Any]]] = {}
    for response in tool_responses(invocation):
        key = ("id", response["id"]) if response.get("id") else ("name", response.get("name"))
        waiting.setdefault(key, deque()).append(response)
    found: list[dict[str, Any] | None] = []
    for call in tool_calls(invocation):
        queue = (call.id and waiting.get(("id", call.id))) or waiting.get(("name", call.name))
        found.append(queue.popleft() if queue else None)
    return found


def intermediate_texts(invocation: Invocation) -> list[tuple[str, str]]:
    """Return texts of sub-agents before the final response as (author, text), one per response or event with text."""
    written = mapping(invocation.get("intermediate_data")).get("intermediate_responses") or ()
    texts = [(author, content_text({"parts": parts})) for author, parts in written]
    events = recorded_events(invocation) or ()
    texts += [(event.get("author", ""), content_text(event.get("content"))) for event in events]
    return [(author, text) for author, text in texts if text]


def content_text(content: dict[str, Any] | None) -> str:
    """Return the non-empty texts of a content's parts, joined by line breaks. Thoughts are included, as in ADK."""
    parts = (content or {}).get("parts") or ()
    return "\n".join(part["text"] for part in parts if part.get("text"))


def _tool_call(call: dict[str, Any], event: dict[str, Any]) -> ToolCall:
    name, inside = call.get("name") or "", event.get("inside") or ""
    return ToolCall(name, call.get("args"), call.get("id"), event.get("author"), inside)


def _recorded_parts(invocation: Invocation) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for event in recorded_events(invocation) or ():
        for part in parts_of(event.get("content")):
            yield event, part


def tool_steps(actual: Mapping[str, Any]) -> "list[tuple[Any, Any]]":
    """Return the tool calls, as ([name, args], None), and results, as (None, [name, response]), in their order.

    In the shape that people write, all calls come first.
    """
    data = mapping(actual.get("intermediate_data"))
    steps: list[tuple[Any, Any]] = []
    for event in recorded_events(actual) or ():
        for part in parts_of(mapping(event).get("content")):
            call, result = part.get("function_call"), part.get("function_response")
            if isinstance(call, dict):
                steps.append(([call.get("name"), call.get("args")], None))
            if isinstance(result, dict):
                steps.append((None, [result.get("name"), result.get("response")]))
    steps += [([call.get("name"), call.get("args")], None) for call in objects(data.get("tool_uses"))]
    steps += [(None, [one.get("name"), one.get("response")]) for one in objects(data.get("tool_responses"))]
    return steps


def texts(content: Any) -> list[str]:
    """Return the texts of an ADK content."""
    return [part["text"] for part in parts_of(content) if isinstance(part.get("text"), str)]
