"""Conversion of a recorded conversation into a case.

A conversation is a list of ADK invocations with snake_case keys, one per turn. The case's steps have the form that its
file uses: `invocation_events` as ADK's web page records them, or `tool_uses` as written by hand.
"""

import copy
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.files.invocation import content_text, intermediate_texts, recorded_events, tool_calls
from workbench.files.spelling import get, respelled
from workbench.run.recordings.recording import Recording
from workbench.text.json_values import objects, parts_of

Json = dict[str, Any]

_MAX_ID = 40
"""Maximum length of an ID derived from the user's message, in characters."""
_EVENT_FIELDS = ("author", "content", "grounding_metadata")
"""Stable fields of a recorded step. Others, such as cost and model, differ between runs."""
FUNCTIONS = ("function_call", "function_response")
MODEL = "model"
"""Author of the root agent's events in a session's history."""


@dataclass(frozen=True)
class Captured:
    """A recorded conversation.

    `turns` are its complete invocations. `state` is the session's state before the first message, and `states[i]` is
    the state after turn i, or None if it is not known. `notes` name parts that a case cannot contain. `recording` has
    the calls of tools and models, with turns from 1; it is None if they are not known. `keeps_recording` is whether the
    recording is kept by default.
    """

    app_name: str
    user_id: str
    turns: tuple[Json, ...]
    state: Json
    notes: tuple[str, ...] = ()
    recording: Recording | None = None
    keeps_recording: bool = True
    states: tuple[Json | None, ...] = ()

    def state_after(self, turn: int) -> Json | None:
        """Return the session's state after a turn (from 0; -1: before the first one), or None if it is not known."""
        if turn < 0:
            return self.state
        return self.states[turn] if turn < len(self.states) else None

    def call_count(self, turns: Collection[int]) -> int:
        """Return the number of tool calls in these turns."""
        return sum(len(tool_calls(turn)) for number, turn in enumerate(self.turns) if number in turns)

    def text_count(self, turns: Collection[int]) -> int:
        """Return the number of texts before the answers in these turns."""
        return sum(len(intermediate_texts(turn)) for number, turn in enumerate(self.turns) if number in turns)


@dataclass(frozen=True)
class Choice:
    """The parts of a conversation to put into a case.

    `turns` are numbers from 0. Those before `start` become the history of the session, with all their steps. `tools`
    includes tool calls, `texts` the texts before the answers, and `state` the session's state at the start. `recorded`
    selects `invocation_events` for the steps, else `tool_uses`. `frozen` also keeps the recorded calls. `end_state`
    expects the session's state after the last turn.
    """

    eval_id: str
    turns: frozenset[int]
    tools: bool = True
    texts: bool = True
    state: bool = True
    recorded: bool = False
    frozen: bool = True
    start: int = 0
    end_state: bool = False

    @property
    def history(self) -> list[int]:
        """The chosen turns before the case."""
        return sorted(turn for turn in self.turns if turn < self.start)

    @property
    def case_turns(self) -> list[int]:
        """The chosen turns of the case."""
        return sorted(turn for turn in self.turns if turn >= self.start)


