"""Conversion of conversations and of ADK's sessions into cases."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.adk_process import Adk
from workbench.editing.adk_session import NoSessionError, case_from_session
from workbench.editing.capture import (
    Captured,
    Choice,
    case_of,
    id_from,
    recording_of,
    uses_events,
)
from workbench.editing.evalset_file import EvalsetFile, new_evalset
from workbench.files.invocation import content_text, intermediate_texts, tool_calls
from workbench.run.recordings.frozen_file import parse_frozen
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import Origin, Recording, ToolCall

adk = pytest.mark.skipif(importlib.util.find_spec("google") is None, reason="google-adk is not installed")


@pytest.fixture(scope="module")
def adk_process() -> Iterator[Adk]:
    running = Adk()
    yield running
    running.close()


@pytest.fixture
def as_adk_reads(adk_process: Adk) -> Callable[[bytes], list[Any]]:
    """Return the cases that google-adk's own loader finds in a file."""

    def read(content: bytes) -> list[Any]:
        answer = adk_process.ask("evalset_file", content.decode())
        assert answer["accepted"], answer["value"]
        cases: list[Any] = answer["value"]
        return cases

    return read


def content_of(text: str, role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def event(author: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"author": author, "content": {"role": "model", "parts": list(parts)}, **more}


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"function_call": {"id": "adk-1", "name": name, "args": args}}


def result(name: str, **response: Any) -> dict[str, Any]:
    return {"function_response": {"id": "adk-1", "name": name, "response": response}}


TURN = {
    "invocation_id": "e-of-the-conversation",
    "user_content": content_of("Wo ist B-12?", "user"),
    "final_response": {"role": "model", "parts": [{"text": "Unterwegs.", "thought_signature": "c2ln"}]},
    "intermediate_data": {
        "invocation_events": [
            event("desk", call("find_order", orderId="B-12"), usage_metadata={"prompt_token_count": 3}),
            event("desk", result("find_order", isThere=True), model_version="m"),
            event("shipper", {"text": "It left yesterday."}),
            {"author": "desk", "usage_metadata": {"prompt_token_count": 4}},
        ]
    },
    "creation_timestamp": 5.0,
    "duration": 0.3,
    "app_details": {"agent_details": {}},
}
CAPTURED = Captured(
    "desk", "user", (TURN, {**TURN, "user_content": content_of("Danke", "user")}), {"orderId": {"aB": 1}}
)
ALL = Choice("mine", frozenset({0, 1}))


def made(choice: Choice = ALL, **options: Any) -> Any:
    names = iter(f"new-{number}" for number in range(9))
    return case_of(CAPTURED, choice, now=7.0, fresh=lambda: next(names), **options)


def test_authored_form_has_calls_and_texts() -> None:
    case = made()
    turn = case["conversation"][0]
    assert turn["invocation_id"] == "new-0"
    assert turn["intermediate_data"] == {
        "tool_uses": [{"name": "find_order", "args": {"orderId": "B-12"}}],
        "intermediate_responses": [["shipper", [{"text": "It left yesterday."}]]],
    }
    assert turn["final_response"] == content_of("Unterwegs.")
    assert set(turn) == {
        "invocation_id", "user_content", "final_response", "intermediate_data", "creation_timestamp"
    }  # fmt: skip
    assert case["session_input"] == {"app_name": "desk", "user_id": "user", "state": {"orderId": {"aB": 1}}}


def test_recorded_form_omits_fields_that_differ_between_runs() -> None:
    events = made(Choice("mine", frozenset({0}), recorded=True))["conversation"][0]["intermediate_data"]
    assert events == {
        "invocation_events": [
            event("desk", call("find_order", orderId="B-12")),
            event("desk", result("find_order", isThere=True)),
            event("shipper", {"text": "It left yesterday."}),
        ]
    }


@pytest.mark.parametrize("recorded", [True, False])
def test_parts_that_were_not_chosen_are_left_out(recorded: bool) -> None:
    case = made(Choice("mine", frozenset({1}), tools=False, texts=False, state=False, recorded=recorded))
    (turn,) = case["conversation"]
    assert content_text(turn["user_content"]) == "Danke"
    assert tool_calls(turn) == []
    assert intermediate_texts(turn) == []
    assert case["session_input"]["state"] == {}


