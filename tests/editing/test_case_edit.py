"""Rows of a case and their operations, for both forms, both spellings and any values."""

import json
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.editing.case_edit import (
    NotPossibleError,
    duplicate,
    free_name,
    move,
    new_case,
    parts_for,
    remove,
    with_item,
    with_part,
    with_value,
    without,
)
from workbench.editing.case_rows import CaseRow, rows_of
from workbench.editing.evalset_file import EvalsetFile, RejectedError, errors_of, moved, name_fault
from workbench.files.evalset_edit import EvalsetText
from workbench.text.json_values import value_at

WRITTEN: dict[str, Any] = {
    "eval_id": "late",
    "conversation": [
        {
            "invocation_id": "one",
            "user_content": {"role": "user", "parts": [{"text": "Where is it?"}, {"text": "Please."}]},
            "intermediate_data": {
                "tool_uses": [{"name": "find", "args": {"id": 1}}, {"name": "refund", "args": {}}],
                "tool_responses": [{"name": "find", "response": {"ok": True}}],
                "intermediate_responses": [["desk", [{"text": "Looking."}]]],
            },
            "final_response": {"role": "model", "parts": [{"text": "There."}]},
            "rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "Is it polite?"}}],
        },
        {"invocation_id": "two", "user_content": {"role": "user", "parts": [{"text": "Thanks"}]}},
    ],
    "session_input": {"app_name": "desk", "user_id": "u", "state": {"a": 1.0}},
}
RECORDED: dict[str, Any] = {
    "evalId": "late",
    "conversation": [
        {
            "userContent": {"parts": [{"text": "Where is it?"}]},
            "intermediateData": {
                "invocationEvents": [
                    {"author": "desk", "content": {"parts": [{"functionCall": {"name": "find", "args": {"id": 1}}}]}},
                    {"author": "desk", "content": {"parts": [{"text": "Looking."}]}},
                    {
                        "author": "desk",
                        "content": {"parts": [{"functionResponse": {"name": "find", "response": {"ok": True}}}]},
                    },
                ]
            },
            "finalResponse": {"parts": [{"text": "There."}]},
        }
    ],
    "sessionInput": {"appName": "desk", "userId": "u"},
}
SCENARIO: dict[str, Any] = {
    "eval_id": "plan",
    "conversation_scenario": {
        "starting_prompt": "Hi",
        "conversation_plan": "Ask for a refund",
        "user_persona": "NOVICE",
    },
    "rubrics": [{"rubric_id": "a", "rubric_content": {"text_property": "x"}, "type": "TOOL_USE_QUALITY"}],
    "final_session_state": {"x": None},
}
CASES = [WRITTEN, RECORDED, SCENARIO]


def row(case: Any, name: str, number: int = 0) -> CaseRow:
    return [one for one in rows_of(case) if one.name.strip() == name][number]


def names(case: Any) -> list[str]:
    return [one.name.strip() for one in rows_of(case)]


def test_rows_follow_the_conversation() -> None:
    assert names(WRITTEN) == [
        *("id", "turn 1", "user", "user", "call", "args", "call", "args", "result", "text", "answer"),
        *("rubric", "id", "type", "turn 2", "user", "app", "user id", "state"),
    ]
    assert names(RECORDED) == [
        *("id", "turn 1", "user", "call", "args", "text", "result", "answer", "app", "user id", "state"),
    ]
    assert names(SCENARIO) == ["id", "prompt", "plan", "persona", "rubric", "id", "type", "final state"]


@pytest.mark.parametrize("case", CASES)
def test_every_row_has_the_place_of_its_value(case: Any) -> None:
    for one in rows_of(case):
        assert value_at(case, one.location) == one.value or one.form == "heading"
        assert one.missing == (
            one.form != "heading" and value_at(case, one.location[:-1]).get(one.location[-1]) is None
        )


@pytest.mark.parametrize("case", CASES)
def test_every_added_part_is_valid_and_has_a_row(case: Any) -> None:
    for one in rows_of(case):
        for part in parts_for(case, one):
            after, place = with_part(case, one, part.what)
            assert errors_of(after) == [], part
            assert len(rows_of(after)) > len(rows_of(case)), part
            assert any(new.location[: len(place)] == place for new in rows_of(after)), part


def test_added_parts_follow_spelling_and_form_of_the_case() -> None:
    after, _ = with_part(RECORDED, row(RECORDED, "call"), "call")
    events = after["conversation"][0]["intermediateData"]["invocationEvents"]
    assert events[1] == {
        "author": "desk",
        "content": {"role": "model", "parts": [{"functionCall": {"name": "", "args": {}}}]},
    }
    after, place = with_part(WRITTEN, row(WRITTEN, "call"), "call")
    assert place[-2:] == ("tool_uses", 1)
    assert "intermediate_data" in with_part(WRITTEN, row(WRITTEN, "turn 2"), "call")[0]["conversation"][1]


