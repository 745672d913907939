"""A recorded conversation that can be forked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseRef,
    CaseStarted,
    Event,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)
from workbench.files.invocation import recorded_events
from workbench.run.recordings.from_run import NotRecordedError, take_recording
from workbench.run.recordings.recording import ModelCall, Origin, Recording, ToolCall
from workbench.store.spans import Node, read_turn
from workbench.text.json_values import mapping, parts_of

AnyCall: TypeAlias = ToolCall | ModelCall
Json: TypeAlias = dict[str, Any]


class CannotForkError(Exception):
    """A conversation, or a point in it, cannot be forked. The message says why, without a full stop."""


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

    `turn` counts from 0. `before` is the number of the turn's events that came before the call's own one, or a smaller
    number if that is not known. Then it is not `placed`.
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

    @property
    def has_models(self) -> bool:
        """Whether the calls of its models were seen. Those of plain Python agents are not."""
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
        CannotForkError: its calls were not recorded.
    """
    known = tuple(steps)
    if started is None:
        raise CannotForkError("the case has not started")
    turns = _turns(known, ref.agent)
    if not any(isinstance(step, CallsRecorded) for step in known) and not _has_no_calls(known, turns):
        raise CannotForkError("its calls were not recorded: the run is of an older version, or was not stored")
    try:
        recording = take_recording(ref, known, state, Origin(run_id)).recording
    except NotRecordedError as error:
        raise CannotForkError(str(error)) from None
    made: list[AnyCall] = [*recording.calls, *recording.models]
    calls = sorted(made, key=lambda call: (call.turn, call.order))
    places = _Places(known, turns)
    return Original(
        ref,
        run_id,
        started,
        turns,
        tuple(OriginalCall(call, call.turn - 1, *places.before(call)) for call in calls),
        replace(recording, calls=(), models=()),
    )


def _has_no_calls(steps: Sequence[Event], turns: Sequence[OriginalTurn]) -> bool:
    """Return whether no call of the conversation could be recorded: its agent is plain Python and used no tools."""
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
    answer = actual.get("final_response")
    if answer is None or any(event.get("content") == answer for event in recorded):
        return recorded
    if all("content" in event for event in recorded):
        return [*recorded, {"author": agent, "content": answer}]
    return [event if "content" in event else {**event, "content": answer} for event in recorded]


class _Places:
    """The places of calls in the events of their turns."""

    def __init__(self, steps: Sequence[Event], turns: Sequence[OriginalTurn]) -> None:
        spans = {step.turn: step for step in steps if isinstance(step, SpansRecorded)}
        self._turns = turns
        self._models: dict[tuple[int, int], int] = {}
        self._floor: dict[int, int] = {}
        """Turn → the number of events before the newest call whose place is known."""
        for number, turn in enumerate(turns):
            for node in _nodes(number, spans.get(number), turn):
                if node.kind == "model" and node.events:
                    self._models[number, node.number] = min(node.events)

    def before(self, call: AnyCall) -> tuple[int, bool]:
        """Return the number of events before that of the call, and whether its place is known.

        The calls must be given in order.
        """
        turn = call.turn - 1
        found = self._models.get((turn, call.span)) if isinstance(call, ModelCall) else self._response(turn, call.call)
        floor = self._floor.get(turn, 0)
        self._floor[turn] = floor if found is None else max(found, floor)
        return (floor, False) if found is None else (found, True)

    def _response(self, turn: int, call_id: str) -> int | None:
        events = self._turns[turn].events if turn < len(self._turns) else ()
        for number, event in enumerate(events):
            for part in parts_of(event.get("content")):
                if call_id and mapping(part.get("function_response")).get("id") == call_id:
                    return number
        return None


def _nodes(number: int, spans: SpansRecorded | None, turn: OriginalTurn) -> Iterable[Node]:
    return () if spans is None else read_turn(number, spans, list(turn.events)).root.walk()