def test_keys_follow_the_file_but_user_data_stays() -> None:
    case = made(Choice("mine", frozenset({0}), recorded=True), camel=True)
    assert case["sessionInput"]["state"] == {"orderId": {"aB": 1}}
    parts = case["conversation"][0]["intermediateData"]["invocationEvents"][0]["content"]["parts"]
    assert parts == [{"functionCall": {"id": "adk-1", "name": "find_order", "args": {"orderId": "B-12"}}}]
    assert "_" not in "".join(case)


@adk
@pytest.mark.parametrize("camel", [True, False])
@pytest.mark.parametrize("recorded", [True, False])
def test_adk_reads_the_captured_case(as_adk_reads: Callable[[bytes], list[Any]], recorded: bool, camel: bool) -> None:
    case = made(Choice("mine", frozenset({0, 1}), recorded=recorded), camel=camel)
    content = EvalsetFile(new_evalset("chats")).added(0, [case])
    (read,) = as_adk_reads(content)
    assert read["eval_id"] == "mine"
    assert len(read["conversation"]) == 2


def test_form_of_a_file_is_that_of_its_first_case_with_steps() -> None:
    nothing = {"conversation": [{"user_content": content_of("hi")}]}
    authored: dict[str, Any] = {"conversation": [{"intermediateData": {"toolUses": []}}]}
    recorded: dict[str, Any] = {"conversation": [{"intermediate_data": {"invocation_events": []}}]}
    assert uses_events([nothing, authored, recorded]) is False
    assert uses_events([recorded, authored]) is True
    assert uses_events([nothing, {"conversation_scenario": {}}]) is None


def test_id_is_made_of_the_first_words_of_the_user() -> None:
    assert id_from(CAPTURED, "chat") == "wo_ist_b_12"
    japanese = Captured("desk", "u", ({"user_content": content_of("ご注文はどこですか" * 9)},), {})
    assert len(id_from(japanese, "chat")) == 40
    assert id_from(Captured("desk", "u", ({"user_content": content_of("…?")},), {}), "chat") == "chat"


def session(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "s", "appName": "desk", "userId": "u", "state": {}, "events": list(events), **more}


def of(invocation: str, author: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"invocationId": invocation, **event(author, *parts), **more}


SESSION = session(
    of("a", "user", {"text": "Where?"}, timestamp=1.5),
    of("a", "desk", {"functionCall": {"name": "find", "args": {"inside_key": 1}}}),
    of("a", "desk", {"functionResponse": {"name": "find", "response": {"innerKey": 1}}},
       actions={"stateDelta": {"orderId": "B-12"}}),
    of("a", "shipper", {"text": "It left."}),
    of("a", "desk", {"text": "On its way."}),
    of("b", "user", {"text": "Thanks"}),
    of("b", "desk", {"text": "You are welcome."}),
    state={"customer": "Mira", "orderId": "B-12"},
)  # fmt: skip


def test_adk_session_becomes_turns() -> None:
    captured = case_from_session(SESSION)
    assert (captured.app_name, captured.user_id, captured.state) == ("desk", "u", {"customer": "Mira"})
    assert "orderId" in captured.notes[0]
    first, second = captured.turns
    assert content_text(first["final_response"]) == "On its way."
    assert [(one.name, one.args) for one in tool_calls(first)] == [("find", {"inside_key": 1})]
    assert intermediate_texts(first) == [("shipper", "It left.")]
    assert content_text(second["user_content"]) == "Thanks"


