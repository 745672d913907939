"""The conversation so far, as a simulated user sees it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from workbench.json_values import parts_of
from workbench.model.invocation import recorded_events


@dataclass(frozen=True, slots=True)
class Line:
    """One text of the conversation. `author` is "user" or the name of the agent."""

    role: Literal["user", "agent"]
    author: str
    text: str

    def as_json(self) -> dict[str, str]:
        """Return the line as JSON data."""
        return {"role": self.role, "author": self.author, "text": self.text}


def history(turns: Iterable[Mapping[str, Any]], *, function_calls: bool = False) -> list[Line]:
    """Return the texts of `turns` (ADK invocations) in order.

    They are the texts of the user and every agent, without thoughts, and with `function_calls` also calls and results.
    """
    return [line for turn in turns for line in _of_turn(turn, function_calls)]


def transcript(lines: Iterable[Line]) -> str:
    """Return the lines as text: `author: text`, with a blank line between them."""
    return "\n\n".join(f"{line.author}: {line.text}" for line in lines)


def _of_turn(turn: Mapping[str, Any], function_calls: bool) -> Iterator[Line]:
    yield from _lines("user", "user", turn.get("user_content"), False)
    events = recorded_events(turn) or []
    final = turn.get("final_response")
    # The content of the final answer's event was moved to `final_response`, unless the event also called functions.
    answer = max((number for number, event in enumerate(events) if event.get("content") is None), default=None)
    for number, event in enumerate(events):
        content = final if number == answer else event.get("content")
        yield from _lines("agent", event.get("author") or "agent", content, function_calls)
    if answer is None and not any(event.get("content") == final for event in events):
        author = (events[-1].get("author") if events else None) or "agent"
        yield from _lines("agent", author, final, function_calls)


def _lines(role: Literal["user", "agent"], author: str, content: Any, function_calls: bool) -> Iterator[Line]:
    for part in parts_of(content):
        if part.get("text") and not part.get("thought"):
            yield Line(role, author, part["text"])
        if function_calls and part.get("function_call"):
            call = part["function_call"]
            yield Line(role, author, f"[calls {call.get('name')} with {_json(call.get('args') or {})}]")
        if function_calls and part.get("function_response"):
            response = part["function_response"]
            yield Line(role, author, f"[{response.get('name')} gives {_json(response.get('response'))}]")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
