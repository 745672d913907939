"""From a conversation that took place to a case: what was said and done becomes what is expected.

A conversation is kept as ADK invocations with snake_case keys, one a turn. The case has the shape that its file uses:
`invocation_events` as ADK's web page records them, or `tool_uses` as people write them.
"""

import copy
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.json_values import parts_of
from workbench.model.invocation import content_text, intermediate_texts, recorded_events, tool_calls
from workbench.model.spelling import get, respelled

Json = dict[str, Any]

_LONGEST_ID = 40
"""Characters of an id that is made of what was said."""
_KEPT_OF_EVENT = ("author", "content", "grounding_metadata")
"""What ADK's own record of a step has; what it cost and which model it was change from run to run."""
FUNCTIONS = ("function_call", "function_response")


@dataclass(frozen=True)
class Captured:
    """A conversation as it took place. `turns` are invocations, complete ones only; `state` is that of the session
    before the first message, and `notes` say what of the conversation cannot be in a case."""

    app_name: str
    user_id: str
    turns: tuple[Json, ...]
    state: Json
    notes: tuple[str, ...] = ()

    def calls(self, turns: Collection[int]) -> int:
        """How many tools were called in these turns."""
        return sum(len(tool_calls(turn)) for number, turn in enumerate(self.turns) if number in turns)

    def said_before(self, turns: Collection[int]) -> int:
        """How many texts there were in these turns before the answers."""
        return sum(len(intermediate_texts(turn)) for number, turn in enumerate(self.turns) if number in turns)


@dataclass(frozen=True)
class Choice:
    """What of a conversation goes into the case. `turns` are numbers from 0; `recorded`: the steps as
    `invocation_events`, else as `tool_uses`."""

    eval_id: str
    turns: frozenset[int]
    tools: bool = True
    said_before: bool = True
    state: bool = True
    recorded: bool = False


def case_of(
    captured: Captured,
    choice: Choice,
    *,
    now: float,
    camel: bool = False,
    fresh: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> Json:
    """The case, as it is to stand in a file: in camelCase if the file is. `now` is when it is made (seconds since
    1970), `fresh` makes the ids of its turns: those of the conversation belong to that."""
    turns = [_turn(turn, choice, fresh()) for number, turn in enumerate(captured.turns) if number in choice.turns]
    session = {
        "app_name": captured.app_name,
        "user_id": captured.user_id,
        "state": copy.deepcopy(captured.state) if choice.state else {},
    }
    case = {"eval_id": choice.eval_id, "conversation": turns, "session_input": session, "creation_timestamp": now}
    return respelled(case, to_camel) if camel else case


def uses_events(cases: Iterable[Any]) -> bool | None:
    """Which shape cases of a file have: True for `invocation_events`, False for `tool_uses`, None: none says."""
    for case in cases:
        for turn in get(case, "conversation") or ():
            data = get(turn, "intermediate_data")
            if get(data, "invocation_events") is not None:
                return True
            if get(data, "tool_uses") is not None or get(data, "intermediate_responses") is not None:
                return False
    return None


def id_from(captured: Captured, otherwise: str) -> str:
    """An id made of the first words of the user, `otherwise` if there are none."""
    words = re.findall(r"\w+", content_text(captured.turns[0].get("user_content")).lower()) if captured.turns else []
    name = ""
    for word in words:
        if len(name) + len(word) > _LONGEST_ID:
            break
        name = f"{name}_{word}" if name else word
    return name or (words[0][:_LONGEST_ID] if words else otherwise)


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
    said = [[author, [{"text": text}]] for author, text in intermediate_texts(turn)]
    data: Json = {"tool_uses": uses if choice.tools else []}
    if choice.said_before and said:
        data["intermediate_responses"] = said
    return data


def _recorded(turn: Json, choice: Choice) -> Json:
    events = recorded_events(turn)
    if events is None:
        events = _events_of(turn)
    kept = (_event(event, choice) for event in events if isinstance(event, dict))
    return {"invocation_events": [event for event in kept if event is not None]}


def _event(event: Json, choice: Choice) -> Json | None:
    """The event as it is kept; None where nothing of it is."""
    content = event.get("content")
    parts = [part for part in parts_of(content) if _stays(part, choice)]
    if not parts:
        return None
    kept = {key: copy.deepcopy(event[key]) for key in _KEPT_OF_EVENT if event.get(key) is not None}
    kept["content"] = _without_private({**(content or {}), "parts": parts})
    return kept


def _stays(part: Json, choice: Choice) -> bool:
    is_tool = any(part.get(name) is not None for name in FUNCTIONS)
    return choice.tools if is_tool else choice.said_before


def _events_of(turn: Json) -> list[Json]:
    """The steps of a turn that has them as people write them, as events."""
    said = [_said(author, [{"text": text}]) for author, text in intermediate_texts(turn)]
    calls = [{"function_call": {"name": call.name, "args": call.args or {}}} for call in tool_calls(turn)]
    return [*([_said("agent", calls)] if calls else []), *said]


def _said(author: str, parts: Sequence[Json]) -> Json:
    return {"author": author, "content": {"role": "model", "parts": list(parts)}}


def _without_private(content: Json) -> Json:
    """The content without signatures of thoughts, which mean something to one model in one session."""
    kept = copy.deepcopy(content)
    for part in parts_of(kept):
        part.pop("thought_signature", None)
    return kept
