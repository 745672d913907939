"""The conversation so far, as a simulated user sees it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from workbench.json_values import parts_of
from workbench.model.invocation import recorded_events


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said: `author` is "user" or the name of the agent that said it."""

    role: Literal["user", "agent"]
    author: str
    text: str

    def as_json(self) -> dict[str, str]:
        return {"role": self.role, "author": self.author, "text": self.text}


def history(turns: Iterable[Mapping[str, Any]], *, function_calls: bool = False) -> list[Line]:
    """What was said in `turns` (ADK invocations), in order: each text that is no thought, of the user and of every
    agent, and with `function_calls` what was called and what came back."""
    return [line for turn in turns for line in _of_turn(turn, function_calls)]


def transcript(lines: Iterable[Line]) -> str:
    """The lines as a text: `author: text`, a blank line between them."""
    return "\n\n".join(f"{line.author}: {line.text}" for line in lines)


def _of_turn(turn: Mapping[str, Any], function_calls: bool) -> Iterator[Line]:
    yield from _lines("user", "user", turn.get("user_content"), False)
    events = recorded_events(turn) or []
    final = turn.get("final_response")
    # The event that became the final answer has lost its content to it, unless it also called functions.
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
