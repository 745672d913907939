"""A recording from the stored events of a case.

Runs record their calls for replay (`CallsRecorded`). JSON reports and ADK's results do not have these records, and
agents in plain Python may yield calls that nothing can record. Such calls are read from the transcript or the trace.
They lack effects, branches and the kinds of errors, and calls of models are missing.
"""

import builtins
import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from workbench.events.events import CallsRecorded, CaseRef, Event, SpansRecorded, TurnFinished
from workbench.run.recordings.recording import (
    Artifact,
    Declaration,
    Effects,
    Ended,
    ModelCall,
    Origin,
    RecordedError,
    Recording,
    ToolCall,
)
from workbench.run.recordings.requests import holds_secret, readable_bytes, text_parts
from workbench.store.spans import Node, PieceLostError, Pieces, read_turn
from workbench.text.json_values import mapping, objects, parsed_objects, string, strings
from workbench.worker.calls import MODEL, related

CONTROL_TOOLS = frozenset({"transfer_to_agent", "exit_loop", "set_model_response", "finish_task", "request_input"})
"""Tools with which ADK controls the flow of agents. They always run.

Without `CallsRecorded` only names are known, so an agent's own tool with such a name counts as ADK's and runs live.
"""
_ESCAPED = "the agent itself calls {}, which a replay cannot answer; in plain Python, use `session.tool`"
_KINDS = ("tool", "model", "tools", "escaped")
_CUT = "the run kept only the beginning of it"
_ERROR = re.compile(r"(\w+)(?:: (.*))?", re.DOTALL)


class NotRecordedError(Exception):
    """A case that cannot become a recording. The message says why."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The calls of a case, as its events report them.

    `replayed` and `replayed_models` have the positions of calls that were answered from a recording in this run.
    `why_not` says why the case cannot be replayed: its agent called tools outside the framework. It is "" if the case
    can be replayed.
    """

    recording: Recording
    replayed: frozenset[int] = frozenset()
    replayed_models: frozenset[int] = frozenset()
    why_not: str = ""


def take_recording(ref: CaseRef, events: Iterable[Event], state: Path | None, origin: Origin) -> Taken:
    """Return the recording of a case. `state` is the state folder with the runs, or None. Reads files.

    If the events come from an agent in plain Python, the framework in `origin` is replaced by "python".

    Raises:
        NotRecordedError: a fault was injected into a call, so its answer is not the tool's.
    """
    steps = tuple(events)
    calls = [step for step in steps if isinstance(step, CallsRecorded)]
    spans = [step for step in steps if isinstance(step, SpansRecorded)]
    pieces = Pieces([*calls, *spans], state)
    empty = Recording(ref.eval_set_id, ref.eval_id, ref.agent, origin)
    if calls:
        return _from_calls(empty, calls, pieces)
    traces = list(_traces(steps, spans))
    found = tuple(_span_call(turn + 1, node, pieces) for turn, root in traces for node in root.walk() if _is_call(node))
    if found and spans and not any("type" in node.facts for _, root in traces for node in root.walk()):
        why_not = _why_not(call.tool for call in found)
        return Taken(replace(empty, origin=replace(origin, framework="python", version="")), why_not=why_not)
    return Taken(replace(empty, calls=found, ignore=_secret_arguments(found), origin=replace(origin, effects=False)))