def test_deleting_a_message_keeps_the_rest() -> None:
    assert "final_response" not in remove(WRITTEN, row(WRITTEN, "answer"))["conversation"][0]
    parts = remove(WRITTEN, row(WRITTEN, "user", 1))["conversation"][0]["user_content"]["parts"]
    assert parts == [{"text": "Where is it?"}]
    events = remove(RECORDED, row(RECORDED, "text"))["conversation"][0]["intermediateData"]["invocationEvents"]
    assert len(events) == 2
    with pytest.raises(NotPossibleError):
        remove(WRITTEN, row(WRITTEN, "id"))


def test_duplicated_turn_gets_a_new_id() -> None:
    after, place = duplicate(WRITTEN, row(WRITTEN, "turn 1"))
    assert place == ("conversation", 1)
    first, fresh, last = (turn["invocation_id"] for turn in after["conversation"])
    assert (first, last) == ("one", "two")
    assert fresh not in ("", "one", "two")
    assert after["conversation"][1]["user_content"] == WRITTEN["conversation"][0]["user_content"]
    with pytest.raises(NotPossibleError):
        duplicate(WRITTEN, row(WRITTEN, "state"))


def test_duplicated_rubric_gets_a_new_id() -> None:
    after, _ = duplicate(WRITTEN, row(WRITTEN, "rubric"))
    assert [rubric["rubric_id"] for rubric in after["conversation"][0]["rubrics"]] == ["polite", "polite_2"]


def test_duplicated_call_with_an_id_gets_a_new_one() -> None:
    event = {"author": "a", "content": {"parts": [{"function_call": {"id": "adk-1", "name": "find", "args": {}}}]}}
    turns: Any = [
        {"intermediate_data": {"tool_uses": [{"id": "x", "name": "find"}, {"id": "x_2", "name": "find"}]}},
        {"intermediate_data": {"invocation_events": [event]}},
        {"intermediate_data": {"tool_uses": [{"name": "find", "args": {"id": "kept"}}]}},
    ]
    case: Any = {"eval_id": "a", "conversation": turns}
    rows = [row for row in rows_of(case) if row.kind == "call"]
    twins = [value_at(*duplicate(case, row)) for row in (rows[0], rows[2], rows[3])]
    assert twins[0] == {"id": "x_3", "name": "find"}
    assert twins[1]["content"]["parts"][0]["function_call"]["id"] == "adk-1_2"
    assert twins[2] == turns[2]["intermediate_data"]["tool_uses"][0]


def test_calls_and_turns_can_be_moved() -> None:
    after, place = move(WRITTEN, row(WRITTEN, "args"), 1)
    assert place[-1] == 1
    assert [call["name"] for call in after["conversation"][0]["intermediate_data"]["tool_uses"]] == ["refund", "find"]
    assert move(WRITTEN, row(WRITTEN, "turn 2"), -1)[0]["conversation"][0]["invocation_id"] == "two"
    with pytest.raises(NotPossibleError, match="first"):
        move(WRITTEN, row(WRITTEN, "turn 1"), -1)
    with pytest.raises(NotPossibleError, match="last"):
        move(WRITTEN, row(WRITTEN, "turn 2"), 1)


@pytest.mark.parametrize(
    "case",
    [
        {"eval_id": "a", "rubrics": {"rubric_id": "polite"}},
        {"eval_id": "a", "rubrics": [{"rubric_id": []}, {"rubric_id": {}}]},
        {"eval_id": "a", "conversation": [{"rubrics": 1.5, "intermediate_data": {"tool_uses": True}}]},
        {"eval_id": "a", "conversation": [{"intermediate_data": {"tool_uses": [{"id": [], "name": "find"}]}}]},
        0,
    ],
)
def test_operations_on_a_malformed_case_give_a_reason_and_never_fail(case: Any) -> None:
    for row in rows_of(case):
        added = [part.what for part in parts_for(case, row)] if isinstance(case, dict) else []
        operations = [partial(with_part, case, row, what) for what in added]
        operations += [partial(duplicate, case, row), partial(remove, case, row), partial(move, case, row, 1)]
        for operate in operations:
            with suppress(NotPossibleError):
                operate()


def test_free_name_differs_from_all_used_names() -> None:
    assert free_name("a", []) == "a"
    assert free_name("a", ["a", "a_2"]) == "a_3"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
KEYS = ["evalId", "conversation", "rubrics", "session_input", "conversation_scenario", "x"]


