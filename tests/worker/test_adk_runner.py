"""The record of a turn equals that of ADK's own evaluation, for any events."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.worker.jsonable import dumps


@pytest.fixture(scope="module", autouse=True)
def _adk() -> None:
    """Import google-adk when these tests run. If it were imported to collect them, each start would take seconds."""
    pytest.importorskip("google.adk.telemetry._instrumentation", reason="google-adk 2.13 or later is not installed")


def _lists_of_events() -> st.SearchStrategy[list[Any]]:
    from tests.worker.adk_events import EVENTS

    return st.lists(EVENTS, min_size=1, max_size=6)


@given(st.deferred(_lists_of_events))
@settings(max_examples=150, deadline=None)
def test_turn_is_recorded_as_adk_records_it(events: list[Any]) -> None:
    from google.adk.evaluation.evaluation_generator import EvaluationGenerator
    from google.adk.events.event import Event

    from tests.worker.adk_events import USER
    from workbench.worker.adk_runner import Turn

    message = Event(invocation_id="i-1", author="user", content=USER)
    (theirs,) = EvaluationGenerator.convert_events_to_eval_invocations([message, *events])
    turn = Turn(USER.model_dump(exclude_none=True), message.timestamp)
    for event in events:
        turn.add(event)
    ours = json.loads(dumps(turn.invocation({}, {"duration": None})))
    assert ours.pop("app_details") == {}
    assert ours == json.loads(theirs.model_dump_json(exclude_none=True))


def test_note_names_error_codes_once() -> None:
    from google.adk.events.event import Event

    from workbench.worker.adk_runner import Turn

    turn = Turn({}, 0.0)
    for _ in range(2):
        turn.add(Event(invocation_id="i", author="desk", error_code="MAX_TOKENS", error_message="too long"))
    more = "raise max_output_tokens in the agent's generate_content_config"
    assert turn.note == f"the model answered with error code MAX_TOKENS: too long; {more}"


def test_answer_that_was_cut_is_noted_with_its_remedy() -> None:
    from google.adk.events.event import Event
    from google.genai import types

    from workbench.worker.adk_runner import Turn

    turn = Turn({}, 0.0)
    content = types.Content(role="model", parts=[types.Part(text="It is")])
    reason = types.FinishReason.MAX_TOKENS
    turn.add(Event(invocation_id="i", author="desk", content=content, finish_reason=reason))
    more = "raise max_output_tokens in the agent's generate_content_config"
    assert turn.note == f"the model's answer was cut (MAX_TOKENS); {more}"
