"""The format of frozen files: their schema, and how they are written.

They are reviewed in a diff. So they are in a stable order, with one call per paragraph and short values on one line.
They have no characters that mislead a terminal or a reader. `python -m workbench.run.recordings.frozen_schema` prints
the schema as JSON Schema.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from workbench.run.recordings.recording import Declaration, Effects, ModelCall, Recording, ToolCall, digest
from workbench.worker.value_forms import FORM

SCHEMA = "agent-workbench/frozen/1"
IN = "_in"
CHOICES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "call": (("args", "args_in"), ("answer", "answer_in", "error", "lost")),
    "model call": (("responses", "responses_in", "error", "lost"),),
    "artifact": (("content", "content_in"),),
    "part": (("value", "value_in"),),
}
"""Kind of object → groups of keys. Such an object has exactly one key of each group."""
NOT_BOTH = (("state", "state_in"), ("in_place", "in_place_in"), ("actions", "actions_in"))
"""Groups of keys of effects. An object has at most one key of each group."""
Turn: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000, description="The turn, counted from 1.")]
Seconds: TypeAlias = Annotated[float, Field(ge=0, le=1e9, description="How long the call took.")]
Branch: TypeAlias = Annotated[
    str | None, Field(description="ADK's branch of the agent. If missing: none. null: the branch is not known.")
]
Lost: TypeAlias = Annotated[
    str, Field(min_length=1, description="Why the outcome is not known. In a replay, it is a miss.")
]
Secret: TypeAlias = Annotated[bool, Field(description="Whether a secret in the outcome was replaced.")]
InFile: TypeAlias = Annotated[
    str, Field(pattern=r"^[0-9a-f]{20}\.json$", description="File beside this one with the value, named by its digest.")
]

_WIDTH = 100
_STEP = "  "
_MISLEADING = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, invisible characters, marks of writing direction and lone surrogates. JSON has them only inside texts."""
_FINITE = json.JSONEncoder(allow_nan=False, check_circular=False)
_INLINE = 16 << 10
"""Maximum length, in characters, of a value that is written into the frozen file itself."""


def _strict(kind: str = "") -> ConfigDict:
    groups = CHOICES.get(kind, ())
    rules: dict[str, Any] = {"allOf": [{"oneOf": [{"required": [key]} for key in group]} for group in groups]}
    return ConfigDict(strict=True, extra="forbid", json_schema_extra=rules if groups else None)


@with_config(_strict())
class FrozenError(TypedDict, total=False):
    """An exception."""

    types: Required[
        Annotated[
            list[str],
            Field(min_length=1, max_length=64, description="The class and its bases as `module.Class`, nearest first."),
        ]
    ]
    message: Required[str]
    attributes: Annotated[dict[str, Any], Field(description="Its attributes, such as `args` or a status code.")]


@with_config(_strict("artifact"))
class FrozenArtifact(TypedDict, total=False):
    """An artifact that a tool saved. It has `content` or `content_in`."""

    name: Required[str]
    version: int
    mime: str
    content: dict[str, Any]
    content_in: InFile


@with_config(_strict())
class FrozenEffects(TypedDict, total=False):
    """Everything that a tool did through its context."""

    state: dict[str, Any]
    state_in: InFile
    in_place: Annotated[dict[str, Any], Field(description="Values of the state that it changed in place.")]
    in_place_in: InFile
    artifacts: list[FrozenArtifact]
    actions: dict[str, Any]
    actions_in: InFile


@with_config(_strict("call"))
class FrozenCall(TypedDict, total=False):
    """A tool call. It has exactly one of `answer`, `answer_in`, `error` and `lost`, and one of `args` and `args_in`."""

    turn: Required[Turn]
    agent: Required[str]
    branch: Branch
    tool: Required[str]
    args: dict[str, Any]
    args_in: InFile
    answer: Any
    answer_in: InFile
    error: FrozenError
    lost: Lost
    effects: FrozenEffects
    seconds: Seconds
    secret: Secret


@with_config(_strict())
class FrozenRequest(TypedDict, total=False):
    """The request of a model call: the model, and digests of its parts. Texts are in `requests`."""

    model: Required[str]
    system: str
    tools: str
    config: str
    contents: Required[list[str]]