def _from_calls(empty: Recording, events: Iterable[CallsRecorded], pieces: Pieces) -> Taken:
    items = [(event.turn + 1, item) for event in events for item in parsed_objects(event.calls)]
    if any(item.get("from") == "injected" for _, item in items):
        raise NotRecordedError("a fault was injected into one of its calls")
    # The sort is stable, so calls with a damaged order stay in the order of the reports.
    items.sort(key=lambda pair: (pair[0], _int(pair[1].get("order"))))
    of_kind = {kind: [pair for pair in items if pair[1].get("kind") == kind] for kind in _KINDS}
    calls = tuple(_tool_call(turn, item, pieces) for turn, item in of_kind["tool"])
    models = _without_secret_requests((_model_call(turn, item, pieces) for turn, item in of_kind["model"]), pieces)
    tools: dict[str, dict[tuple[str, int], Declaration]] = {}
    for _, item in of_kind["tools"]:
        tools.setdefault(string(item.get("agent")), {}).update(_declarations(item, pieces))
    is_plain = not models and all(item.get("plain") is True for _, item in of_kind["tools"])
    origin = replace(empty.origin, framework="python", version="") if is_plain else empty.origin
    recording = replace(
        empty,
        origin=origin,
        ignore=_secret_arguments(calls),
        tools={agent: tuple(declared.values()) for agent, declared in tools.items()},
        calls=calls,
        models=models,
        ended=tuple(ends_of([*of_kind["tool"], *of_kind["model"]])),
    )
    recording = replace(recording, parts=dict(_parts(recording, pieces)))
    escaped = (tool for _, item in of_kind["escaped"] for tool in strings(item.get("tools")))
    return Taken(recording, _replayed(of_kind["tool"]), _replayed(of_kind["model"]), _why_not(escaped))


def ends_of(pairs: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Ended]:
    """Yield the ends of the calls in turns with parallel calls, in their order. Incomplete turns are left out."""
    turns: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for turn, item in pairs:
        turns[turn].append(item)
    for turn, items in sorted(turns.items()):
        items.sort(key=lambda item: _int(item.get("order")))
        numbers = [_int(item.get("ended")) for item in items]
        branches = {string(item.get("branch")) for item in items}
        is_parallel = any(not related(*pair) for pair in combinations(branches, 2)) or sorted(numbers) != numbers
        if not is_parallel or not all(numbers) or any(_branch(item) is None for item in items):
            continue
        equal: Counter[tuple[str, str]] = Counter()
        ends: list[Ended] = []
        for item in items:
            key = string(item.get("branch")), string(item.get("tool")) if item.get("kind") == "tool" else MODEL
            equal[key] += 1
            ends.append(Ended(turn, *key, equal[key]))
        yield from (end for _, end in sorted(zip(numbers, ends, strict=True), key=lambda pair: pair[0]))


def _why_not(escaped: Iterable[str]) -> str:
    names = ", ".join(dict.fromkeys(escaped))
    return _ESCAPED.format(names) if names else ""


def _replayed(pairs: Iterable[tuple[int, Mapping[str, Any]]]) -> frozenset[int]:
    return frozenset(number for number, (_, item) in enumerate(pairs) if item.get("from") == "frozen")


def _tool_call(turn: int, item: Mapping[str, Any], pieces: Pieces) -> ToolCall:
    lost = string(item.get("lost"))
    args, answer, effects = {}, None, Effects()
    error = _error(item)
    try:
        args = mapping(pieces.read(string(item.get("args"))))
        effects = _effects(mapping(item.get("effects")), pieces)
        if error is None and not lost:
            answer = pieces.read(string(item.get("answer")))
    except PieceLostError as reason:
        lost, error = str(reason), None
    call = ToolCall(
        turn,
        string(item.get("agent")),
        string(item.get("tool")),
        args,
        _branch(item),
        answer,
        error,
        lost,
        effects,
        _seconds(item),
        order=_int(item.get("order")),
        state=string(item.get("state")),
        call=string(item.get("call")),
        streams=item.get("streams") is True,
    )
    if not holds_secret([call.outcome(), effects.as_json()]):
        return call
    readable = replace(
        effects,
        state=readable_bytes(effects.state),
        in_place=readable_bytes(effects.in_place),
        artifacts=tuple(replace(one, content=readable_bytes(one.content)) for one in effects.artifacts),
    )
    return replace(call, answer=readable_bytes(answer), effects=readable, secret=True)


