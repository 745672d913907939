"""Sessions saved by ADK, and the sessions of `adk test`, read as conversations that can become cases.

A session has the answers of tools and models only as its events show them: after callbacks, and with the actions of
parallel calls merged into one event. It lacks calls inside agent tools, declarations of tools, and requests to models.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench.editing.capture import FUNCTIONS, Captured
from workbench.files.faults import snake
from workbench.files.invocation import OPAQUE
from workbench.files.spelling import get, respelled
from workbench.run.recordings.from_run import CONTROL_TOOLS
from workbench.run.recordings.recording import Effects, ModelCall, Origin, Recording, ToolCall
from workbench.text.counting import few
from workbench.text.json_values import mapping, objects, parts_of, string
from workbench.worker.value_forms import encoded

Json = dict[str, Any]

_USER = "user"
_OWN_KEYS = {*OPAQUE, "state_delta", "artifact_delta", "requested_tool_confirmations", "requested_auth_configs"}
"""Keys of a session whose values are the user's own data, in which no key is respelled."""


class NoSessionError(ValueError):
    """The data is not an ADK session or conformance test case. The message says which part is wrong."""


def case_from_session(session: Any, *, app_name: str = "") -> Captured:
    """Return an ADK session in JSON form, with camelCase or snake_case keys, as a conversation with its recorded calls.

    Files of `adk run --save_session` and of ADK's web page have the state after the last turn. The state before the
    first turn is that state without the keys that events changed or that are internal to ADK. Notes name these keys.
    Sessions of `adk test` have only events. `app_name` is used for sessions without an app name.

    Raises:
        NoSessionError: the data is not a session, or has no turn with a user message.
    """
    if not isinstance(session, dict):
        raise NoSessionError("the file must contain one ADK session: an object with app_name, user_id and events")
    if get(session, "eval_cases") is not None:
        raise NoSessionError("eval_cases: this is an evalset, not a session")
    app_name = _text(session, "app_name", app_name)
    user_id = _text(session, "user_id", _USER if app_name and get(session, "app_name") is None else "")
    events = get(session, "events")
    if not isinstance(events, list):
        raise NoSessionError("events: this must be a list of ADK events" + (" (it is missing)" * (events is None)))
    state = get(session, "state")
    if state is not None and not isinstance(state, dict):
        raise NoSessionError("state: this must be an object")
    checked = [_snake_event(event, number) for number, event in enumerate(events)]
    turns, groups, notes = _turns(checked)
    if not turns:
        raise NoSessionError("events: none of them is a user message, so there is no turn")
    before, state_notes = _state_before(state or {}, checked)
    recording, call_notes = _recorded(app_name, groups)
    if mocks := get(session, "mocks"):
        notes.append(f"the test mocks {few(list(mocks), 5)}, but a case cannot" if isinstance(mocks, dict) else "")
    every = (*notes, *state_notes, *call_notes)
    # A file has the state after its last turn only.
    after = {key: value for key, value in (state or {}).items() if not _is_internal(key)}
    states = (*(None for _ in turns[1:]), after if state is not None else None)
    return Captured(app_name, user_id, tuple(turns), before, tuple(filter(None, every)), recording, states=states)


def _text(session: Json, name: str, default: str = "") -> str:
    value = get(session, name)
    if value is None and default:
        return default
    if not isinstance(value, str) or not value:
        raise NoSessionError(f"{name}: this must be text" + (" (it is missing)" if value is None else ""))
    return value


def _snake_event(event: Any, number: int) -> Json:
    if not isinstance(event, dict):
        raise NoSessionError(f"events[{number}]: this must be an object")
    kept: Json = respelled(event, snake, _OWN_KEYS)
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


