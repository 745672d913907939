"""Reading a turn: tool calls, responses and texts from both shapes of intermediate data."""

from typing import Any

import pytest

from tests.files import samples
from tests.files.invocations import normalise_invocation
from workbench.files.invocation import (
    ToolCall,
    content_text,
    intermediate_texts,
    tool_calls,
    tool_responses,
    tool_steps,
)
from workbench.files.spelling import drop, get, is_camel, put

CALL = {"name": "find", "args": {"id": "A"}, "id": "1"}
RESPONSE = {"name": "find", "response": {"late": True}, "id": "1"}
WRITTEN: dict[str, Any] = {
    "user_content": {},
    "intermediate_data": {
        "tool_uses": [CALL, {"name": "refund"}],
        "tool_responses": [RESPONSE],
        "intermediate_responses": [["checker", [{"text": "fine"}, {"text": ""}, {"text": "go"}]], ["mute", []]],
    },
}
RECORDED: dict[str, Any] = {
    "user_content": {},
    "intermediate_data": {
        "invocation_events": [
            {"author": "desk", "content": {"parts": [{"text": "let me see"}, {"function_call": CALL}]}},
            {"author": "desk", "content": {"parts": [{"function_response": RESPONSE}]}},
            {"author": "checker", "content": {"parts": [{"function_call": {"name": "refund"}}]}},
            {"author": "silent"},
        ]
    },
}


def test_tool_calls_are_read_from_both_shapes() -> None:
    assert tool_calls(WRITTEN) == [ToolCall("find", {"id": "A"}, "1"), ToolCall("refund", None)]
    assert tool_calls(RECORDED) == [
        ToolCall("find", {"id": "A"}, "1", "desk"),
        ToolCall("refund", None, None, "checker"),
    ]


def test_tool_responses_are_read_from_both_shapes() -> None:
    assert tool_responses(WRITTEN) == tool_responses(RECORDED) == [RESPONSE]


def test_tool_steps_are_read_from_both_shapes() -> None:
    steps = tool_steps(WRITTEN)
    assert (None, [RESPONSE["name"], RESPONSE["response"]]) in steps
    assert sorted(map(str, steps)) == sorted(map(str, tool_steps(RECORDED)))


def test_intermediate_texts_are_read_from_both_shapes() -> None:
    assert intermediate_texts(WRITTEN) == [("checker", "fine\ngo")]
    assert intermediate_texts(RECORDED) == [("desk", "let me see")]


@pytest.mark.parametrize("turn", [{"user_content": {}}, {"user_content": {}, "intermediate_data": None}])
def test_turn_without_intermediate_data_is_empty(turn: dict[str, Any]) -> None:
    assert tool_calls(turn) == []
    assert tool_responses(turn) == []
    assert intermediate_texts(turn) == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ({}, ""),
        ({"parts": None}, ""),
        ({"parts": [{"text": "a"}, {"inline_data": {}}, {"text": ""}, {"text": "b", "thought": True}]}, "a\nb"),
    ],
)
def test_content_text_joins_the_parts(content: dict[str, Any] | None, text: str) -> None:
    assert content_text(content) == text


def test_normalising_accepts_both_spellings_and_drops_unset_keys() -> None:
    camel = {
        "invocationId": "i",
        "userContent": {"parts": [{"functionCall": {"name": "f", "args": {"aB": {"cD": None}}}, "text": None}]},
        "intermediateData": {"invocationEvents": [{"author": "x", "modelVersion": None, "someKey": 1}]},
        "appDetails": {
            "agentDetails": {"theAgent": {"name": "n", "toolDeclarations": [{"functionDeclarations": None}]}}
        },
    }
    assert normalise_invocation(camel) == {
        "invocation_id": "i",
        "user_content": {"parts": [{"function_call": {"name": "f", "args": {"aB": {"cD": None}}}}]},
        "intermediate_data": {"invocation_events": [{"author": "x"}]},
        "app_details": {
            "agent_details": {"theAgent": {"name": "n", "tool_declarations": [{"functionDeclarations": None}]}}
        },
    }


def test_normalising_twice_changes_nothing() -> None:
    for turn in (samples.WRITTEN_TURN, samples.RECORDED_TURN):
        once = normalise_invocation(turn)
        assert normalise_invocation(once) == once


def test_normalising_keeps_lone_surrogates_and_numbers() -> None:
    args = {"\ud800": "\udfff😀", "n": 2**70, "f": 0.1, "inf": float("inf")}
    turn = normalise_invocation({"user_content": {}, "intermediate_data": {"tool_uses": [{"name": "f", "args": args}]}})
    assert turn["intermediate_data"]["tool_uses"][0]["args"] == args


def test_normalising_reports_everything_wrong() -> None:
    with pytest.raises(ValueError, match="`text` must be text, not the number 5") as caught:
        normalise_invocation({"user_content": {"parts": [{"text": 5}]}, "final_reponse": None, "duration": "x"})
    assert str(caught.value).splitlines() == [
        "user_content.parts[0].text: `text` must be text, not the number 5",
        'duration: `duration` must be a number, not the text "x"',
        "final_reponse: unknown key `final_reponse`: ADK rejects the file. Did you mean `final_response`?",
    ]


@pytest.mark.parametrize("data", [None, [], "x", {}, {"user_content": "hi"}])
def test_values_that_are_not_turns_are_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"must be|is missing"):
        normalise_invocation(data)


def test_key_is_found_in_either_spelling() -> None:
    assert get({"userContent": 1}, "user_content") == 1
    assert get({"user_content": 2}, "user_content") == 2
    assert get({}, "user_content") is None
    assert get([], "user_content") is None


@pytest.mark.parametrize("spelled", ["userContent", "user_content"])
def test_existing_key_keeps_its_spelling(spelled: str) -> None:
    value: dict[str, Any] = {spelled: 1}
    put(value, "user_content", 2, camel=spelled == "user_content")
    assert value == {spelled: 2}
    drop(value, "user_content")
    drop(value, "user_content")
    assert value == {}


def test_new_key_has_the_requested_spelling() -> None:
    value: dict[str, Any] = {}
    put(value, "final_response", 1, camel=True)
    put(value, "eval_id", 1, camel=False)
    assert value == {"finalResponse": 1, "eval_id": 1}


@pytest.mark.parametrize(
    ("case", "camel"),
    [
        ({"evalId": "a"}, True),
        ({"eval_id": "a", "userContent": 1}, False),
        ({"conversation": [{"userContent": {}}]}, True),
        ({"conversation": [{"args": {"orderId": 1}, "user_content": {}}]}, False),
        ({}, False),
    ],
)
def test_spelling_of_a_case_is_detected(case: Any, camel: bool) -> None:
    assert is_camel(case) is camel
