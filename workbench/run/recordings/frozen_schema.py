"""The schema of frozen files. `python -m workbench.run.recordings.frozen_schema` prints it as JSON Schema.

A key that ends in `_in` stands for the one without it: it names a file beside the frozen file that holds the value.
"""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Required, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

SCHEMA = "agent-workbench/frozen/1"
IN = "_in"
CHOICES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "call": (("args", "args_in"), ("answer", "answer_in", "error", "lost")),
    "model call": (("responses", "responses_in", "error", "lost"),),
    "artifact": (("content", "content_in"),),
    "part": (("value", "value_in"),),
}
"""Kind of object → groups of keys. It has exactly one key of each group."""
NOT_BOTH = (("state", "state_in"), ("in_place", "in_place_in"), ("actions", "actions_in"))
"""Groups of keys of effects, of which there is at most one."""


def _strict(kind: str = "") -> ConfigDict:
    groups = CHOICES.get(kind, ())
    rules: dict[str, Any] = {"allOf": [{"oneOf": [{"required": [key]} for key in group]} for group in groups]}
    return ConfigDict(strict=True, extra="forbid", json_schema_extra=rules if groups else None)


Turn: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000, description="The turn, counted from 1.")]
Seconds: TypeAlias = Annotated[float, Field(ge=0, le=1e9, description="How long the call took.")]
Branch: TypeAlias = Annotated[
    str | None, Field(description="ADK's branch of the agent. Without it, the agent has none. null: it is not known.")
]
Lost: TypeAlias = Annotated[str, Field(min_length=1, description="Why the outcome is not known. The call is a miss.")]
Secret: TypeAlias = Annotated[bool, Field(description="Whether a secret in the outcome was replaced.")]
InFile: TypeAlias = Annotated[
    str, Field(pattern=r"^[0-9a-f]{20}\.json$", description="File beside this one with the value, named by its digest.")
]


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
    """The request of a model call: digests of its parts. Texts are in `requests`."""

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

    With the name "", it is the toolset at this position itself.
    """

    name: Required[str]
    toolset: Annotated[
        int, Field(ge=0, description="Position of its toolset in the agent's tools, from 1. Without it, it has none.")
    ]
    long_running: bool
    instruction: Annotated[str, Field(description="Text that it added to the instructions of requests.")]
    confirmation: Annotated[bool, Field(description="The user had to confirm each call.")]
    since: Annotated[
        int, Field(ge=1, description="The number of the toolset's listing in which it came. Without it, the first.")
    ]
    types: Annotated[
        list[str], Field(max_length=64, description="Its class and the bases as `module.Class`, nearest first.")
    ]
    source: Annotated[
        str, Field(description="Digest of the source of its function, or of its toolset's class. Without it, unknown.")
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
        int, Field(ge=1, description="Its number among the equal ones, in the order in which they began. Default: 1.")
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
        Field(description="The order in which calls ended, of turns with parallel calls. They are replayed in it."),
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