def _turns(events: Sequence[Json]) -> tuple[list[Json], list[list[Json]], list[str]]:
    """Return the invocations, the agent's events in each, and notes.

    The rules are ADK's (`EvaluationGenerator.convert_events_to_eval_invocations`): events with the same `invocation_id`
    are one turn, and the last final response with text is its answer.
    """
    groups: dict[str, list[Json]] = {}
    for event in events:
        groups.setdefault(str(event.get("invocation_id") or ""), []).append(event)
    turns: list[Json] = []
    acted: list[list[Json]] = []
    notes: list[str] = []
    for number, group in enumerate(groups.values(), 1):
        users = [event for event in group if _is_user(event) and _parts(event)]
        if not users:
            notes.append(f"invocation {number} is left out: it has no user message")
            continue
        acted.append([event for event in group if not _is_user(event)])
        turn = _turn_of(users[-1], acted[-1])
        if "final_response" not in turn:
            notes.append(f"turn {len(turns) + 1} has no answer")
        if any("function_response" in part for part in _parts(users[-1])):
            why = "the user answers a call by its ID, which may differ in a new conversation"
            notes.append(f"turn {len(turns) + 1}: {why}")
        turns.append(turn)
    return turns, acted, notes


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


def _state_before(after: Json, events: Sequence[Json]) -> tuple[Json, Sequence[str]]:
    """Return the state without internal keys and without keys that events set, and notes that name these keys."""
    changed: set[str] = set()
    for event in events:
        changed.update(mapping(mapping(event.get("actions")).get("state_delta")))
    own = [key for key in after if _is_internal(key)]
    gone = [key for key in after if key in changed and key not in own]
    before = {key: copy.deepcopy(value) for key, value in after.items() if key not in (*own, *gone)}
    notes = []
    if gone:
        notes.append(f"left out of the initial state, because the agent set it later: {few(gone, 5)}")
    if own:
        notes.append(f"left out of the initial state, because it is internal to ADK: {few(own, 5)}")
    return before, notes


def _is_internal(key: str) -> bool:
    """Return whether a key of the state is internal to ADK (`__name__`), such as the session title of its web page."""
    return len(key) > 4 and key.startswith("__") and key.endswith("__")


def _is_user(event: Json) -> bool:
    return str(event.get("author") or "agent").lower() == _USER


def _is_final(event: Json) -> bool:
    """Return whether an event in JSON form is final by google-adk's `Event.is_final_response`.

    The rules for errors and results of code execution are left out.
    """
    if mapping(event.get("actions")).get("skip_summarization") or event.get("long_running_tool_ids"):
        return True
    return not (_has(event, "function_call") or _has(event, "function_response") or event.get("partial"))


def _counts(event: Json) -> bool:
    return any(part.get(name) for part in _parts(event) for name in (*FUNCTIONS, "text", "inline_data"))


def _has(event: Json, name: str) -> bool:
    return any(part.get(name) is not None for part in _parts(event))


def _has_text(event: Json) -> bool:
    return any(part.get("text") for part in _parts(event))


def _parts(event: Json) -> list[Json]:
    content = event.get("content") or {}
    return content.get("parts") or []


OWN_CALL = "$call"
"""Placeholder for the ID of a call in its own effects, because the ID differs in each conversation."""
_REQUESTS = "adk_request_"
"""Prefix of the names of calls by which ADK asks the user."""
_SETS_RESPONSE = "set_model_response"
_SHARED = ("skip_summarization", "escalate", "transfer_to_agent")
_OWN = ("requested_tool_confirmations", "requested_auth_configs")
_RESPONSE = ("content", "grounding_metadata", "finish_reason", "error_code", "error_message", "usage_metadata")
NOT_IN_SESSIONS = "not in the recording: requests to models, tools of toolsets, and calls inside of agent tools"


def _recorded(app_name: str, turns: Sequence[Sequence[Json]]) -> tuple[Recording, Iterable[str]]:
    """Return the recording of the agents' events, which are given for each turn, and notes.

    Model calls have no digest of their request, so a replay answers an agent's next request with its next unused call.
    """
    notes: list[str] = []
    tools = tuple(call for turn, events in enumerate(turns, 1) for call in _tools(turn, events, notes))
    models = tuple(model for turn, events in enumerate(turns, 1) for model in _models(turn, events))
    if tools or models:
        notes.append(NOT_IN_SESSIONS)
    recording = Recording("", "", app_name, Origin(framework="google-adk"), calls=tools, models=models)
    return recording, dict.fromkeys(notes)


