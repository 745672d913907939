"""Malformed turns and duplicate rubrics."""

from typing import Any

import pytest

from workbench.editing.check.criteria_rules import rubric_problems, turn_problems
from workbench.files.evalset import EvalCase
from workbench.files.faults import Location


def content(text: str, role: str | None = None) -> dict[str, Any]:
    return {"parts": [{"text": text}], **({"role": role} if role else {})}


GOOD = {"user_content": content("Hi", "user"), "final_response": content("Hello", "model")}
CALL = {"function_call": {"id": "c1", "name": "find", "args": {}}}
RESPONSE = {"function_response": {"id": "c1", "name": "find", "response": {}}}


def case(*turns: dict[str, Any], scenario: Any = None, rubrics: tuple[dict[str, Any], ...] = ()) -> EvalCase:
    return EvalCase("a", None if scenario is not None else turns, scenario, None, rubrics, None, {})


def found(which: EvalCase) -> list[Location]:
    return [breach.location for rule, breach in turn_problems(which) if rule == "turns" and breach.hint]


def events(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"invocation_events": [{"author": "desk", "content": {"parts": [part]}} for part in parts]}


@pytest.mark.parametrize(
    "turn",
    [
        GOOD,
        {"user_content": content("Hi")},
        {**GOOD, "user_content": {"parts": [{"inline_data": {"mime_type": "image/png", "data": "aA=="}}]}},
        {**GOOD, "intermediate_data": events(CALL, RESPONSE)},
        {**GOOD, "intermediate_data": {"tool_uses": [{"name": "find"}], "tool_responses": [{"name": "find"}]}},
        # A tool's answer that ended the turn: ADK keeps it as the final response.
        {**GOOD, "final_response": {"role": "user", "parts": [RESPONSE]}},
    ],
)
def test_well_formed_turns_have_no_problems(turn: dict[str, Any]) -> None:
    assert found(case(GOOD, turn)) == []


@pytest.mark.parametrize(
    ("turn", "place"),
    [
        ({"user_content": {"parts": []}}, ("user_content",)),
        ({"user_content": content(" \n")}, ("user_content",)),
        ({"user_content": content("Hi", "model")}, ("user_content", "role")),
        ({**GOOD, "final_response": content("Hi", "user")}, ("final_response", "role")),
        (
            {**GOOD, "intermediate_data": events(RESPONSE)},
            ("intermediate_data", "invocation_events", 0, "content", "parts", 0),
        ),
        (
            {**GOOD, "intermediate_data": {"tool_uses": [{"name": "f", "id": "1"}], "tool_responses": [{"id": "2"}]}},
            ("intermediate_data", "tool_responses", 0),
        ),
    ],
)
def test_malformed_turns_are_found(turn: dict[str, Any], place: Location) -> None:
    assert found(case(GOOD, turn)) == [("conversation", 1, *place)]


def test_response_of_another_turn_is_found() -> None:
    turns = {**GOOD, "intermediate_data": events(CALL)}, {**GOOD, "intermediate_data": events(RESPONSE)}
    assert [place[1] for place in found(case(*turns))] == [1]


def test_scenario_with_an_empty_first_message_is_found() -> None:
    assert found(case(scenario={"starting_prompt": "Hi"})) == []
    assert found(case(scenario={"starting_prompt": " "})) == [("conversation_scenario", "starting_prompt")]


def rubric(name: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": "is kind"}, "type": "FINAL_RESPONSE_QUALITY"}


def test_rubric_id_used_in_case_and_turn_is_found() -> None:
    turns = {**GOOD, "rubrics": [rubric("a"), rubric("b"), rubric("b")]}, {**GOOD, "rubrics": [rubric("b")]}
    problems = list(rubric_problems(case(*turns, rubrics=(rubric("a"),)), {"rubric_based_final_response_quality_v1"}))
    assert [(rule, breach.location) for rule, breach in problems] == [
        ("same-rubric", ("conversation", 0, "rubrics", 0, "rubric_id")),
        ("same-rubric", ("conversation", 0, "rubrics", 2, "rubric_id")),
    ]
    assert "already used in the case" in problems[0][1].message
