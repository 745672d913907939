"""Forks of recorded conversations: the points of a fork, and the possible changes at a point."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseRef,
    CaseStarted,
    Event,
    ForkChange,
    ForkOf,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)
from workbench.files.invocation import content_text, recorded_events
from workbench.run.recordings.from_run import NotRecordedError, take_recording
from workbench.run.recordings.recording import ModelCall, Origin, Recording, ToolCall, digest
from workbench.store.spans import Node, read_turn
from workbench.text.json_values import mapping, parsed_objects, parts_of, string, strings

AnyCall: TypeAlias = ToolCall | ModelCall
Json: TypeAlias = dict[str, Any]


class CannotForkError(Exception):
    """A fork that is not possible. The message says why, without a full stop."""


@dataclass(frozen=True, slots=True)
class OriginalTurn:
    """A turn: the user's message, and the agent's events with the content of its answer."""

    user: Json
    events: tuple[Json, ...]
    actual: Json | None = None
    """The finished turn, or None if it did not end."""


@dataclass(frozen=True, slots=True)
class OriginalCall:
    """A call of a tool or model.

    `turn` counts from 0. `before` is the number of the turn's events before the event of the call. If the number is not
    known, `before` is a lower bound, and `placed` is False.
    """

    call: AnyCall
    turn: int
    before: int
    placed: bool = True

    @property
    def tool(self) -> str:
        """The name of the tool, or "" for a call of a model."""
        return self.call.tool if isinstance(self.call, ToolCall) else ""


@dataclass(frozen=True, slots=True)
class Original:
    """A recorded conversation. `calls` are those of tools and models, in the order in which they began.

    `recording` has its other parts, such as the declarations of tools.
    """

    ref: CaseRef
    run_id: str
    started: CaseStarted
    turns: tuple[OriginalTurn, ...]
    calls: tuple[OriginalCall, ...]
    recording: Recording
    escaped: Mapping[int, str] = field(default_factory=dict)
    """Turn → the tools that the agent called itself, so that a repeated turn would really call them."""

    @property
    def has_models(self) -> bool:
        """Whether calls of models are recorded. For plain Python agents they are not."""
        return any(not call.tool for call in self.calls)

    def calls_of(self, turn: int) -> range:
        """Return the indexes of the calls of a turn."""
        first = sum(call.turn < turn for call in self.calls)
        return range(first, first + sum(call.turn == turn for call in self.calls))


def read_original(
    ref: CaseRef, run_id: str, started: CaseStarted | None, steps: Iterable[Event], state: Path | None
) -> Original:
    """Return the conversation with these events. `state` is the state folder with the runs. Reads files.

    Raises:
        CannotForkError: the case has not started, its calls were not recorded, or a fault was injected into one.
    """
    known = tuple(steps)
    if started is None:
        raise CannotForkError("the case has not started")
    turns = _turns(known, ref.agent)
    if not any(isinstance(step, CallsRecorded) for step in known) and not _has_no_calls(known, turns):
        raise CannotForkError("its calls were not recorded, for example because the run was not stored")
    try:
        recording = take_recording(ref, known, state, Origin(run_id)).recording
    except NotRecordedError as error:
        raise CannotForkError(str(error)) from None
    made: list[AnyCall] = [*recording.calls, *recording.models]
    calls = sorted(made, key=lambda call: (call.turn, call.order))
    return Original(
        ref,
        run_id,
        started,
        turns,
        tuple(_placed(calls, known, turns)),
        replace(recording, calls=(), models=()),
        {step.turn: tools for step in known if isinstance(step, CallsRecorded) and (tools := _escaped(step))},
    )


def _escaped(step: CallsRecorded) -> str:
    items = parsed_objects(step.calls) if '"escaped"' in step.calls else ()
    return ", ".join(tool for item in items if item.get("kind") == "escaped" for tool in strings(item.get("tools")))


def _has_no_calls(steps: Sequence[Event], turns: Sequence[OriginalTurn]) -> bool:
    spans = {step.turn: step for step in steps if isinstance(step, SpansRecorded)}
    nodes = (node for number, turn in enumerate(turns) for node in _nodes(number, spans.get(number), turn))
    return len(spans) == len(turns) and not any("request" in node.facts for node in nodes)


def _turns(steps: Sequence[Event], agent: str) -> tuple[OriginalTurn, ...]:
    users: dict[int, Json] = {}
    acted: dict[int, list[Json]] = {}
    actual: dict[int, Json] = {}
    for step in steps:
        match step:
            case TurnStarted():
                users[step.turn] = step.user
            case AgentActed():
                acted.setdefault(step.turn, []).append(step.acted)
            case TurnFinished():
                actual[step.turn] = step.actual
    return tuple(
        OriginalTurn(
            users[turn], tuple(events_with_answer(actual.get(turn), acted.get(turn, []), agent)), actual.get(turn)
        )
        for turn in sorted(users)
    )


def events_with_answer(actual: Json | None, acted: Sequence[Json], agent: str) -> Sequence[Json]:
    """Return the events of a turn as the agent made them.

    The event of an ADK agent's answer is stored without its content, and that of a plain Python agent not at all.
    """
    recorded = None if actual is None else recorded_events(actual)
    if actual is None or recorded is None:
        return acted
    answer, is_adk = actual.get("final_response"), "app_details" in actual
    if answer is None or (is_adk and any(event.get("content") == answer for event in recorded)):
        return recorded
    if not is_adk or all("content" in event for event in recorded):
        return [*recorded, {"author": agent, "content": answer}]
    return [event if "content" in event else {**event, "content": answer} for event in recorded]


def _placed(calls: Iterable[AnyCall], steps: Sequence[Event], turns: Sequence[OriginalTurn]) -> Iterator[OriginalCall]:
    """Yield each call with the number of events before it in its turn, or a lower bound if that is unknown."""
    spans = {step.turn: step for step in steps if isinstance(step, SpansRecorded)}
    models = {
        (number, node.number): min(node.events)
        for number, turn in enumerate(turns)
        for node in _nodes(number, spans.get(number), turn)
        if node.kind == "model" and node.events
    }
    floor: dict[int, int] = {}
    """Turn → the largest number of events before a call so far."""
    for call in calls:
        turn = call.turn - 1
        found = models.get((turn, call.span)) if isinstance(call, ModelCall) else _response(turns, turn, call.call)
        if found is not None:
            floor[turn] = max(found, floor.get(turn, 0))
        yield OriginalCall(call, turn, floor.get(turn, 0) if found is None else found, found is not None)


def _response(turns: Sequence[OriginalTurn], turn: int, call_id: str) -> int | None:
    """Return the number of the turn's event with the response to a call, or None."""
    for number, event in enumerate(turns[turn].events if call_id and turn < len(turns) else ()):
        responses = (mapping(part.get("function_response")) for part in parts_of(event.get("content")))
        if any(response.get("id") == call_id for response in responses):
            return number
    return None