def _tools(turn: int, events: Sequence[Json], notes: list[str]) -> Iterator[ToolCall]:
    """Yield the tool calls of a turn. Remarks about their effects are added to `notes`."""
    answers: dict[tuple[str, str], list[tuple[Any, Effects]]] = {}
    for event in events:
        for key, value, effects in _answers(turn, event, notes):
            answers.setdefault(key, []).append((value, effects))
    for event in events:
        for part in parts_of(event.get("content")):
            made = mapping(part.get("function_call"))
            name, args = string(made.get("name")), mapping(made.get("args"))
            if not is_gated(name):
                continue
            waiting = answers.get((string(made.get("id")), name))
            lost = "" if waiting else "the session has no answer to it"
            value, effects = waiting.pop(0) if waiting else (None, Effects())
            author, branch = string(event.get("author")), string(event.get("branch"))
            yield ToolCall(turn, author, name, args, branch, value, lost=lost, effects=effects)


def _answers(turn: int, event: Json, notes: list[str]) -> Iterator[tuple[tuple[str, str], Any, Effects]]:
    """Yield the answers of tools in an event: call ID and tool, the value, and the effects that come from it.

    The effects of parallel calls are merged in the event. The last call gets them all, and a note says so.
    """
    responses = [item for part in parts_of(event.get("content")) if (item := mapping(part.get("function_response")))]
    given = [item for item in responses if is_gated(string(item.get("name")))]
    if not given:
        return
    actions = mapping(event.get("actions"))
    state = mapping(actions.get("state_delta"))
    # If one of ADK's own tools answered, too, the shared effects may be its own.
    known = _SHARED if len(given) == len(responses) else ()
    shared = {name: actions[name] for name in known if actions.get(name)}
    for item in given:
        call_id, is_last = string(item.get("id")), item is given[-1]
        # ADK stores requested confirmations and credentials by call ID.
        asked = {name: mapping(actions.get(name)).get(call_id) for name in _OWN}
        own = {name: {OWN_CALL: value} for name, value in asked.items() if value is not None}
        values = {key: encoded(value) for key, value in state.items()} if is_last else {}
        effects = Effects(values, (), {**own, **(shared if is_last else {})})
        yield (call_id, string(item.get("name"))), encoded(item.get("response")), effects
    who = f"turn {turn}: {few([string(item.get('name')) for item in given])}"
    if len(given) > 1 and (state or shared):
        notes.append(f"{who} ran in parallel, and their effects are merged; the last one gets all")
    if saved := mapping(actions.get("artifact_delta")):
        notes.append(f"{who} saved {few(list(saved))}, but a session does not have its content")


def is_gated(tool: str) -> bool:
    """Return whether calls of a tool are replayed. ADK's own tools always run."""
    return bool(tool) and tool not in CONTROL_TOOLS and not tool.startswith(_REQUESTS)


def _models(turn: int, events: Iterable[Json]) -> Iterator[ModelCall]:
    """Yield the answers of models: the messages of agents that neither ADK nor a tool created."""
    set_by: set[str] = set()
    """Agents whose next message only repeats the arguments of `set_model_response`."""
    for event in events:
        author, parts = string(event.get("author")), list(parts_of(event.get("content")))
        answered = [
            string(mapping(part["function_response"]).get("name"))
            for part in parts
            if part.get("function_response") is not None
        ]
        called = [string(mapping(part.get("function_call")).get("name")) for part in parts]
        if _SETS_RESPONSE in answered:
            set_by.add(author)
        elif answered or event.get("partial") or any(name.startswith(_REQUESTS) for name in called):
            continue
        elif author in set_by:
            set_by.discard(author)
        elif parts or event.get("error_code"):
            response = {name: event[name] for name in _RESPONSE if event.get(name) is not None}
            yield ModelCall(turn, author, "", string(event.get("branch")), None, (response,))


def responses_of(given: Any) -> tuple[Json, ...]:
    """Return the complete responses in a list of ADK's LlmResponses. Parts of a stream are left out."""
    return tuple(response for response in objects(given) if not response.get("partial"))