def _model_call(turn: int, item: Mapping[str, Any], pieces: Pieces) -> ModelCall:
    lost, error = string(item.get("lost")), _error(item)
    responses: tuple[Any, ...] = ()
    try:
        if error is None and not lost:
            named = item.get("responses")
            responses = tuple(pieces.read(string(name)) for name in (named if isinstance(named, list) else ()))
    except PieceLostError as reason:
        lost = str(reason)
    call = ModelCall(
        turn,
        string(item.get("agent")),
        string(item.get("asked")),
        _branch(item),
        _request(item.get("request")),
        responses,
        error,
        lost,
        _seconds(item),
        order=_int(item.get("order")),
        state=string(item.get("state")),
        span=_int(item.get("span")),
    )
    if not holds_secret(call.outcome()):
        return call
    return replace(call, responses=tuple(map(readable_bytes, responses)), secret=True)


def _without_secret_requests(models: Iterable[ModelCall], pieces: Pieces) -> tuple[ModelCall, ...]:
    """Return calls of models without the digests of requests that held a secret: a replay would not match them.

    Without a digest, a call answers the agent's next request.
    """

    @cache
    def is_secret(part: str) -> bool:
        try:
            return holds_secret(pieces.read(part))
        except PieceLostError:
            return False

    found = []
    for model in models:
        request = model.request or {}
        parts = [request[name] for name in ("system", "tools", "config") if name in request]
        has_secret = any(map(is_secret, [*parts, *request.get("contents", ())]))
        found.append(replace(model, asked="") if has_secret else model)
    return tuple(found)


def _request(given: Any) -> dict[str, Any] | None:
    """Return a request's model and the digests of its parts, or None if they were not recorded."""
    if not isinstance(given, dict):
        return None
    known = {name: given[name] for name in ("system", "tools", "config") if isinstance(given.get(name), str)}
    return {"model": string(given.get("model")), **known, "contents": list(strings(given.get("contents")))}


def _parts(recording: Recording, pieces: Pieces) -> Iterator[tuple[str, Any]]:
    """Yield the texts of requests that were stored uncut."""
    requests = (model.request for model in recording.models if model.request is not None)
    for name in dict.fromkeys(digest for request in requests for digest in text_parts(request)):
        with contextlib.suppress(PieceLostError):
            yield name, _whole(pieces.read(name))


def _effects(item: Mapping[str, Any], pieces: Pieces) -> Effects:
    state, actions, in_place = (
        mapping(pieces.read(string(item[name]))) if name in item else {} for name in ("state", "actions", "in_place")
    )
    artifacts = tuple(
        Artifact(
            string(artifact.get("name")),
            mapping(pieces.read(string(artifact.get("content")))),
            version if type(version := artifact.get("version")) is int else None,
            string(artifact.get("mime")),
        )
        for artifact in objects(item.get("artifacts"))
    )
    return Effects(state, artifacts, actions, in_place)


def _declarations(item: Mapping[str, Any], pieces: Pieces) -> Iterator[tuple[tuple[str, int], Declaration]]:
    for tool in objects(item.get("tools")):
        name, declaration = string(tool.get("name")), None
        try:
            declaration = pieces.read(tool["declaration"]) if isinstance(tool.get("declaration"), str) else None
        except PieceLostError:
            continue  # A toolset without it is reported as a miss.
        toolset = _int(tool.get("toolset"))
        yield (
            (name, toolset),
            Declaration(
                name,
                declaration,
                toolset,
                long_running=tool.get("long_running") is True,
                instruction=string(tool.get("instruction")),
                confirmation=tool.get("confirmation") is True,
                error=_error(tool),
                hidden=tool.get("hidden") is True,
                config=tuple(objects(tool.get("config"))),
                types=strings(tool.get("types"))[:64],
                since=max(1, _int(tool.get("since"))),
                source=string(tool.get("source")),
            ),
        )


