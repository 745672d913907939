"""Real ADK agents whose calls are recorded and replayed, and the recording of a case as the workbench makes it."""

import json
from collections.abc import Iterator
from typing import Any

from tests.worker.client import Outcome
from workbench.run.recordings.from_run import ends_of

HEAD = '''
import os
from pathlib import Path

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

COUNTER = Path(__file__).with_name("counter")


def count(what):
    with COUNTER.open("a") as file:
        file.write(f"{what}\\n")


class Scripted(BaseLlm):
    """A model that gives one answer after the other. An argument "$user" is what the user said first."""

    model: str = "scripted"
    answers: list = []

    async def generate_content_async(self, llm_request, stream=False):
        count("model")
        given = sum(content.role == "model" for content in llm_request.contents)
        parts = self.answers[min(given, len(self.answers) - 1)]
        parts = parts if isinstance(parts, list) else [parts]
        made = [types.Part(text=part) if isinstance(part, str) else part.model_copy(deep=True) for part in parts]
        for part in made:
            if part.function_call:
                heard = llm_request.contents[0].parts[0].text
                args = part.function_call.args
                part.function_call.args = {key: heard if args[key] == "$user" else args[key] for key in args}
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
        yield LlmResponse(content=types.Content(role="model", parts=made), usage_metadata=usage)


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def agent(*answers, name="desk", **more):
    return LlmAgent(name=name, model=Scripted(answers=list(answers)), **more)
'''
"""Each call of a tool or model writes a line to the file `counter` beside the agent."""


def calls(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the reported calls in the order of the model's calls, with values instead of digests of pieces."""
    pieces: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for event in outcome.of("Calls"):
        pieces |= event["pieces"]
        found += [{**call, "turn": event["turn"]} for call in json.loads(event["calls"])]
    return sorted((_whole(call, pieces) for call in found), key=lambda call: call.get("order", -1))


def _whole(call: dict[str, Any], pieces: dict[str, str]) -> dict[str, Any]:
    def value(digest: str | None) -> Any:
        return None if digest is None else json.loads(pieces[digest])

    whole = dict(call)
    for name in ("args", "answer"):
        if name in call:
            whole[name] = value(call[name])
    if "responses" in call:
        whole["responses"] = [value(response) for response in call["responses"]]
    if call["kind"] == "tools":
        whole["tools"] = [{**tool, "declaration": value(tool["declaration"])} for tool in call["tools"]]
    effects = dict(call.get("effects") or {})
    for name in ("state", "in_place", "actions"):
        if name in effects:
            effects[name] = value(effects[name])
    if "artifacts" in effects:
        effects["artifacts"] = [{**saved, "content": value(saved["content"])} for saved in effects["artifacts"]]
    return {**whole, "effects": effects} if effects else whole


def tool_calls(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the reported calls of tools."""
    return [call for call in calls(outcome) if call["kind"] == "tool"]


def frozen(outcome: Outcome, mode: str = "tools", **settings: Any) -> dict[str, Any]:
    """Return the options of a case that replays what `outcome` recorded."""
    made = calls(outcome)
    tools = {call["agent"]: call["tools"] for call in made if call["kind"] == "tools"}
    ends = ends_of((call["turn"] + 1, call) for call in made if call["kind"] in ("tool", "model"))
    ended = [{**end.as_json(), "turn": end.turn - 1} for end in ends]
    replay = {"mode": mode, "on_miss": "error", "ignore": {}, "tools": tools, "ended": ended, **settings}
    kept = (
        "kind",
        "turn",
        "agent",
        "branch",
        "tool",
        "args",
        "asked",
        "answer",
        "request",
        "responses",
        "error",
        "lost",
    )
    recorded = [
        {name: call[name] for name in (*kept, "effects") if name in call}
        for call in made
        if call["kind"] in ("tool", "model")
    ]
    return {
        "calls": {"record": True, "replay": replay},
        "recorded": [call for call in recorded if mode == "all" or call["kind"] == "tool"],
    }


RECORDING: dict[str, Any] = {"calls": {"record": True, "replay": None}}


def shown(outcome: Outcome) -> list[Any]:
    """Return everything of an outcome that a replay must not change."""
    return [_plain(event) for event in outcome.events if event["event"] in ("AgentActed", "TurnFinished", "Failed")]


_CHANGING = ("invocation_id", "creation_timestamp", "duration", "model_duration", "tool_duration", "traceback")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "id" if key in ("id", "$call", "call") else _plain(item)
            for key, item in value.items()
            if key not in _CHANGING
        }
    return [_plain(item) for item in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the places at which two outcomes differ, to make a failing test readable."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from differences(first, second, f"{path}[{index}]")
    elif one != other:
        yield f"{path}: {one!r} != {other!r}"
