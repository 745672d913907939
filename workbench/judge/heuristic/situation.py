"""What happened, as rules for rubrics look at it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.judge.heuristic.quantities import Known, quantities


@dataclass(frozen=True)
class Call:
    """One tool call; `result` as it came back, None where nothing did."""

    name: str
    args: Any
    result: Any

    @property
    def args_text(self) -> str:
        return as_text(self.args)


@dataclass(frozen=True)
class Situation:
    """`answer` is None where only the tool calls are to be judged; of a conversation it is all answers together.
    `tools` are the names of those that were declared or called."""

    user: str
    answer: str | None
    calls: tuple[Call, ...]
    tools: frozenset[str]

    @cached_property
    def results(self) -> str:
        return "\n".join(as_text(call.result) for call in self.calls if call.result is not None)

    @cached_property
    def known(self) -> Known:
        """All quantities of results, arguments and the user's message."""
        arguments = "\n".join(call.args_text for call in self.calls)
        return Known(quantities("\n".join((self.results, arguments, self.user))))


def situation(data: Mapping[str, Any]) -> Situation:
    """From the data of a question about rubrics."""
    turns = data.get("conversation")
    answer: str | None
    declared = {
        str(tool.get("name")) for tools in (data.get("tools") or {}).values() for tool in _declarations(tools) if tool
    }
    if turns is not None:
        calls = tuple(call for turn in turns for call in _calls_of_events(turn.get("events") or ()))
        user = "\n".join(str(turn.get("user") or "") for turn in turns)
        answer = "\n".join(str((turn.get("answer") or {}).get("text") or "") for turn in turns)
    else:
        calls = tuple(
            Call(str(step["call"].get("name")), step["call"].get("args"), step.get("response"))
            for step in data.get("steps") or ()
        )
        user = str(data.get("user") or "")
        answer = None if data.get("answer") is None else str(data["answer"])
    return Situation(user, answer, calls, frozenset(declared | {call.name for call in calls}))


def as_text(value: Any) -> str:
    """One leaf of JSON a line, with its key, so that each can be looked up by itself."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def leaves(value: Any, key: str = "") -> list[tuple[str, str]]:
    """(key, text) of each plain value inside a JSON value; nesting is bounded by what JSON readers allow."""
    found: list[tuple[str, str]] = []
    left = [(key, value)]
    while left:
        name, item = left.pop()
        if isinstance(item, Mapping):
            left.extend((str(inner), value) for inner, value in item.items())
        elif isinstance(item, list | tuple):
            left.extend((name, value) for value in item)
        elif item is not None:
            found.append((name, str(item)))
    return found[::-1]


def _declarations(tools: Any) -> list[dict[str, Any]]:
    """Declarations stand in lists, sometimes inside an object with `function_declarations`."""
    found: list[dict[str, Any]] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            found.extend(tool.get("function_declarations") or tool.get("functionDeclarations") or [tool])
    return [tool for tool in found if isinstance(tool, dict)]


def _calls_of_events(events: Any) -> list[Call]:
    """Calls with the first result of the same tool that follows and is not taken."""
    calls: list[Call] = []
    open_calls: dict[str, list[int]] = {}
    for event in events:
        if "call" in event:
            open_calls.setdefault(str(event["call"].get("name")), []).append(len(calls))
            calls.append(Call(str(event["call"].get("name")), event["call"].get("args"), None))
        elif "result" in event:
            name = str(event["result"].get("name"))
            if open_calls.get(name):
                at = open_calls[name].pop(0)
                calls[at] = Call(name, calls[at].args, event["result"].get("response"))
    return calls