def _error(item: Mapping[str, Any]) -> RecordedError | None:
    error = item.get("error")
    if not isinstance(error, dict):
        return None
    types = strings(error.get("types"))[:64] or ("builtins.Exception",)
    return RecordedError(types, string(error.get("message")), mapping(error.get("attributes")))


def _branch(item: Mapping[str, Any]) -> str | None:
    branch = item.get("branch", "")
    return branch if isinstance(branch, str) else None


def _seconds(item: Mapping[str, Any]) -> float | None:
    seconds = item.get("seconds")
    is_one = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e9
    return round(float(seconds), 3) if is_one else None  # type: ignore[arg-type]


def _int(value: Any) -> int:
    return value if type(value) is int else 0


def _secret_arguments(calls: Iterable[ToolCall]) -> dict[str, tuple[str, ...]]:
    """Return the arguments that held a secret, by tool. They cannot be compared, so they are ignored."""
    found: dict[str, list[str]] = {}
    for call in calls:
        for name, value in call.args.items():
            if holds_secret(value) and name not in found.setdefault(call.tool, []):
                found[call.tool].append(name)
    return {tool: tuple(names) for tool, names in found.items() if names}


# Executions without recorded calls


def _traces(steps: Iterable[Event], spans: Iterable[SpansRecorded]) -> Iterator[tuple[int, Node]]:
    """Yield the number of each turn with the root of its tree of spans."""
    recorded = {event.turn: event for event in spans}
    actual = {step.turn: step.actual for step in steps if isinstance(step, TurnFinished)}
    for turn in sorted({*recorded, *actual}):
        events = mapping(actual.get(turn, {}).get("intermediate_data")).get("invocation_events")
        yield turn, read_turn(turn, recorded.get(turn), events if isinstance(events, list) else []).root


def _is_call(node: Node) -> bool:
    """Return whether a span is a tool call that can be replayed: not of an agent as a tool or of a control tool."""
    return node.kind == "tool" and "runs" not in node.facts and node.name not in CONTROL_TOOLS


def _span_call(turn: int, node: Node, pieces: Pieces) -> ToolCall:
    agent = string(node.facts.get("agent")) or (node.parent.name if node.parent is not None else "")
    args, answer, lost, error = {}, None, "", None
    try:
        args = mapping(_span_piece(node, "args", "asked", pieces))
        if node.error:
            error = _named_error(node.error)
        else:
            answer = _span_piece(node, "response", "answer", pieces)
    except PieceLostError as reason:
        lost = str(reason)
    seconds = None if node.seconds is None else round(node.seconds, 3)
    call = ToolCall(turn, agent, node.name, args, None, answer, error, lost, seconds=seconds)
    return replace(call, secret=holds_secret(call.outcome()))


def _span_piece(node: Node, name: str, without_spans: str, pieces: Pieces) -> Any:
    """Return the arguments or the answer of a call, from the tree itself or from the span's piece.

    Raises:
        PieceLostError: the value was not recorded, or was cut.
    """
    if without_spans in node.facts:
        return node.facts[without_spans]
    if not isinstance(node.facts.get(name), str):
        raise PieceLostError("it was not recorded")
    return _whole(pieces.read(node.facts[name]))


def _whole(value: Any) -> Any:
    """Return a piece of a span. Raise PieceLostError if it was cut."""
    if isinstance(value, dict) and value.keys() == {"cut_at", "characters", "begins"}:
        raise PieceLostError(_CUT)
    return value


def _named_error(sentence: str) -> RecordedError:
    """Return the error that a span describes as `Type: message`. A type that is not built in becomes Exception."""
    match = _ERROR.fullmatch(sentence)
    kind = getattr(builtins, match[1], None) if match is not None else None
    if match is None or not (isinstance(kind, type) and issubclass(kind, Exception)):
        return RecordedError(("builtins.Exception",), sentence)
    bases = [base for base in kind.__mro__ if issubclass(base, Exception)]
    return RecordedError(tuple(f"builtins.{base.__name__}" for base in bases), match[2] or "")