def case_of(
    captured: Captured,
    choice: Choice,
    *,
    now: float,
    camel: bool = False,
    fresh: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> Json:
    """Return the case as its file should contain it, in camelCase if `camel` is set.

    `now` is the time of creation in seconds since 1970. `fresh` makes new IDs for the turns, because the old IDs belong
    to the conversation.
    """
    turns = [_turn(captured.turns[number], choice, fresh()) for number in choice.case_turns]
    session: Json = {
        "app_name": captured.app_name,
        "user_id": captured.user_id,
        "state": copy.deepcopy(state_at_start(captured, choice)) if choice.state else {},
    }
    if choice.history:
        session["events"] = [event for number in choice.history for event in history_events(captured.turns[number])]
    case = {"eval_id": choice.eval_id, "conversation": turns, "session_input": session, "creation_timestamp": now}
    if choice.end_state and (state := end_state(captured, choice)) is not None:
        case["final_session_state"] = copy.deepcopy(state)
    return respelled(case, to_camel) if camel else case


def state_at_start(captured: Captured, choice: Choice) -> Json:
    """Return the session's state before the first turn of the case, or the conversation's initial state if unknown."""
    known = captured.state_after(choice.history[-1]) if choice.history else captured.state
    return captured.state if known is None else known


def end_state(captured: Captured, choice: Choice) -> Json | None:
    """Return the session's state after the last turn of the case. None if it is not known, or if no turn is chosen."""
    return captured.state_after(choice.case_turns[-1]) if choice.case_turns else None


def history_events(turn: Json) -> list[Json]:
    """Return a turn as events of a session: the user's message, all steps with tool responses, and the answer."""
    events = [{"author": "user", "content": _without_private(turn.get("user_content") or {})}]
    acted = _events_of(turn)
    for event in acted:
        if parts_of(event.get("content")):
            events.append({"author": event.get("author") or MODEL, "content": _without_private(event["content"])})
    if turn.get("final_response") is not None:
        author = next((event["author"] for event in reversed(acted) if event.get("author")), MODEL)
        events.append({"author": author, "content": _without_private(turn["final_response"])})
    return events


def recording_of(captured: Captured, choice: Choice) -> Recording | None:
    """Return the recording of the case that `case_of` makes, or None if there are no calls or it is not wanted."""
    known = captured.recording
    if known is None or not choice.frozen or not (known.calls or known.models):
        return None
    return replace(of_turns(known, [turn + 1 for turn in choice.case_turns]), eval_id=choice.eval_id)


def of_turns(recording: Recording, turns: Sequence[int]) -> Recording:
    """Return the recording with only the calls of these turns (from 1), renumbered in this order."""
    now = {old: new for new, old in enumerate(turns, 1)}
    calls = tuple(replace(call, turn=now[call.turn]) for call in recording.calls if call.turn in now)
    models = tuple(replace(model, turn=now[model.turn]) for model in recording.models if model.turn in now)
    ended = tuple(replace(one, turn=now[one.turn]) for one in recording.ended if one.turn in now)
    return replace(recording, calls=calls, models=models, ended=ended)


def uses_events(cases: Iterable[Any]) -> bool | None:
    """Return whether the first turn with steps has `invocation_events`, or None if no turn of the cases has steps."""
    for case in cases:
        for turn in get(case, "conversation") or ():
            data = get(turn, "intermediate_data")
            if get(data, "invocation_events") is not None:
                return True
            if get(data, "tool_uses") is not None or get(data, "intermediate_responses") is not None:
                return False
    return None


def id_from(captured: Captured, default: str) -> str:
    """Return an ID of at most 40 characters made from the user's first words, or `default` if there are none."""
    words = re.findall(r"\w+", content_text(captured.turns[0].get("user_content")).lower()) if captured.turns else []
    name = ""
    for word in words:
        if len(name) + len(word) > _MAX_ID:
            break
        name = f"{name}_{word}" if name else word
    return name or (words[0][:_MAX_ID] if words else default)


def _turn(turn: Json, choice: Choice, invocation_id: str) -> Json:
    kept: Json = {"invocation_id": invocation_id, "user_content": _without_private(turn.get("user_content") or {})}
    if turn.get("final_response") is not None:
        kept["final_response"] = _without_private(turn["final_response"])
    if choice.recorded:
        events = (_event(event, choice) for event in _events_of(turn))
        kept["intermediate_data"] = {"invocation_events": [event for event in events if event is not None]}
    else:
        kept["intermediate_data"] = _authored(turn, choice)
    if isinstance(turn.get("creation_timestamp"), int | float):
        kept["creation_timestamp"] = turn["creation_timestamp"]
    return kept


def _authored(turn: Json, choice: Choice) -> Json:
    uses = [{"name": call.name, "args": copy.deepcopy(call.args or {})} for call in tool_calls(turn)]
    texts = [[author, [{"text": text}]] for author, text in intermediate_texts(turn)]
    data: Json = {"tool_uses": uses if choice.tools else []}
    if choice.texts and texts:
        data["intermediate_responses"] = texts
    return data


def _event(event: Json, choice: Choice) -> Json | None:
    """Return the event reduced to the chosen parts, or None if it has none of them."""
    content = event.get("content")
    parts = []
    for part in parts_of(content):
        is_tool = any(part.get(name) is not None for name in FUNCTIONS)
        if choice.tools if is_tool else choice.texts:
            parts.append(part)
    if not parts:
        return None
    kept = {key: copy.deepcopy(event[key]) for key in _EVENT_FIELDS if event.get(key) is not None}
    kept["content"] = _without_private({**(content or {}), "parts": parts})
    return kept


def _events_of(turn: Json) -> list[Json]:
    """Return a turn's `invocation_events`, or without them an event with all tool calls and an event for each text."""
    events = recorded_events(turn)
    if events is not None:
        return objects(events)
    texts = [_model_event(author, [{"text": text}]) for author, text in intermediate_texts(turn)]
    calls = [{"function_call": {"name": call.name, "args": call.args or {}}} for call in tool_calls(turn)]
    return [*([_model_event("agent", calls)] if calls else []), *texts]


def _model_event(author: str, parts: Sequence[Json]) -> Json:
    return {"author": author, "content": {"role": "model", "parts": list(parts)}}


def _without_private(content: Json) -> Json:
    """Return a copy of the content without thought signatures, which are of no use in another session."""
    kept = copy.deepcopy(content)
    for part in parts_of(kept):
        part.pop("thought_signature", None)
    return kept