@adk
def test_session_has_the_turns_that_adk_finds(adk_process: Adk) -> None:
    answer = adk_process.ask("session", json.dumps(SESSION))
    assert answer["accepted"], answer["value"]
    theirs = answer["value"]
    ours = case_from_session(SESSION).turns
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert own["user_content"]["parts"] == other["user_content"]["parts"]
        assert content_text(own["final_response"]) == content_text(other["final_response"])
        assert [(one.name, one.args) for one in tool_calls(own)] == [(one.name, one.args) for one in tool_calls(other)]
        assert intermediate_texts(own) == intermediate_texts(other)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([], "one ADK session"),
        ({"eval_set_id": "x", "eval_cases": []}, "eval_cases: this is an evalset"),
        ({"appName": "a", "events": []}, "user_id: this must be text (it is missing)"),
        ({"app_name": 3, "user_id": "u", "events": []}, "app_name"),
        ({"app_name": "a", "user_id": "u"}, "events: this must be a list"),
        (session(state=[]), "state: this must be an object"),
        (session({"author": "user", "content": "text"}), "events[0].content"),
        (session(of("a", "user"), {"author": "x", "content": {"parts": {}}}), "events[1].content.parts"),
        (session(of("a", "desk", {"functionCall": "find"})), "events[0].content.parts[0].function_call"),
        (session(of("a", "desk", {"functionCall": {"name": 3}})), ".function_call.name: this must be text"),
        (session(of("a", "desk", {"functionCall": {"name": "x", "args": []}})), ".args: this must be an object"),
        (session(of("a", "desk", {"text": 3})), "events[0].content.parts[0].text"),
        (session(of("a", "desk", {"text": "hello"})), "none of them is a user message"),
        (session("no event"), "events[0]: this must be an object"),  # type: ignore[arg-type]
    ],
)
def test_invalid_session_is_refused_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(NoSessionError) as refused:
        case_from_session(value)
    assert place in str(refused.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "appName",
                    "user_id",
                    "events",
                    "state",
                    "author",
                    "content",
                    "parts",
                    "text",
                    "functionCall",
                    "actions",
                    "stateDelta",
                    "invocationId",
                    "args",
                    "timestamp",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(_JSON, st.lists(_JSON, max_size=4))
def test_hostile_sessions_are_refused_or_read(value: Any, events: list[Any]) -> None:
    for one in (value, {"app_name": "a", "user_id": "u", "events": events, "state": {}}):
        try:
            captured = case_from_session(one)
        except NoSessionError:
            continue
        every = frozenset(range(len(captured.turns)))
        for recorded in (True, False):
            json.dumps(case_of(captured, Choice("x", every, recorded=recorded), now=1.0))
        recording = recording_of(captured, Choice("x", every))
        if recording is not None:
            path = Path("x.frozen.json")
            assert parse_frozen(path, frozen_contents(path, recording)[path]) == recording


def test_turns_before_the_start_become_history_with_the_answers_of_tools() -> None:
    states = ({"orderId": 1}, {"orderId": 2})
    captured = replace(CAPTURED, states=states)
    choice = replace(ALL, start=1, end_state=True)
    case = case_of(captured, choice, now=7.0, fresh=lambda: "new")
    assert [turn["user_content"] for turn in case["conversation"]] == [content_of("Danke", "user")]
    events = case["session_input"]["events"]
    assert [event["author"] for event in events] == ["user", "desk", "desk", "shipper", "desk"]
    kinds = [next(iter(event["content"]["parts"][0])) for event in events]
    assert kinds == ["text", "function_call", "function_response", "text", "text"]
    assert "thought_signature" not in json.dumps(events)
    assert case["session_input"]["state"] == {"orderId": 1}
    assert case["final_session_state"] == {"orderId": 2}
    camel = case_of(captured, choice, now=7.0, camel=True)
    assert camel["sessionInput"]["events"][1]["content"]["parts"][0]["functionCall"]["args"] == {"orderId": "B-12"}
    assert camel["finalSessionState"] == {"orderId": 2}
    dropped = case_of(captured, replace(choice, state=False), now=7.0)
    assert dropped["session_input"]["state"] == {}


def test_unknown_end_state_is_not_expected() -> None:
    choice = replace(ALL, start=1, end_state=True)
    case = case_of(CAPTURED, choice, now=7.0)
    assert "final_session_state" not in case
    assert case["session_input"]["state"] == CAPTURED.state


def test_recording_of_a_case_leaves_out_the_turns_of_its_history() -> None:
    calls = tuple(ToolCall(turn, "desk", "find_order", {"turn": turn}) for turn in (1, 2))
    captured = replace(CAPTURED, recording=Recording("", "", "desk", Origin(), calls=calls))
    kept = recording_of(captured, replace(ALL, start=1))
    assert kept is not None
    assert [(call.turn, call.args) for call in kept.calls] == [(1, {"turn": 2})]


@adk
def test_history_is_accepted_by_adk(as_adk_reads: Callable[[bytes], list[Any]]) -> None:
    case = case_of(CAPTURED, replace(ALL, start=1), now=7.0)
    content = EvalsetFile(new_evalset("mine")).added(0, [case])
    assert len(as_adk_reads(content)[0]["conversation"]) == 1
