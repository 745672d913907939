"""The record of a turn equals that of ADK's own evaluation, for any events."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.agents.worker.jsonable import dumps

pytest.importorskip("google.adk.telemetry._instrumentation", reason="google-adk 2.13 or later is not installed")

from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from workbench.agents.worker.adk_record import Turn

USER = types.Content(role="user", parts=[types.Part(text="hello")])

_PARTS = st.sampled_from(
    [
        types.Part(text=""),
        types.Part(text="a"),
        types.Part(text="thinking", thought=True),
        types.Part(function_call=types.FunctionCall(id="1", name="f", args={"n": None, "list": [1, {"k": 2.5}]})),
        types.Part(function_call=types.FunctionCall(name="g", args={})),
        types.Part(function_response=types.FunctionResponse(id="1", name="f", response={"ok": True})),
        types.Part(inline_data=types.Blob(data=b"\xff\xfe\x00", mime_type="image/png")),
        types.Part(file_data=types.FileData(file_uri="gs://x", mime_type="image/png")),
        types.Part(executable_code=types.ExecutableCode(code="1 + 1", language=types.Language.PYTHON)),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")),
    ]
)
_CONTENTS = st.none() | st.builds(
    lambda role, parts: types.Content(role=role, parts=parts),
    st.sampled_from(["model", "user", None]),
    st.none() | st.lists(_PARTS, max_size=3),
)
_USAGES = st.none() | st.builds(
    types.GenerateContentResponseUsageMetadata,
    prompt_token_count=st.none() | st.just(5),
    candidates_token_count=st.none() | st.just(2),
)
_GROUNDINGS = st.none() | st.just(types.GroundingMetadata(web_search_queries=["why"]))
_EVENTS = st.builds(
    Event,
    invocation_id=st.just("i-1"),
    author=st.sampled_from(["desk", "clerk", "user", "User", ""]),
    content=_CONTENTS,
    partial=st.sampled_from([None, False, True]),
    error_code=st.sampled_from([None, None, "SAFETY"]),
    long_running_tool_ids=st.sampled_from([None, None, {"1"}]),
    actions=st.builds(EventActions, skip_summarization=st.sampled_from([None, None, True])),
    grounding_metadata=_GROUNDINGS,
    usage_metadata=_USAGES,
    model_version=st.sampled_from([None, "m-1"]),
)


@given(st.lists(_EVENTS, min_size=1, max_size=6))
@settings(max_examples=400, deadline=None)
def test_turn_is_recorded_as_adk_records_it(events: list[Any]) -> None:
    message = Event(invocation_id="i-1", author="user", content=USER)
    (theirs,) = EvaluationGenerator.convert_events_to_eval_invocations([message, *events])
    turn = Turn(USER.model_dump(exclude_none=True), message.timestamp)
    for event in events:
        turn.add(event)
    ours = json.loads(dumps(turn.invocation({}, {"duration": None})))
    assert ours.pop("app_details") == {}
    assert ours == json.loads(theirs.model_dump_json(exclude_none=True))


def test_note_names_error_codes_once() -> None:
    turn = Turn({}, 0.0)
    for _ in range(2):
        turn.add(Event(invocation_id="i", author="desk", error_code="MAX_TOKENS", error_message="too long"))
    more = "raise max_output_tokens in the agent's generate_content_config"
    assert turn.note == f"the model answered with error code MAX_TOKENS: too long; {more}"


def test_answer_that_was_cut_is_noted_with_its_remedy() -> None:
    turn = Turn({}, 0.0)
    content = types.Content(role="model", parts=[types.Part(text="It is")])
    reason = types.FinishReason.MAX_TOKENS
    turn.add(Event(invocation_id="i", author="desk", content=content, finish_reason=reason))
    more = "raise max_output_tokens in the agent's generate_content_config"
    assert turn.note == f"the model's answer was cut (MAX_TOKENS); {more}"
