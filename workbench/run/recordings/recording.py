"""The recorded calls of one case, as frozen dataclasses, and the messages by which the worker gets them.

All values are JSON data. Turns count from 1, as in files and on the screen; the worker's messages count from 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.files.run_options import OnMiss
from workbench.worker.jsonable import digest as text_digest
from workbench.worker.jsonable import dumps

Mode: TypeAlias = Literal["tools", "all"]
"""The replayed calls: those of tools, or of tools and models."""


def digest(value: Any) -> str:
    """Return the digest of JSON data (20 hexadecimal digits), as the worker's messages and frozen files use it."""
    return text_digest(dumps(value))


@dataclass(frozen=True, slots=True)
class RecordedError:
    """An exception that a call raised.

    `types` are its class and base classes as `module.Class`, the nearest first. `attributes` are those that have a JSON
    form, such as a status code.
    """

    types: tuple[str, ...]
    message: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        attributes = {"attributes": dict(self.attributes)} if self.attributes else {}
        return {"types": list(self.types), "message": self.message, **attributes}


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact that a tool saved. `content` is the JSON form of its part. `version` may be None, and `mime` ""."""

    name: str
    content: Mapping[str, Any]
    version: int | None = None
    mime: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return its JSON form without unknown fields."""
        known = {"name": self.name, "version": self.version, "mime": self.mime or None}
        return {**{key: value for key, value in known.items() if value is not None}, "content": dict(self.content)}


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything that a tool did through its context: changed state, saved artifacts, and other actions.

    `in_place` are values of the state that it changed without assigning them, and that the framework did not notice.
    `actions` are the fields of ADK's EventActions that it set, such as `skip_summarization`.
    """

    state: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    actions: Mapping[str, Any] = field(default_factory=dict)
    in_place: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.state or self.artifacts or self.actions or self.in_place)

    def as_json(self) -> dict[str, Any]:
        """Return its JSON form without empty fields."""
        artifacts = [artifact.as_json() for artifact in self.artifacts]
        state = {"state": dict(self.state), "in_place": dict(self.in_place)}
        known = {**state, "artifacts": artifacts, "actions": dict(self.actions)}
        return {key: value for key, value in known.items() if value}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    It has an `error`, or was `lost` (why its outcome is not known), or has an `answer`. `turn` counts from 1. `secret`
    says that the outcome held a secret, which was replaced. `branch` is ADK's branch, or None if it was not recorded:
    a replay then accepts any branch.
    """

    turn: int
    agent: str
    tool: str
    args: Mapping[str, Any]
    branch: str | None = ""
    answer: Any = None
    error: RecordedError | None = None
    lost: str = ""
    effects: Effects = field(default_factory=Effects)
    seconds: float | None = None
    secret: bool = False
    order: int = field(default=-1, compare=False)
    """Its number among all calls of the conversation, of tools and models; -1 if unknown. Not in frozen files."""
    state: str = field(default="", compare=False)
    """The digest of the session's state before the call, or "" if unknown. Not in frozen files."""
    call: str = field(default="", compare=False)
    """The ID of the function call. Not in frozen files."""
    streams: bool = field(default=False, compare=False)
    """Whether the tool is a generator. Not in frozen files."""

    def outcome(self) -> dict[str, Any]:
        """Return `{"answer": …}`, `{"error": …}` or `{"lost": why}`."""
        return _outcome("answer", self.answer, self.error, self.lost)

    def wire(self, order: int) -> dict[str, Any]:
        """Return the call as the worker gets it. `order` is its position among all calls of the recording."""
        data = {**_head("tool", self, order), "tool": self.tool, "args": dict(self.args), **self.outcome()}
        if self.effects:
            data["effects"] = self.effects.as_json()
        return data


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model. `asked` is the digest of its request, `responses` are ADK's LlmResponses.

    If the request held a secret, `asked` is "". `request` has the model and the digests of the request's parts,
    `{"model", "system", "tools", "config", "contents"}`, or is None. The other fields are as in `ToolCall`.
    """

    turn: int
    agent: str
    asked: str
    branch: str | None = ""
    request: Mapping[str, Any] | None = None
    responses: tuple[Any, ...] = ()
    error: RecordedError | None = None
    lost: str = ""
    seconds: float | None = None
    secret: bool = False
    order: int = field(default=-1, compare=False)
    state: str = field(default="", compare=False)
    span: int = field(default=0, compare=False)
    """The number of its span, or 0. Not in frozen files."""

    def outcome(self) -> dict[str, Any]:
        """Return `{"responses": […]}`, `{"error": …}` or `{"lost": why}`."""
        return _outcome("responses", list(self.responses), self.error, self.lost)

    def wire(self, order: int) -> dict[str, Any]:
        """Return the call as the worker gets it."""
        request = {} if self.request is None else {"request": dict(self.request)}
        return {**_head("model", self, order), "asked": self.asked, **self.outcome(), **request}


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool that an agent had. `declaration` is ADK's FunctionDeclaration as JSON data, or None if it had none.

    `toolset` is the position of its toolset in the agent's `tools`, from 1, or 0 if it is in no toolset. With the name
    "", this declares the toolset itself. `long_running` is ADK's flag. `instruction` is what the tool added to the
    instructions of requests. `confirmation` says that the user had to confirm each call. `hidden` says that a tool of a
    toolset did not declare itself, although it can be called. `config` are tools of the model itself that a toolset
    added to requests, such as `{"computer_use": …}`. `error` is why a toolset could not list its tools. `types` are the
    class of a toolset's tool and its bases. `since` is the number, from 1, of the toolset's listing that had it first.
    `source` is a digest of the source of its function or of its toolset's class, or "" if it is not known.
    """

    name: str
    declaration: Any = None
    toolset: int = 0
    long_running: bool = False
    instruction: str = ""
    confirmation: bool = False
    error: RecordedError | None = None
    hidden: bool = False
    config: tuple[Any, ...] = ()
    types: tuple[str, ...] = field(default=(), compare=False)
    since: int = field(default=1, compare=False)
    source: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return its JSON form, which is also that of the worker's messages."""
        flags: dict[str, Any] = {"toolset": self.toolset, "long_running": self.long_running}
        error = self.error.as_json() if self.error is not None else None
        more = {"instruction": self.instruction, "confirmation": self.confirmation, "error": error}
        more |= {"hidden": self.hidden, "config": list(self.config), "types": list(self.types)}
        more |= {"since": self.since if self.since > 1 else 0, "source": self.source}
        known = {name: value for name, value in more.items() if value}
        return {"name": self.name, **flags, **known, "declaration": self.declaration}


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a call in a turn with parallel calls.

    `call` is the tool, or `$model`. `nth` is its number, from 1, among the calls of the same turn, branch and tool, in
    the order in which they began.
    """

    turn: int
    branch: str
    call: str
    nth: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        nth = {"nth": self.nth} if self.nth > 1 else {}
        return {"turn": self.turn, "branch": self.branch, "call": self.call, **nth}


@dataclass(frozen=True, slots=True)
class Origin:
    """The execution that was recorded. `at` is UTC in ISO 8601. Fields are "" if they are not known.

    `effects` says whether the effects of tools were recorded. JSON reports do not have them.
    """

    run: str = ""
    at: str = ""
    repeat: int = 1
    framework: str = ""
    version: str = ""
    effects: bool = True


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded calls of one case.

    `calls` and `models` are in the order in which the calls began. `ignore` names arguments, by tool, that do not count
    when a call is looked up. `tools` are the declarations by agent. `parts` are instructions and options of requests by
    their digest, as far as they are known. `ended` is the order in which the calls of turns with parallel calls ended,
    including calls of models that are left out.
    """

    eval_set_id: str
    eval_id: str
    agent: str = ""
    origin: Origin = field(default_factory=Origin)
    ignore: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tools: Mapping[str, tuple[Declaration, ...]] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    models: tuple[ModelCall, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)
    ended: tuple[Ended, ...] = ()

    def frames(self, mode: Mode = "all") -> Iterator[dict[str, Any]]:
        """Yield `{"op": "recorded", "call": {…}}` for each call that is replayed, tools first.

        A tool call has `kind` ("tool"), `turn` (from 0), `agent`, `branch`, `order`, `seconds` (or null), `tool`,
        `args`, one of `answer`, `error` and `lost`, and perhaps `effects`. A model call has `kind` ("model"), the same
        head, `asked`, one of `responses`, `error` and `lost`, and perhaps `request` with digests of its parts. A call
        with `lost` (the reason) has no outcome to replay: asking for it is a miss.
        """
        for order, call in enumerate(self.calls):
            yield {"op": "recorded", "call": call.wire(order)}
        for order, model in enumerate(self.models if mode == "all" else ()):
            yield {"op": "recorded", "call": model.wire(order)}

    def settings(self, mode: Mode, on_miss: OnMiss = "error") -> dict[str, Any]:
        """Return the case's `calls.replay`: `{"mode", "on_miss", "ignore", "tools", "ended"?}`."""
        ignore = {tool: list(names) for tool, names in self.ignore.items()}
        tools = {agent: [tool.as_json() for tool in declared] for agent, declared in self.tools.items()}
        ended = {"ended": [{**one.as_json(), "turn": one.turn - 1} for one in self.ended]} if self.ended else {}
        return {"mode": mode, "on_miss": on_miss, "ignore": ignore, "tools": tools, **ended}


def _head(kind: str, call: ToolCall | ModelCall, order: int) -> dict[str, Any]:
    head = {"kind": kind, "turn": call.turn - 1, "agent": call.agent, "branch": call.branch}
    state = {"state": call.state} if call.state else {}
    return {**head, "order": order, "seconds": call.seconds, **state}


def _outcome(name: str, value: Any, error: RecordedError | None, lost: str) -> dict[str, Any]:
    if error is not None:
        return {"error": error.as_json()}
    return {"lost": lost} if lost else {name: value}