def _nodes(number: int, spans: SpansRecorded | None, turn: OriginalTurn) -> Iterable[Node]:
    return () if spans is None else read_turn(number, spans, list(turn.events)).root.walk()


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a fork.

    `value` is the new text of a message or instruction, the name of a model, or an answer as JSON data. `agent` is the
    agent whose instruction or model is changed. With `whole`, the new instruction also replaces those that ADK and
    toolsets add to the agent's requests.
    """

    kind: ForkChange = "nothing"
    value: Any = None
    agent: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork of `original` at a turn (from 0), or before one of its calls (an index, or None).

    With `frozen`, tools are answered from the recording after the point, too.

    Raises:
        CannotForkError: there is no such point, or the change does not fit it.
    """

    original: Original
    turn: int
    call: int | None = None
    change: Change = Change()
    frozen: bool = False

    def __post_init__(self) -> None:
        why = self._why_not()
        if why:
            raise CannotForkError(why)

    def _why_not(self) -> str:
        original, kind = self.original, self.change.kind
        if not 0 <= self.turn < len(original.turns):
            return f"there is no turn {self.turn + 1}"
        if escaped := [f"{tools} in turn {turn + 1}" for turn, tools in original.escaped.items() if turn < self.turn]:
            return f"the agent itself called {escaped[0]}, and would again; in plain Python, use `session.tool`"
        if self.call is not None and not original.has_models:
            return "a plain Python agent can be forked only at turns, because its calls of models are not recorded"
        if self.call is not None and self.call not in original.calls_of(self.turn):
            return f"there is no such call in turn {self.turn + 1}"
        lost = next((number for number, call in enumerate(self._before()) if call.call.lost), None)
        if lost is not None:
            return f"the outcome of call {lost + 1} was not recorded: {original.calls[lost].call.lost}"
        if kind == "message" and self.call is not None:
            return "a message can be changed only at its turn"
        if kind == "answer" and self._changed_call() is None:
            return "an answer can be changed only at the call of a tool"
        if kind in ("instruction", "model") and not original.has_models:
            return f"the {kind} of a plain Python agent is not known"
        agents = dict.fromkeys(call.call.agent for call in original.calls if isinstance(call.call, ModelCall))
        if kind in ("instruction", "model") and self.change.agent not in agents:
            named = f"no agent {self.change.agent} asked its model" if self.change.agent else "the agent is not named"
            return f"{named}; agents of the conversation: {', '.join(agents)}"
        return ""

    def origin(self) -> ForkOf:
        """Return the fork as runs store it."""
        change, text = self.change, ""
        if change.kind != "nothing":
            text = json.dumps(change.value, ensure_ascii=False) if change.kind == "answer" else str(change.value)
        number = 0 if self.call is None else self.call + 1
        run, repeat = self.original.run_id, self.original.ref.repeat
        return ForkOf(run, repeat, self.turn, number, change.kind, change.agent, text)

    # For the worker (docs/worker-protocol.md)

    def settings(self) -> Json:
        """Return the setting `fork` of the case's `calls`."""
        change, tools = self.change, self.original.recording.tools
        settings: Json = {
            "turn": self.turn,
            "change": None,
            "artifacts": self._artifacts(),
            "next": list(self._next()),
            "tools": {agent: [tool.as_json() for tool in declared] for agent, declared in tools.items()},
        }
        if change.kind in ("instruction", "model"):
            settings["change"] = {"kind": change.kind, "agent": change.agent, "text": change.value}
            settings["change"]["whole"] = change.whole
        return settings

    def frames(self) -> Iterator[Json]:
        """Yield the messages that precede the first turn: expected events, and calls from before the point."""
        for turn, event in self._expected():
            yield {"op": "expected", "turn": turn, "acted": event}
        for order, call in enumerate(self._before()):
            yield {"op": "recorded", "call": call.call.wire(order), "before_fork": True}

    def rest(self) -> Recording | None:
        """Return the recording of the tools after the point, or None if they are live."""
        if not self.frozen:
            return None
        after = self.original.calls[len(self._before()) :]
        calls = tuple(call.call for call in after if isinstance(call.call, ToolCall))
        return replace(self.original.recording, calls=calls, ended=())  # Which names calls before the point, too.

    # The user

    def messages(self) -> tuple[Json, ...]:
        """Return the user's messages up to the turn of the point, as contents."""
        contents = [turn.user for turn in self.original.turns[: self.turn + 1]]
        if self.change.kind == "message" and (text := str(self.change.value)) != content_text(contents[-1]):
            files = [part for part in parts_of(contents[-1]) if "text" not in part]  # They stay.
            contents[-1] = {**contents[-1], "parts": [{"text": text}, *files]}
        return tuple(contents)

    # The parts

    def _limit(self) -> int:
        return self.call if self.call is not None else self.original.calls_of(self.turn).start

    def _changed_call(self) -> ToolCall | None:
        call = self.original.calls[self.call].call if self.call is not None else None
        return call if isinstance(call, ToolCall) else None

    def _before(self) -> list[OriginalCall]:
        """Return the calls that the recording answers. If an answer is changed, its call is the last one."""
        before = list(self.original.calls[: self._limit()])
        changed = self._changed_call()
        if self.change.kind == "answer" and changed is not None and self.call is not None:
            answered: AnyCall = replace(changed, answer=self.change.value, error=None, lost="")
            before.append(replace(self.original.calls[self.call], call=answered))
        return before

    def _expected(self) -> Iterator[tuple[int, Json]]:
        for number, turn in enumerate(self.original.turns[: self.turn]):
            yield from ((number, event) for event in turn.events)
        if self.change.kind != "message" and self._limit() in self.original.calls_of(self.turn):
            before = self.original.calls[self._limit()].before
            yield from ((self.turn, event) for event in self.original.turns[self.turn].events[:before])

    def _next(self) -> Iterator[Json]:
        """Yield the calls that may be the first live one. After a changed message or answer, any may be: yield none."""
        if self.change.kind in ("message", "answer"):
            return
        for index in self.original.calls_of(self.turn):
            if index >= self._limit():
                call = self.original.calls[index].call
                kind = "tool" if isinstance(call, ToolCall) else "model"
                named = {"tool": call.tool} if isinstance(call, ToolCall) else {}
                state = {"state": call.state} if call.state else {}
                yield {"kind": kind, "agent": call.agent, "branch": call.branch, **named, **state}

    def _artifacts(self) -> dict[str, str]:
        """Return digests of the artifacts that tools saved before the point, by name."""
        calls = [call.call for call in self._before()]
        saved = [artifact for call in calls if not isinstance(call, ModelCall) for artifact in call.effects.artifacts]
        return {artifact.name: digest(dict(artifact.content)) for artifact in saved}


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a conversation: the start of a turn (from 0), or a call, by its index."""

    turn: int
    call: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be changed at a point. `text` is its present text (JSON for an answer), or "" without one."""

    kind: ForkChange
    agent: str = ""
    text: str = ""

    def change(self, text: str, *, whole: bool = False) -> Change:
        """Return the change to another text. Raise ValueError if the text of an answer is not JSON."""
        value: Any = json.loads(text) if self.kind == "answer" else text
        return Change(self.kind, value, self.agent, whole)


