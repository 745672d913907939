"""Writing of frozen files: readable, in a stable order, with one call per paragraph.

A frozen file is reviewed, committed and merged like its evalset, so a changed answer changes only its own lines.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from workbench.run.recordings.frozen_schema import IN, SCHEMA
from workbench.run.recordings.recording import Declaration, Effects, ModelCall, Recording, ToolCall, digest
from workbench.worker.forms import FORM

# JSON text that is reviewed in a diff: short values on one line, and nothing that a terminal or an eye misreads

_WIDTH = 100
_STEP = "  "
_MISLEADING = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, invisible characters, marks of writing direction and lone surrogates. JSON has them only inside texts."""


def readable(value: Any, indent: str = "", before: int = 0) -> str:
    """Return JSON data as text. Values that fit into 100 columns are on one line.

    `indent` is the white space before the lines of the value. `before` is the number of characters that come before it
    on its first line, besides the indent.

    Raises:
        RecursionError: it is nested deeper than Python's stack.
    """
    line = one_line(value)
    if not value or not isinstance(value, dict | list) or len(indent) + before + len(line) <= _WIDTH:
        return line
    inner = indent + _STEP
    if isinstance(value, dict):
        return block("{", "}", [member(key, item, inner) for key, item in value.items()], indent)
    return block("[", "]", [readable(item, inner) for item in value], indent)


def member(key: str, value: Any, indent: str) -> str:
    """Return a member of an object, `"key": value`."""
    name = one_line(key)
    return f"{name}: {readable(value, indent, len(name) + 2)}"


def block(opening: str, closing: str, items: list[str], indent: str, gap: str = "") -> str:
    """Return an object or a list over several lines. `gap` is written between the items, after the line break."""
    inner = indent + _STEP
    return f"{opening}\n{inner}{f',{chr(10)}{gap}{inner}'.join(items)}\n{indent}{closing}"


def one_line(value: Any) -> str:
    """Return JSON data as one line of text."""
    return _MISLEADING.sub(_escaped, json.dumps(value, ensure_ascii=False))


def finite_json(value: Any) -> Any:
    """Return JSON data in which each number that is not finite is an object, as the agent's process writes it."""
    try:
        _FINITE.encode(value)
        return value
    except ValueError:
        return _finite_json(value)


_FINITE = json.JSONEncoder(allow_nan=False, check_circular=False)


def _finite_json(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else {FORM: "float", "value": repr(value)}
    if isinstance(value, dict):
        return {key: _finite_json(item) for key, item in value.items()}
    return [_finite_json(item) for item in value] if isinstance(value, list) else value


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


_INLINE = 16 << 10
"""Characters of the largest value that is written into the frozen file itself."""


def frozen_contents(path: Path, recording: Recording) -> dict[Path, bytes]:
    """Return the content of a frozen file, and of the files beside it with its large values.

    Raises:
        RecursionError: a value is nested deeper than Python's stack.
    """
    beside: dict[str, bytes] = {}
    text = _written(recording, beside) + "\n"
    return {path: text.encode()} | {path.with_name(name): data for name, data in beside.items()}


def _written(recording: Recording, beside: dict[str, bytes]) -> str:
    models = [_model_json(model, beside) for model in recording.models]
    origin = recording.origin
    known = {name: getattr(origin, name) for name in ("run", "at", "repeat", "framework", "version")}
    head: dict[str, Any] = {
        "schema": SCHEMA,
        "eval_set_id": recording.eval_set_id,
        "eval_id": recording.eval_id,
        "agent": recording.agent,
        "recorded": {**{name: value for name, value in known.items() if value}, "effects": origin.effects},
        "ignore": {tool: list(names) for tool, names in recording.ignore.items() if names},
    }
    tools = {agent: [_tool_json(tool) for tool in declared] for agent, declared in recording.tools.items()}
    members = [member(name, value, "  ") for name, value in head.items()]
    if tools:
        members.append(f'"tools": {block("{", "}", [_paragraphs(*item, "    ") for item in tools.items()], "  ")}')
    if recording.ended:
        ends = [one_line(one.as_json()) for one in recording.ended]
        members.append(f'"ended": {block("[", "]", ends, "  ")}')
    members.append(_paragraphs("calls", [_call_json(call, beside) for call in recording.calls], "  "))
    if models:
        members.append(_paragraphs("models", models, "  "))
    if recording.parts:
        requests = [{"part": name, **_value("value", part, beside)} for name, part in recording.parts.items()]
        members.append(_paragraphs("requests", requests, "  "))
    return block("{", "}", members, "")


def _paragraphs(name: str, items: list[dict[str, Any]], indent: str) -> str:
    """Return a member that is a list of objects, one paragraph each, with a line for each short value."""
    inner = indent + "  "
    written = [block("{", "}", [member(*pair, inner + "  ") for pair in item.items()], inner) for item in items]
    opening = readable(name)
    return f"{opening}: {block('[', ']', written, indent, gap=chr(10))}" if written else f"{opening}: []"


def _value(name: str, value: Any, beside: dict[str, bytes]) -> dict[str, Any]:
    """Return `{name: value}`, or `{name_in: file}` for a large value, which is added to the files beside."""
    value = finite_json(value)
    text = readable(value)
    if len(text) <= _INLINE:
        return {name: value}
    file = f"{digest(value)}.json"
    beside[file] = f"{text}\n".encode()
    return {name + IN: file}


def _tool_json(tool: Declaration) -> dict[str, Any]:
    data: dict[str, Any] = finite_json(tool.as_json())
    return {name: value for name, value in data.items() if value or name in ("name", "declaration")}


def _call_json(call: ToolCall, beside: dict[str, bytes]) -> dict[str, Any]:
    data: dict[str, Any] = {**_head_json(call), "tool": call.tool, **_value("args", dict(call.args), beside)}
    outcome = call.outcome()
    data |= _value("answer", outcome["answer"], beside) if "answer" in outcome else outcome
    if effects := _effects_json(call.effects, beside):
        data["effects"] = effects
    return {**data, **_tail_json(call)}


def _effects_json(effects: Effects, beside: dict[str, bytes]) -> dict[str, Any]:
    data = effects.as_json()
    written: dict[str, Any] = {}
    for name in ("state", "in_place"):
        written |= _value(name, data[name], beside) if name in data else {}
    if "artifacts" in data:
        written["artifacts"] = [
            {key: value for key, value in artifact.items() if key != "content"}
            | _value("content", artifact["content"], beside)
            for artifact in data["artifacts"]
        ]
    return written | (_value("actions", data["actions"], beside) if "actions" in data else {})


def _model_json(model: ModelCall, beside: dict[str, bytes]) -> dict[str, Any]:
    data: dict[str, Any] = {**_head_json(model), "asked": model.asked}
    if model.request is not None:
        data["request"] = dict(model.request)
    outcome = model.outcome()
    data |= _value("responses", outcome["responses"], beside) if "responses" in outcome else outcome
    return {**data, **_tail_json(model)}


def _head_json(call: ToolCall | ModelCall) -> dict[str, Any]:
    branch = {} if call.branch == "" else {"branch": call.branch}
    return {"turn": call.turn, "agent": call.agent, **branch}


def _tail_json(call: ToolCall | ModelCall) -> dict[str, Any]:
    seconds = {} if call.seconds is None else {"seconds": call.seconds}
    return {**seconds, **({"secret": True} if call.secret else {})}
