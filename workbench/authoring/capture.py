"""From a conversation that took place to a case: what was said and done becomes what is expected.

A conversation is kept as ADK invocations with snake_case keys, one a turn. The case has the shape that its file uses:
`invocation_events` as ADK's web page records them, or `tool_uses` as people write them.
"""

import copy
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.authoring.spelling import get
from workbench.model.breaches import snake
from workbench.model.invocation import content_text, intermediate_texts, tool_calls

Json = dict[str, Any]

_USER = "user"
_LONGEST_ID = 40
"""Characters of an id that is made of what was said."""
_KEPT_OF_EVENT = ("author", "content", "grounding_metadata")
"""What ADK's own record of a step has; what it cost and which model it was change from run to run."""
_FUNCTIONS = ("function_call", "function_response")
_OPAQUE = frozenset({"args", "response", "state", "part_metadata"})
"""Keys whose values belong to the user: their spelling is nobody else's."""


class NoSessionError(ValueError):
    """What was given is no session of ADK's; the message begins with the place."""


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
    return _in_camel(case) if camel else case


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


def free_id(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, or with the first number from 2 on that makes it a new one."""
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


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
    events = (turn.get("intermediate_data") or {}).get("invocation_events")
    if events is None:
        events = _events_of(turn)
    kept = (_event(event, choice) for event in events if isinstance(event, dict))
    return {"invocation_events": [event for event in kept if event is not None]}


def _event(event: Json, choice: Choice) -> Json | None:
    """The event as it is kept; None where nothing of it is."""
    content = event.get("content")
    parts = [part for part in (content or {}).get("parts") or () if isinstance(part, dict) and _stays(part, choice)]
    if not parts:
        return None
    kept = {key: copy.deepcopy(event[key]) for key in _KEPT_OF_EVENT if event.get(key) is not None}
    kept["content"] = _without_private({**(content or {}), "parts": parts})
    return kept


def _stays(part: Json, choice: Choice) -> bool:
    is_tool = any(part.get(name) is not None for name in _FUNCTIONS)
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
    for part in kept.get("parts") or ():
        if isinstance(part, dict):
            part.pop("thought_signature", None)
    return kept


def _in_camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {to_camel(key): item if key in _OPAQUE else _in_camel(item) for key, item in value.items()}


# ADK's own sessions


def case_from_session(session: Any) -> Captured:
    """A session as ADK writes it as JSON (`adk run --save_session`, the session of its web page; either spelling), as a
    conversation.

    The state of a session file is that after the last turn; that before the first one is worked out where the events
    tell all that was changed, and what they do not tell is left as it is, with a note.

    Raises:
        NoSessionError: it is no session, or has no turn with a message of the user.
    """
    if not isinstance(session, dict):
        raise NoSessionError("the file must hold one object, a session of ADK's, with app_name, user_id and events")
    if get(session, "eval_cases") is not None:
        raise NoSessionError("eval_cases: this is an evalset, not a session")
    app_name = _text(session, "app_name")
    user_id = _text(session, "user_id")
    events = get(session, "events")
    if not isinstance(events, list):
        raise NoSessionError("events: this must be a list of ADK's events" + (" (it is missing)" * (events is None)))
    state = get(session, "state")
    if state is not None and not isinstance(state, dict):
        raise NoSessionError("state: this must be an object")
    checked = [_snake_event(event, number) for number, event in enumerate(events)]
    turns, notes = _turns(checked)
    if not turns:
        raise NoSessionError("events: no message of a user is among them, so there is no turn to keep")
    before, doubt = _state_before(state or {}, checked)
    return Captured(app_name, user_id, tuple(turns), before, (*notes, *doubt))


def _text(session: Json, name: str) -> str:
    value = get(session, name)
    if not isinstance(value, str) or not value:
        raise NoSessionError(f"{name}: this must be text" + (" (it is missing)" if value is None else ""))
    return value


def _snake_event(event: Any, number: int) -> Json:
    if not isinstance(event, dict):
        raise NoSessionError(f"events[{number}]: this must be an object")
    kept: Json = _in_snake(event)
    content = kept.get("content")
    if content is not None and not isinstance(content, dict):
        raise NoSessionError(f"events[{number}].content: this must be an object")
    parts = (content or {}).get("parts")
    if parts is not None and not (isinstance(parts, list) and all(isinstance(part, dict) for part in parts)):
        raise NoSessionError(f"events[{number}].content.parts: this must be a list of objects")
    for place, part in enumerate(parts or ()):
        _check_part(part, f"events[{number}].content.parts[{place}]")
    return kept


def _check_part(part: Json, place: str) -> None:
    if not isinstance(part.get("text"), str | None):
        raise NoSessionError(f"{place}.text: this must be text")
    for function, inside in (("function_call", "args"), ("function_response", "response")):
        value = part.get(function)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise NoSessionError(f"{place}.{function}: this must be an object")
        if not isinstance(value.get("name"), str):
            raise NoSessionError(f"{place}.{function}.name: this must be text")
        if not isinstance(value.get(inside), dict | None):
            raise NoSessionError(f"{place}.{function}.{inside}: this must be an object")


def _in_snake(value: Any) -> Any:
    """Keys that are ADK's in snake_case; those of the user as they are. `state_delta` is the user's."""
    if isinstance(value, list):
        return [_in_snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    own = {*_OPAQUE, "state_delta"}
    return {snake(key): item if snake(key) in own else _in_snake(item) for key, item in value.items()}


def _turns(events: Sequence[Json]) -> tuple[list[Json], list[str]]:
    """The invocations, by ADK's rules (`EvaluationGenerator.convert_events_to_eval_invocations`): events of one
    `invocation_id` are one turn, and the last final response with text is its answer."""
    groups: dict[str, list[Json]] = {}
    for event in events:
        groups.setdefault(str(event.get("invocation_id") or ""), []).append(event)
    turns: list[Json] = []
    notes: list[str] = []
    for number, group in enumerate(groups.values(), 1):
        users = [event for event in group if _is_user(event) and _parts(event)]
        if not users:
            notes.append(f"invocation {number} has no message of the user, and is left out")
            continue
        turn = _turn_of(users[-1], [event for event in group if not _is_user(event)])
        if "final_response" not in turn:
            notes.append(f"turn {len(turns) + 1} has no answer")
        turns.append(turn)
    return turns, notes


def _turn_of(user: Json, acted: Sequence[Json]) -> Json:
    final: Json | None = None
    for event in acted:
        if _parts(event) and _is_final(event) and (final is None or _has_text(event) or not _has_text(final)):
            final = event
    turn: Json = {"user_content": user["content"]}
    if final is not None:
        turn["final_response"] = final["content"]
    steps = [event for event in acted if event is not final or _has(event, "function_call")]
    turn["intermediate_data"] = {"invocation_events": [event for event in steps if _counts(event)]}
    if isinstance(user.get("timestamp"), int | float):
        turn["creation_timestamp"] = user["timestamp"]
    return turn


def _state_before(after: Json, events: Sequence[Json]) -> tuple[Json, Iterator[str] | tuple[str, ...]]:
    """The state before the first turn, as far as it can be known: without the keys that events set."""
    changed: dict[str, None] = {}
    for event in events:
        delta = (event.get("actions") or {}).get("state_delta") if isinstance(event.get("actions"), dict) else None
        if isinstance(delta, dict):
            changed.update(dict.fromkeys(delta))
    gone = [key for key in after if key in changed]
    before = {key: copy.deepcopy(value) for key, value in after.items() if key not in changed}
    if not gone:
        return before, ()
    names = ", ".join(gone[:5]) + (" …" if len(gone) > 5 else "")
    return before, (f"left out of the initial state, for the agent set it on the way: {names}",)


def _is_user(event: Json) -> bool:
    return str(event.get("author") or "agent").lower() == _USER


def _is_final(event: Json) -> bool:
    """`Event.is_final_response` of google-adk, without a running agent's knowledge."""
    actions = event.get("actions") if isinstance(event.get("actions"), dict) else {}
    if (actions or {}).get("skip_summarization") or event.get("long_running_tool_ids"):
        return True
    return not (_has(event, "function_call") or _has(event, "function_response") or event.get("partial"))


def _counts(event: Json) -> bool:
    return any(part.get(name) for part in _parts(event) for name in (*_FUNCTIONS, "text", "inline_data"))


def _has(event: Json, name: str) -> bool:
    return any(part.get(name) is not None for part in _parts(event))


def _has_text(event: Json) -> bool:
    return any(part.get("text") for part in _parts(event))


def _parts(event: Json) -> list[Json]:
    content = event.get("content") or {}
    return content.get("parts") or []
