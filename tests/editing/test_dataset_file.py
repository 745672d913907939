"""Edits of datasets of google-agents-cli: made as in evalsets, and written to where the values came from."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.editing.accept import Comparison
from workbench.editing.case_edit import duplicate, move, new_case, remove, replaced, replacements, with_part, with_value
from workbench.editing.case_rows import CaseRow, rows_of
from workbench.editing.evalset_file import EvalsetFile, RejectedError, moved
from workbench.files.evalset import open_evalset


def _content(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def _event(author: str, text: str, **other: Any) -> dict[str, Any]:
    return {"author": author, "content": _content(text, "user" if author == "user" else "model"), **other}


AGENTS = {"desk": {"agent_id": "desk", "agent_type": "LlmAgent", "instruction": "Help.", "sub_agents": []}}
HISTORY = [
    {
        "turn_index": 0,
        "turn_id": "turn_0",
        "events": [
            {"author": "user", "state_delta": {"vip": True}},
            _event("user", "one", event_time="2026-01-01T00:00:00Z"),
            _event("desk", "two", active_tools=[]),
        ],
    },
    {"turn_index": 1, "events": [_event("user", "three", state_delta={"step": 2})]},
]
RUBRICS = {
    "tone": {
        "display_name": "Tone",
        "rubrics": [
            {"rubric_id": "polite", "content": {"property": {"description": "Is polite."}}, "importance": "HIGH"},
            {"content": {"property": {"description": "Is short."}}, "type": "FINAL_RESPONSE_QUALITY"},
        ],
    },
    "facts": {"rubrics": [{"rubric_id": "capital", "content": {"property": {"description": "Names Paris."}}}]},
}
OWN = {"tool_uses": [{"name": "find", "args": {"id": 1.0}}], "final_session_state": {"done": True}}
CASES: dict[str, dict[str, Any]] = {
    "prompt": {"eval_case_id": "prompt", "prompt": _content("Hello"), "theirs": {"kept": [1, 1.50]}},
    "reference": {
        "eval_case_id": "reference",
        "prompt": _content("Capital?"),
        "reference": {"response": _content("Paris", "model")},
    },
    "own": {"eval_case_id": "own", "prompt": _content("Find"), "agent_workbench": OWN},
    "turns": {"eval_case_id": "turns", "agent_data": {"agents": AGENTS, "turns": HISTORY}},
    "history": {
        "eval_case_id": "history",
        "prompt": _content("three"),
        "conversation_history": [
            {"content": _content("one"), "turn_id": "t"},
            {"content": _content("two", "model"), "author": "desk", "creation_timestamp": "2026-01-01T00:00:00Z"},
        ],
    },
    "rubrics": {"eval_case_id": "rubrics", "prompt": _content("Hi"), "rubric_groups": RUBRICS},
    "scenario": {
        "eval_case_id": "scenario",
        "user_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask.", "test_case_title": "title"},
    },
    "kept": {
        "eval_case_id": "kept",
        "prompt": _content("Hi"),
        "responses": [{"response": _content("Hello", "model")}],
        "system_instruction": _content("Be kind.", "system"),
        "intermediate_events": [{"event_id": "e", "author": "desk", "content": _content("…", "model")}],
        "agent_info": {"name": "desk"},
        "interactions_data_source": {"gemini_agent_config": {}},
    },
    "camel": {
        "evalCaseId": "camel",
        "agentData": {"turns": [{"turnIndex": 0, "events": [_event("user", "Hi", stateDelta={"a_b": 1})]}]},
        "rubricGroups": {"a_b": {"rubrics": [{"rubricId": "r", "content": {"property": {"description": "Short."}}}]}},
        "agentWorkbench": {"toolUses": [{"name": "find", "args": {"an_id": 1}}], "finalSessionState": {"a_b": 1}},
    },
    "no_id": {"prompt": _content("I have no id")},
}
"""Cases that use every field of Google's type."""


def _file(*names: str, indent: int | None = 2) -> EvalsetFile:
    content = {"eval_cases": [CASES[name] for name in names or CASES], "candidate_name": "c"}
    return EvalsetFile(json.dumps(content, indent=indent).encode())