def point_of(original: Original, names: Iterable[str]) -> Point | None:
    """Return the point with one of these names, which the panes use, or None.

    Names are `call/TURN/ID`, `event/TURN/NUMBER`, `span/TURN/NUMBER` and `user/TURN`. The first known name counts.
    """
    for name in names:
        kind, _, rest = name.partition("/")
        turn, _, what = rest.partition("/")
        if not turn.isdecimal() or int(turn) >= len(original.turns):
            continue
        if kind == "user":
            return Point(int(turn))
        for index in original.calls_of(int(turn)):
            if _is_named(original.calls[index], kind, what):
                return Point(int(turn), index) if original.has_models else Point(int(turn))
    return None


def _is_named(call: OriginalCall, kind: str, name: str) -> bool:
    match kind, call.call:
        case "call", ToolCall() as tool:
            return bool(name) and tool.call == name
        case "span", ModelCall() as model:
            return bool(model.span) and str(model.span) == name
        case "event", ModelCall():
            return name.isdecimal() and call.before == int(name) and call.placed
    return False


def choices_at(original: Original, point: Point) -> Iterator[Choice]:
    """Yield the possible changes at a point: of its message or answer, then of instructions, models, and nothing.

    Agents that act from the point on come first.
    """
    call = None if point.call is None else original.calls[point.call].call
    if call is None:
        yield Choice("message", text=content_text(original.turns[point.turn].user))
    elif isinstance(call, ToolCall):
        has_answer = call.error is None and not call.lost
        yield Choice("answer", call.agent, json.dumps(call.answer, indent=2, ensure_ascii=False) if has_answer else "")
    start = point.call if point.call is not None else original.calls_of(point.turn).start
    models: dict[str, ModelCall] = {}
    for ahead in (*original.calls[start:], *original.calls[:start]):
        if isinstance(ahead.call, ModelCall) and ahead.call.agent:
            models.setdefault(ahead.call.agent, ahead.call)
    for agent, model in models.items():
        sent = string(original.recording.parts.get(string((model.request or {}).get("system"))))
        yield Choice("instruction", agent, sent)
    for agent, model in models.items():
        yield Choice("model", agent, string((model.request or {}).get("model")))
    yield Choice("nothing")


def describe_point(original: Original, point: Point) -> str:
    """Return a point in a few words: `turn 2`, or `call 3 of 5 (print_label)`. Raw text."""
    if point.call is None:
        return f"turn {point.turn + 1}"
    name = original.calls[point.call].tool or "model"
    return f"call {point.call + 1} of {len(original.calls)} ({name})"
