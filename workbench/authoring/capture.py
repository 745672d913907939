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

from workbench.json_values import parts_of
from workbench.model.invocation import content_text, intermediate_texts, recorded_events, tool_calls
from workbench.model.spelling import get, respelled
from workbench.recordings.recording import Recording

Json = dict[str, Any]

_MAX_ID = 40
"""Maximum length of an ID derived from the user's message, in characters."""
_EVENT_FIELDS = ("author", "content", "grounding_metadata")
"""Stable fields of a recorded step. Others, such as cost and model, differ between runs."""
FUNCTIONS = ("function_call", "function_response")


@dataclass(frozen=True)
class Captured:
    """A recorded conversation.

    `turns` are its complete invocations. `state` is the session's state before the first message. `notes` name parts
    that a case cannot contain. `recording` has the calls of tools and models, with turns from 1, if they are known.
    `keeps_recording` is the default of the choice to keep it.
    """

    app_name: str
    user_id: str
    turns: tuple[Json, ...]
    state: Json
    notes: tuple[str, ...] = ()
    recording: Recording | None = None
    keeps_recording: bool = True

    def call_count(self, turns: Collection[int]) -> int:
        """Return the number of tool calls in these turns."""
        return sum(len(tool_calls(turn)) for number, turn in enumerate(self.turns) if number in turns)

    def text_count(self, turns: Collection[int]) -> int:
        """Return the number of texts before the answers in these turns."""
        return sum(len(intermediate_texts(turn)) for number, turn in enumerate(self.turns) if number in turns)


@dataclass(frozen=True)
class Choice:
    """The parts of a conversation to put into a case.

    `turns` are numbers from 0. `texts` includes texts before the answers. `recorded` selects `invocation_events` for
    the steps, else `tool_uses`. `frozen` also keeps the recorded calls.
    """

    eval_id: str
    turns: frozenset[int]
    tools: bool = True
    texts: bool = True
    state: bool = True
    recorded: bool = False
    frozen: bool = True


def case_of(
    captured: Captured,
    choice: Choice,
    *,
    now: float,
    camel: bool = False,
    fresh: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> Json:
    """Return the case as its file should contain it, in camelCase if the file uses that.

    `now` is the time of creation in seconds since 1970. `fresh` makes new IDs for the turns, because the old IDs belong
    to the conversation.
    """
    turns = [_turn(turn, choice, fresh()) for number, turn in enumerate(captured.turns) if number in choice.turns]
    session = {
        "app_name": captured.app_name,
        "user_id": captured.user_id,
        "state": copy.deepcopy(captured.state) if choice.state else {},
    }
    case = {"eval_id": choice.eval_id, "conversation": turns, "session_input": session, "creation_timestamp": now}
    return respelled(case, to_camel) if camel else case


def recording_of(captured: Captured, choice: Choice) -> Recording | None:
    """Return the recording of the case that `case_of` makes, or None if there is none or it is not wanted."""
    known = captured.recording
    if known is None or not choice.frozen or not (known.calls or known.models):
        return None
    return replace(of_turns(known, [turn + 1 for turn in sorted(choice.turns)]), eval_id=choice.eval_id)


def of_turns(recording: Recording, turns: Sequence[int]) -> Recording:
    """Return the calls of these turns (from 1), which are numbered anew in this order."""
    now = {old: new for new, old in enumerate(turns, 1)}
    calls = tuple(replace(call, turn=now[call.turn]) for call in recording.calls if call.turn in now)
    models = tuple(replace(model, turn=now[model.turn]) for model in recording.models if model.turn in now)
    ended = tuple(replace(one, turn=now[one.turn]) for one in recording.ended if one.turn in now)
    return replace(recording, calls=calls, models=models, ended=ended)


def uses_events(cases: Iterable[Any]) -> bool | None:
    """Return the form of steps in the cases of a file.

    True means `invocation_events`, False `tool_uses`, None that no case has steps.
    """
    for case in cases:
        for turn in get(case, "conversation") or ():
            data = get(turn, "intermediate_data")
            if get(data, "invocation_events") is not None:
                return True
            if get(data, "tool_uses") is not None or get(data, "intermediate_responses") is not None:
                return False
    return None


def id_from(captured: Captured, default: str) -> str:
    """Return an ID from the user's first words, or `default` if there are none."""
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
    kept["intermediate_data"] = _recorded(turn, choice) if choice.recorded else _authored(turn, choice)
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


def _recorded(turn: Json, choice: Choice) -> Json:
    events = recorded_events(turn)
    if events is None:
        events = _events_of(turn)
    kept = (_event(event, choice) for event in events if isinstance(event, dict))
    return {"invocation_events": [event for event in kept if event is not None]}


def _event(event: Json, choice: Choice) -> Json | None:
    """Return the event reduced to the chosen parts, or None if nothing is left."""
    content = event.get("content")
    parts = [part for part in parts_of(content) if _stays(part, choice)]
    if not parts:
        return None
    kept = {key: copy.deepcopy(event[key]) for key in _EVENT_FIELDS if event.get(key) is not None}
    kept["content"] = _without_private({**(content or {}), "parts": parts})
    return kept


def _stays(part: Json, choice: Choice) -> bool:
    is_tool = any(part.get(name) is not None for name in FUNCTIONS)
    return choice.tools if is_tool else choice.texts


def _events_of(turn: Json) -> list[Json]:
    """Return the steps of a turn in the authored form as events."""
    texts = [_model_event(author, [{"text": text}]) for author, text in intermediate_texts(turn)]
    calls = [{"function_call": {"name": call.name, "args": call.args or {}}} for call in tool_calls(turn)]
    return [*([_model_event("agent", calls)] if calls else []), *texts]


def _model_event(author: str, parts: Sequence[Json]) -> Json:
    return {"author": author, "content": {"role": "model", "parts": list(parts)}}


def _without_private(content: Json) -> Json:
    """Return the content without thought signatures, which only one model in one session can read."""
    kept = copy.deepcopy(content)
    for part in parts_of(kept):
        part.pop("thought_signature", None)
    return kept
