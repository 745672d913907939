"""Test cases of ADK's conformance tests, read as conversations that can become cases.

A test case is a folder with `spec.yaml`, written by hand, and what `adk conformance record` made of it:
`generated-recordings.yaml` and `generated-session.yaml`, or both with `-sse` for streamed answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.agents.worker.forms import encoded
from workbench.authoring.adk_session import NoSessionError, case_from_session
from workbench.authoring.capture import Captured
from workbench.authoring.session_calls import NOT_IN_SESSIONS, is_gated, responses_of
from workbench.counting import few
from workbench.json_values import mapping, objects, string
from workbench.recordings.recording import Effects, ModelCall, Recording, ToolCall

Json = dict[str, Any]

_USER = "adk_conformance_test_user"
_UNKNOWN = "not in the recording: tools of toolsets; requests to models are not compared"
_SYNTHETIC = "the test case has no generated-session.yaml, so state and branches are not known"


def case_from_conformance(spec: Any, recordings: Any, session: Any = None) -> Captured:
    """Return a conformance test case as a conversation with its recorded calls.

    Arguments are the data of the three files. Without a session, the conversation is made of the other two.

    Raises:
        NoSessionError: a file has a wrong form.
    """
    agent, messages = string(mapping(spec).get("agent")), objects(mapping(spec).get("user_messages"))
    if not agent or not messages:
        raise NoSessionError("spec.yaml: it must have `agent` and `user_messages`")
    state = mapping(spec).get("initial_state")
    if state is not None and not isinstance(state, dict):
        raise NoSessionError("spec.yaml: initial_state: this must be an object")
    items = mapping(recordings).get("recordings")
    if not isinstance(items, list):
        raise NoSessionError("generated-recordings.yaml: it must have a list `recordings`")
    made = session if session is not None else _session(messages, objects(items))
    base = case_from_session({**mapping(made), "app_name": agent, "user_id": _USER, "state": state or {}})
    notes = [note for note in base.notes if note != NOT_IN_SESSIONS] if session is not None else [_SYNTHETIC]
    notes.append(_UNKNOWN)
    for number, message in enumerate(messages, 1):
        if delta := mapping(message.get("state_delta")):
            notes.append(f"message {number} also sets state, which a case cannot: {few(list(delta))}")
    recording = base.recording
    assert recording is not None
    calls, models = _recorded(objects(items), recording, has_session=session is not None)
    return replace(
        base, state=state or {}, notes=tuple(notes), recording=replace(recording, calls=calls, models=models)
    )


def _session(messages: Sequence[Json], items: Sequence[Json]) -> Json:
    """Return a session with the events that follow from the messages and recordings."""
    events: list[Json] = []
    for index, message in enumerate(messages):
        content = message.get("content") or {"role": "user", "parts": [{"text": message.get("text") or ""}]}
        events.append({"author": "user", "content": content, "invocation_id": f"turn {index + 1}"})
        for item in items:
            if item.get("user_message_index") == index:
                events += ({**event, "invocation_id": f"turn {index + 1}"} for event in _events(item))
    return {"events": events}


def _events(item: Json) -> Iterator[Json]:
    author = string(item.get("agent_name"))
    for response in responses_of(mapping(item.get("llm_recording")).get("llm_responses")):
        yield {"author": author, "content": response.get("content")}
    answer = mapping(item.get("tool_recording")).get("tool_response")
    if answer:
        yield {"author": author, "content": {"role": "user", "parts": [{"function_response": answer}]}}


def _recorded(
    items: Sequence[Json], of_session: Recording, *, has_session: bool
) -> tuple[tuple[ToolCall, ...], tuple[ModelCall, ...]]:
    """Return the recorded calls. The session supplies branches and effects, which the recordings do not have."""
    left = list(of_session.calls) if has_session else []
    calls: list[ToolCall] = []
    models: list[ModelCall] = []
    for item in items:
        index, agent = item.get("user_message_index"), string(item.get("agent_name"))
        if type(index) is not int or index < 0:
            raise NoSessionError("generated-recordings.yaml: user_message_index: this must be a number from 0")
        asked, answered = (
            mapping(mapping(item.get("tool_recording")).get(key)) for key in ("tool_call", "tool_response")
        )
        name = string(asked.get("name"))
        responses = responses_of(mapping(item.get("llm_recording")).get("llm_responses"))
        if is_gated(name):
            known = _same(left, index + 1, agent, name, mapping(asked.get("args")))
            branch, effects = (known.branch, known.effects) if known is not None else (None, Effects())
            args, answer = mapping(asked.get("args")), encoded(answered.get("response"))
            calls.append(ToolCall(index + 1, agent, name, args, branch, answer, effects=effects))
        elif responses:
            models.append(ModelCall(index + 1, agent, "", None, None, responses))
    return tuple(calls), tuple(models)


def _same(left: list[ToolCall], turn: int, agent: str, tool: str, args: Mapping[str, Any]) -> ToolCall | None:
    """Take the first call of the session that equals a recorded one."""
    for number, call in enumerate(left):
        if (call.turn, call.agent, call.tool, call.args) == (turn, agent, tool, args):
            return left.pop(number)
    return None