@with_config(_strict("model call"))
class FrozenModelCall(TypedDict, total=False):
    """A model call. It has exactly one of `responses`, `responses_in`, `error` and `lost`."""

    turn: Required[Turn]
    agent: Required[str]
    branch: Branch
    asked: Required[Annotated[str, Field(description="Digest of the request.")]]
    request: FrozenRequest
    responses: Annotated[list[Any], Field(description="ADK's LlmResponses.")]
    responses_in: InFile
    error: FrozenError
    lost: Lost
    seconds: Seconds
    secret: Secret


@with_config(_strict("part"))
class FrozenPart(TypedDict, total=False):
    """A part of requests, stored once. It has `value` or `value_in`."""

    part: Required[Annotated[str, Field(description="Its digest.")]]
    value: Any
    value_in: InFile


@with_config(_strict())
class FrozenTool(TypedDict, total=False):
    """A tool that an agent had. `declaration` is ADK's FunctionDeclaration, or null.

    If the name is "", the entry is the toolset at the position `toolset`.
    """

    name: Required[str]
    toolset: Annotated[
        int, Field(ge=0, description="Position of its toolset in the agent's tools, from 1. If missing: none.")
    ]
    long_running: bool
    instruction: Annotated[str, Field(description="Text that it added to the instructions of requests.")]
    confirmation: Annotated[bool, Field(description="The user had to confirm each call.")]
    since: Annotated[int, Field(ge=1, description="First listing of its toolset that had it, from 1. If missing: 1.")]
    types: Annotated[
        list[str], Field(max_length=64, description="Its class and the bases as `module.Class`, nearest first.")
    ]
    source: Annotated[
        str, Field(description="Digest of the source of its function, or of its toolset's class. If missing: unknown.")
    ]
    hidden: Annotated[bool, Field(description="It did not declare itself, although it can be called.")]
    config: Annotated[
        list[dict[str, Any]], Field(description="Tools of the model itself that the toolset added to requests.")
    ]
    error: Annotated[FrozenError, Field(description="Why the toolset could not list its tools.")]
    declaration: Required[Any]


@with_config(_strict())
class FrozenEnd(TypedDict, total=False):
    """The end of a call."""

    turn: Required[Turn]
    branch: Required[str]
    call: Required[Annotated[str, Field(description="The tool, or $model.")]]
    nth: Annotated[
        int, Field(ge=1, description="Its number among equal calls, in the order in which they began. Default: 1.")
    ]


@with_config(_strict())
class FrozenOrigin(TypedDict, total=False):
    """The execution that was recorded."""

    run: str
    at: Annotated[str, Field(description="UTC, ISO 8601.")]
    repeat: Annotated[int, Field(ge=1)]
    framework: str
    version: str
    effects: Required[Annotated[bool, Field(description="Whether effects of tools were recorded.")]]


@with_config(_strict())
class FrozenFile(TypedDict, total=False):
    """The recorded calls of one case, in the order in which they began."""

    schema: Required[Literal["agent-workbench/frozen/1"]]
    eval_set_id: Required[str]
    eval_id: Required[str]
    agent: Required[str]
    recorded: Required[FrozenOrigin]
    ignore: Annotated[
        dict[str, list[str]],
        Field(
            description="Tool → arguments that do not count when a call is looked up. `$model` → parts of requests to "
            "models that do not count: instruction, tools, config."
        ),
    ]
    tools: Annotated[dict[str, list[FrozenTool]], Field(description="Agent → its tools.")]
    ended: Annotated[
        list[FrozenEnd],
        Field(description="The order in which calls ended in turns with parallel calls. A replay keeps this order."),
    ]
    calls: Required[list[FrozenCall]]
    models: list[FrozenModelCall]
    requests: list[FrozenPart]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of frozen files."""
    schema = TypeAdapter(FrozenFile).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "agent-workbench frozen calls",
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")


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


def _finite_json(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else {FORM: "float", "value": repr(value)}
    if isinstance(value, dict):
        return {key: _finite_json(item) for key, item in value.items()}
    return [_finite_json(item) for item in value] if isinstance(value, list) else value


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def frozen_contents(path: Path, recording: Recording) -> dict[Path, bytes]:
    """Return the content of a frozen file, and of the files beside it with its large values.

    Raises:
        RecursionError: a value is nested deeper than Python's stack.
    """
    beside: dict[str, bytes] = {}
    text = _written(recording, beside) + "\n"
    return {path: text.encode()} | {path.with_name(name): data for name, data in beside.items()}


def _written(recording: Recording, beside: dict[str, bytes]) -> str:
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
    if recording.models:
        members.append(_paragraphs("models", [_model_json(model, beside) for model in recording.models], "  "))
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