@given(st.dictionaries(st.sampled_from(KEYS), json_values) | json_values)
def test_any_json_has_rows(case: Any) -> None:
    for one in rows_of(case):
        assert one.missing or value_at(case, one.location) == one.value or one.form == "heading"


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_operation_leaves_bytes_of_other_cases_alone(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    others = [{**SCENARIO, "eval_id": "before"}, {**WRITTEN, "eval_id": "after"}]
    indent = data.draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    content = json.dumps({"eval_set_id": "s", "eval_cases": [others[0], case, others[1]]}, indent=indent).encode()
    start = EvalsetText(content).raw(0)
    one = data.draw(st.sampled_from(rows_of(case)))
    try:
        after = data.draw(
            st.sampled_from(
                [
                    lambda: with_value(case, one.location, "anything é \u2028"),
                    lambda: remove(case, one),
                    lambda: duplicate(case, one)[0],
                    lambda: move(case, one, 1)[0],
                    lambda: with_part(case, one, parts_for(case, one)[0].what)[0],
                ]
            )
        )()
        changed = EvalsetFile(content).with_case(1, after)
    except (NotPossibleError, RejectedError):
        return
    assert json.loads(changed)["eval_cases"] == [others[0], after, others[1]]
    text = EvalsetText(changed)
    assert (text.raw(0), text.raw(2)) == (start, EvalsetText(content).raw(2))
    assert changed[: content.index(start) + len(start)] == content[: content.index(start) + len(start)]


def test_operations_do_not_change_their_input() -> None:
    before = json.dumps(CASES)
    for case in CASES:
        for one in rows_of(case):
            for part in parts_for(case, one):
                with_part(case, one, part.what)
            for operation in (lambda c, r: remove(c, r), lambda c, r: duplicate(c, r), lambda c, r: move(c, r, 1)):
                try:
                    operation(case, one)
                except NotPossibleError:
                    continue
    assert json.dumps(CASES) == before


def test_values_are_read_and_set_at_places() -> None:
    assert with_value({}, ("a", "b"), 1) == {"a": {"b": 1}}
    assert with_value([1, 2], (1,), 3) == [1, 3]
    assert without({"a": [1, 2]}, ("a", 0)) == {"a": [2]}
    assert with_item({}, ("a", 0), 1) == {"a": [1]}
    assert value_at({"a": [1]}, ("a", 7)) is None


# Files


def file(*cases: Any) -> EvalsetFile:
    return EvalsetFile(json.dumps({"eval_set_id": "s", "eval_cases": cases}, indent=2).encode())


def test_invalid_edit_is_refused_with_its_place() -> None:
    wrong = with_value(WRITTEN, ("conversation", 0, "intermediate_data", "tool_uses", 0, "args"), [1])
    with pytest.raises(RejectedError) as caught:
        file(WRITTEN).with_case(0, wrong)
    assert caught.value.breaches[0].location[-1] == "args"


def test_existing_fault_does_not_block_other_edits() -> None:
    broken = {**WRITTEN, "conversation": [{"user_content": 1}, {"user_content": 2}]}
    mended = with_value(broken, ("conversation", 0), WRITTEN["conversation"][0])
    after = file(broken).with_case(0, mended)
    assert json.loads(after)["eval_cases"] == [mended]


@pytest.mark.parametrize("name", ["", "  ", "plan"])
def test_case_ids_must_exist_and_be_unique(name: str) -> None:
    with pytest.raises(RejectedError):
        file(WRITTEN, SCENARIO).with_case(0, {**WRITTEN, "eval_id": name})
    with pytest.raises(RejectedError):
        file(WRITTEN, SCENARIO).added(1, [new_case(name, app="a", user="u", camel=False)])


def test_copies_get_new_case_and_turn_ids() -> None:
    content, added = file(WRITTEN, SCENARIO).with_copies([0, 1])
    assert added == ["late_2", "plan_2"]
    cases = json.loads(content)["eval_cases"]
    assert [case["eval_id"] for case in cases] == ["late", "late_2", "plan", "plan_2"]
    ids = [turn["invocation_id"] for case in cases[:2] for turn in case["conversation"]]
    assert len(set(ids)) == 4


def test_cases_move_to_another_file_or_not_at_all() -> None:
    left, right = moved(file(WRITTEN, SCENARIO), [0], file())
    assert [json.loads(content)["eval_cases"] for content in (left, right)] == [[SCENARIO], [WRITTEN]]
    with pytest.raises(RejectedError, match="already has late"):
        moved(file(WRITTEN), [0], file(SCENARIO, WRITTEN))


def test_evalset_id_name_and_description_can_be_edited() -> None:
    after = file(WRITTEN).with_frame({"name": "New", "description": None, "eval_set_id": "t"})
    assert json.loads(after) == {"eval_set_id": "t", "eval_cases": [WRITTEN], "name": "New"}
    for wrong in ("", " ", 1):
        with pytest.raises(RejectedError):
            file().with_frame({"eval_set_id": wrong})


@pytest.mark.parametrize(("camel", "scenario"), [(False, False), (True, False), (False, True), (True, True)])
def test_new_case_is_valid_for_adk(camel: bool, scenario: bool) -> None:
    case = new_case("new", app="a", user="u", camel=camel, scenario=scenario)
    assert errors_of(case) == []
    assert ("evalId" in case) == camel
    assert ("conversation" in case) != scenario


def test_evalset_names_follow_adks_rules() -> None:
    assert name_fault("late_2") == ""
    assert name_fault("")
    assert name_fault("späte pakete")