def _after(name: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the JSON of a case after an edit, and check that the other bytes of the file stay."""
    file = _file()
    number = list(CASES).index(name)
    edited = file.edited(number, change(file.case(number)))
    for other in range(len(CASES)):
        assert other == number or edited.raw(other) == file.raw(other)
    assert EvalsetFile(edited.content).ids == edited.ids
    stored: dict[str, Any] = edited.stored(number)
    return stored


def _set(*location: str | int, value: Any) -> Callable[[Any], Any]:
    return lambda case: with_value(case, location, value)


def _expected(name: str, *location: str | int, value: Any) -> Any:
    return with_value(copy.deepcopy(CASES[name]), location, value)


USER = ("conversation", 0, "user_content", "parts", 0, "text")
ANSWER = ("conversation", 0, "final_response")
CALLS = ("conversation", 0, "intermediate_data", "tool_uses")


@pytest.mark.parametrize(
    ("name", "shown", "stored", "value"),
    [
        ("prompt", USER, ("prompt", "parts", 0, "text"), "Bye"),
        ("no_id", USER, ("prompt", "parts", 0, "text"), "Bye"),
        ("turns", USER, ("agent_data", "turns", 1, "events", 0, "content", "parts", 0, "text"), "four"),
        ("camel", USER, ("agentData", "turns", 0, "events", 0, "content", "parts", 0, "text"), "four"),
        ("reference", (*ANSWER, "parts", 0, "text"), ("reference", "response", "parts", 0, "text"), "Paris."),
        ("prompt", ANSWER, ("reference", "response"), _content("Hi", "model")),
        ("own", (*CALLS, 0, "args", "id"), ("agent_workbench", "tool_uses", 0, "args", "id"), 2),
        ("camel", (*CALLS, 0, "name"), ("agentWorkbench", "toolUses", 0, "name"), "get"),
        ("turns", CALLS, ("agent_workbench", "tool_uses"), [{"name": "find", "args": {}}]),
        ("own", ("final_session_state",), ("agent_workbench", "final_session_state"), {"done": False}),
        ("scenario", ("conversation_scenario", "starting_prompt"), ("user_scenario", "starting_prompt"), "Hey"),
        (
            "rubrics",
            ("rubrics", 1, "rubric_content", "text_property"),
            ("rubric_groups", "tone", "rubrics", 1, "content", "property", "description"),
            "Is brief.",
        ),
        (
            "history",
            ("session_input", "events", 1, "content"),
            ("conversation_history", 1, "content"),
            _content("zwei", "model"),
        ),
        ("no_id", ("eval_id",), ("eval_case_id",), "named"),
        ("camel", ("eval_id",), ("evalCaseId",), "named"),
    ],
)
def test_edit_is_written_to_where_the_value_came_from(
    name: str, shown: tuple[str | int, ...], stored: tuple[str | int, ...], value: Any
) -> None:
    assert _after(name, _set(*shown, value=value)) == _expected(name, *stored, value=value)


_TEXTS = st.text(max_size=20)


@given(name=st.sampled_from(sorted(CASES)), data=st.data(), indent=st.sampled_from([None, 2, 3]))
@settings(max_examples=150, deadline=None)
def test_edit_of_any_row_changes_one_case(name: str, data: st.DataObject, indent: int | None) -> None:
    file = _file(indent=indent)
    number = list(CASES).index(name)
    case = file.case(number)
    rows = [row for row in rows_of(case) if row.form == "text" and not row.missing]
    row = data.draw(st.sampled_from(rows))
    text = data.draw(_TEXTS)
    edited = file.edited(number, with_value(case, row.location, text))
    assert edited.case(number) == with_value(case, row.location, text)
    assert [edited.raw(other) for other in range(len(CASES)) if other != number] == [
        file.raw(other) for other in range(len(CASES)) if other != number
    ]
    again = edited.edited(number, case)
    assert again.stored(number) == file.stored(number)
    if row.value in json.dumps(row.value, ensure_ascii=False):
        assert again.content == file.content


@pytest.mark.parametrize("name", sorted(CASES))
def test_case_with_any_field_opens_and_an_unchanged_save_keeps_every_byte(name: str, tmp_path: Any) -> None:
    file = _file(name)
    assert file.edited(0, file.case(0)).content == file.content
    path = tmp_path / "x.json"
    path.write_bytes(file.content)
    assert [fault for fault in open_evalset(path).check() if fault.severity != "note"] == []


def _row(case: Any, **wanted: Any) -> CaseRow:
    return next(row for row in rows_of(case) if all(getattr(row, key) == value for key, value in wanted.items()))


def _edit_rubric(action: Callable[[Any, CaseRow], Any], text: str) -> list[tuple[str, str]]:
    """Return the groups and texts of the rubrics after an action on one of them."""

    def change(case: Any) -> Any:
        result = action(case, _row(case, kind="rubric", value=text))
        return result[0] if isinstance(result, tuple) else result

    groups = _after("rubrics", change)["rubric_groups"]
    assert (groups["tone"]["display_name"], groups["tone"]["rubrics"][0].get("importance", "HIGH")) == ("Tone", "HIGH")
    return [
        (name, rubric["content"]["property"]["description"])
        for name, group in groups.items()
        for rubric in group["rubrics"]
    ]


def test_rubrics_are_removed_duplicated_and_moved_in_their_group() -> None:
    polite, short, paris = ("tone", "Is polite."), ("tone", "Is short."), ("facts", "Names Paris.")
    assert _edit_rubric(remove, "Is short.") == [polite, paris]
    assert _edit_rubric(duplicate, "Is polite.") == [polite, polite, short, paris]
    assert _edit_rubric(remove, "Names Paris.") == [polite, short]


def test_moved_rubric_keeps_its_other_keys() -> None:
    groups = _after("rubrics", lambda case: move(case, _row(case, kind="rubric", value="Is polite."), 1)[0])
    assert [rubric.get("importance") for rubric in groups["rubric_groups"]["tone"]["rubrics"]] == [None, "HIGH"]


def test_rubric_cannot_move_into_another_group() -> None:
    with pytest.raises(RejectedError, match="cannot store this"):
        _after("rubrics", lambda case: move(case, _row(case, kind="rubric", value="Is short."), 1)[0])


def test_first_rubric_gets_a_group() -> None:
    def change(case: Any) -> Any:
        added, place = with_part(case, rows_of(case)[0], "rubric")
        return with_value(added, place, {**added["rubrics"][0], "rubric_content": {"text_property": "Is kind."}})

    rubric = {
        "rubric_id": "rubric",
        "content": {"property": {"description": "Is kind."}},
        "type": "FINAL_RESPONSE_QUALITY",
    }
    assert _after("prompt", change)["rubric_groups"] == {"rubrics": {"rubrics": [rubric]}}


def test_removed_expectation_leaves_no_empty_object() -> None:
    def without_state(case: Any) -> Any:
        return {key: item for key, item in case.items() if key != "final_session_state"}

    kept = _after("own", without_state)
    assert kept["agent_workbench"] == {"tool_uses": OWN["tool_uses"]}
    answer = _after("reference", lambda case: remove(case, _row(case, kind="answer")))
    assert "reference" not in answer


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("prompt", lambda case: with_part(case, rows_of(case)[1], "turn")[0], "sends one message"),
        ("prompt", _set("session_input", "app_name", value="other"), "cannot store this"),
        ("scenario", _set("conversation_scenario", "user_persona", value="NOVICE"), "cannot store this"),
        ("prompt", _set("conversation", 0, "rubrics", value=[{"rubric_id": "r"}]), "cannot store this"),
        ("prompt", _set("conversation", 0, "user_content", value="text"), "must be an object"),
        ("prompt", _set("eval_id", value="own"), "already has a case"),
    ],
)
def test_edit_that_a_dataset_cannot_store_is_refused(name: str, change: Any, said: str) -> None:
    with pytest.raises(RejectedError, match=said):
        _after(name, change)


def test_fault_of_an_edit_is_at_its_place_as_editors_see_it() -> None:
    with pytest.raises(RejectedError) as refused:
        _after("own", _set(*CALLS, 0, "nme", value="x"))
    assert refused.value.breaches[0].location == (*CALLS, 0, "nme")


def test_text_editor_edits_a_case_in_the_form_of_the_dataset() -> None:
    stored = {**CASES["prompt"], "theirs": 2, "system_instruction": _content("x")}
    assert _after("prompt", lambda case: stored) == stored
    with pytest.raises(RejectedError, match="unknown key"):
        _after("prompt", lambda case: {**stored, "prompt": {"prts": []}})


def test_agents_calls_and_answer_are_accepted_as_expected() -> None:
    file = _file("prompt")
    call = {"name": "find", "args": {"id": 1}}
    actual = {
        "user_content": _content("Hello"),
        "final_response": _content("Hi!", "model"),
        "intermediate_data": {"tool_uses": [call], "intermediate_responses": [["desk", [{"text": "wait"}]]]},
    }
    comparison = Comparison(file.case(0), [actual])
    after = file.edited(0, comparison.accepted(comparison.hunks)).stored(0)
    assert after == {
        **CASES["prompt"],
        "reference": {"response": _content("Hi!", "model")},
        "agent_workbench": {"tool_uses": [call], "intermediate_responses": [["desk", [{"text": "wait"}]]]},
    }
    assert Comparison(EvalsetFile(file.with_case(0, after)).case(0), [actual]).hunks == ()


@pytest.mark.parametrize(
    ("name", "old"), [("turns", "three"), ("reference", "Paris"), ("rubrics", "Is short."), ("scenario", "Ask.")]
)
def test_find_and_replace_reaches_prompts_answers_rubrics_and_scenarios(name: str, old: str) -> None:
    changed = _after(name, lambda case: replaced(case, replacements(case, "text", old, "NEW")))
    assert json.dumps(changed) == json.dumps(CASES[name]).replace(f'"{old}"', '"NEW"')


def test_new_case_is_written_as_a_dataset_case() -> None:
    file = _file("prompt")
    content = file.added(1, [new_case("new", app="app", user="user", camel=file.camel)])
    assert EvalsetFile(content).stored(1) == {"eval_case_id": "new", "prompt": _content("")}
    content = file.added(1, [new_case("new", app="app", user="user", camel=file.camel, scenario=True)])
    assert EvalsetFile(content).stored(1)["user_scenario"] == {"starting_prompt": "", "conversation_plan": ""}


def test_captured_conversation_becomes_history_and_a_last_message() -> None:
    call, response = {"name": "find", "args": {}}, {"name": "find", "response": {"found": 1}}
    turns = [
        {
            "invocation_id": "1",
            "user_content": _content("one"),
            "intermediate_data": {"tool_uses": [call], "tool_responses": [response]},
            "final_response": _content("two", "model"),
        },
        {"invocation_id": "2", "user_content": _content("three"), "final_response": _content("four", "model")},
    ]
    session = {"app_name": "app", "user_id": "user", "state": {"vip": True}}
    case = {"eval_id": "kept", "conversation": turns, "session_input": session, "creation_timestamp": 1.0}
    stored = EvalsetFile(_file("prompt").added(1, [case])).stored(1)
    assert [
        [(event["author"], *event.get("state_delta", ())) for event in turn["events"]]
        for turn in stored["agent_data"]["turns"]
    ] == [[("user", "vip"), ("user",), ("model",), ("model",), ("model",)], [("user",)]]
    assert stored["agent_data"]["turns"][1]["events"][0]["content"] == _content("three")
    assert stored["reference"] == {"response": _content("four", "model")}


def test_copies_get_an_id_and_cases_move_only_between_datasets() -> None:
    content, names = _file("camel").with_copies([0])
    assert (names, EvalsetFile(content).stored(1)) == (["camel_2"], {**CASES["camel"], "evalCaseId": "camel_2"})
    left, right = moved(_file("prompt", "own"), [1], _file("turns"))
    assert (EvalsetFile(left).ids, EvalsetFile(right).ids) == (["prompt"], ["turns", "own"])
    evalset = EvalsetFile(b'{"eval_set_id": "s", "eval_cases": []}')
    with pytest.raises(RejectedError, match="between evalsets and datasets"):
        moved(_file("prompt", "own"), [1], evalset)
    with pytest.raises(RejectedError, match="give it an id first"):
        moved(_file("own", "no_id"), [1], _file("turns"))


def test_case_without_an_id_cannot_change_its_position() -> None:
    with pytest.raises(RejectedError, match="case 2 has no id, only its position"):
        _file("prompt", "no_id").without([0])
    assert EvalsetFile(_file("no_id", "prompt").without([1])).ids == ["1"]


def test_dataset_refuses_to_lose_its_last_case_or_to_get_a_name() -> None:
    with pytest.raises(RejectedError, match="needs at least one case"):
        _file("prompt").without([0])
    with pytest.raises(RejectedError, match="no id, name or description"):
        _file("prompt").with_frame({"name": "x"})
