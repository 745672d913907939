"""The two old formats: how they are recognised and converted, and their faults."""

import json
from typing import Any

import pytest

from tests.files import samples
from tests.files.conftest import Open
from workbench.files.evalset import BrokenCaseError
from workbench.files.old_formats import old_format_of


def _reported(document: Any) -> list[str]:
    return [f"{fault.severity} {fault.sentence('').removeprefix(':')}" for fault in document.faults]


@pytest.mark.parametrize(
    ("content", "format_"),
    [
        ([], "old_evalset"),
        ([{"name": "n", "data": []}], "old_evalset"),
        ([{"data": []}], "old_evalset"),
        ([{"name": "n"}], "old_evalset"),
        ([{"query": "q"}], "old_test"),
        ([5, {"query": "q"}], "old_test"),
        ([{"qury": "q"}], "old_test"),
        ([{"eval_id": "a"}], None),
        ([1], None),
        ({"query": "q"}, None),
    ],
)
def test_old_formats_are_distinguished(content: Any, format_: str | None) -> None:
    assert old_format_of(content) == format_


def test_each_item_of_an_old_evalset_becomes_a_case(opened: Open) -> None:
    document = opened(json.dumps(samples.OLD_EVALSET, indent=2), "parcels.evalset.json")
    assert (document.format, document.kind, document.eval_set_id, document.broken) == (
        "old_evalset",
        "evalset",
        "parcels",
        False,
    )
    assert [case.eval_id for case in document.cases] == ["n", "m"]
    case = document.case(0)
    assert case.turns == (
        {
            "user_content": {"role": "user", "parts": [{"text": "q"}]},
            "final_response": {"role": "model", "parts": [{"text": "r"}]},
            "intermediate_data": {
                "tool_uses": [{"name": "t", "args": {"a": 1}}],
                "intermediate_responses": [["a", [{"text": "t"}]]],
            },
        },
        {
            "user_content": {"role": "user", "parts": [{"text": "z"}]},
            "final_response": {"role": "model", "parts": [{"text": ""}]},
            "intermediate_data": {"tool_uses": [], "intermediate_responses": []},
        },
    )
    assert case.session_input == {"app_name": "x", "user_id": "u", "state": {"k": 1}}
    assert case.raw == samples.OLD_EVALSET[0]
    assert document.case(1).turns == ()


def test_old_test_file_is_one_case_named_after_the_file(opened: Open) -> None:
    document = opened(json.dumps(samples.OLD_TEST), "late_parcel.test.json")
    assert (document.format, document.kind, document.eval_set_id) == ("old_test", "test", "late_parcel")
    assert [case.eval_id for case in document.cases] == ["late_parcel"]
    case = document.case(0)
    assert case.turns is not None
    assert [turn["user_content"]["parts"] for turn in case.turns] == [[{"text": "q"}], [{"text": "b"}]]
    assert case.session_input is None
    assert case.raw == samples.OLD_TEST


@pytest.mark.parametrize("name", ["a.evalset.json", "a.test.json", "a.json"])
@pytest.mark.parametrize("content", [samples.OLD_EVALSET, samples.OLD_TEST])
def test_both_formats_are_accepted_under_any_file_name(opened: Open, name: str, content: Any) -> None:
    document = opened(json.dumps(content), name)
    assert not document.broken
    assert document.cases
    assert document.kind == ("test" if content is samples.OLD_TEST or name == "a.test.json" else "evalset")


def test_converting_twice_gives_the_same_case(opened: Open) -> None:
    text = json.dumps(samples.OLD_EVALSET)
    assert opened(text).case(0) == opened(text).case(0)


# In these the place of the fault is marked with §.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"name": "n", "data": [{§"qury": "q"}]}]', "([0].data[0].qury): `query` is missing. Did you mean `query`"),
        ('[{§"nam": "n", "data": []}]', "([0].nam): `name` is missing. Did you mean `name` instead of `nam`?"),
        ('[§{"name": "n"}]', "([0]): `data` is missing"),
        ('[{"name": §5, "data": []}]', "([0].name): `name` must be text, not the number 5"),
        ('[{"name": "n", "data": §5}]', "([0].data): `data` must be a list, not the number 5"),
        ('[{"name": "n", "data": [§"q"]}]', "([0].data[0]): this must be a turn: an object with `query`, not the text"),
        ('[{"query": §5}]', "([0].query): `query` must be text, not the number 5"),
        (
            '[{"query": "q", "expected_tool_use": [§{"tool_name": "t"}]}]',
            "([0].expected_tool_use[0]): `tool_input` is missing",
        ),
        (
            '[{"query": "q", "expected_tool_use": [{"tool_name": "t", "tool_input": §"x"}]}]',
            '([0].expected_tool_use[0].tool_input): `tool_input` must be an object, not the text "x"',
        ),
        ('[{"query": "q", "expected_tool_use": §null}]', "([0].expected_tool_use): `expected_tool_use` must be a list"),
        (
            '[{"query": "q", "expected_intermediate_agent_responses": [{"author": §1, "text": "t"}]}]',
            "([0].expected_intermediate_agent_responses[0].author): `author` must be text, not the number 1",
        ),
        (
            '[{"name": "n", "data": [], "initial_session": §[1]}]',
            "([0].initial_session): this must be an object with `app_name`, `user_id` and `state`, not a list",
        ),
        (
            '[{"name": "n", "data": [], "initial_session": {"app_name": §1}}]',
            "([0].initial_session.app_name): `app_name` must be text, not the number 1",
        ),
        (
            '[{"name": "n", "data": []},\n{"name": §"n", "data": []}]',
            "([1].name): duplicate case ID `n`: the case on line 1 has the same ID",
        ),
    ],
)
def test_input_that_breaks_adks_converter_is_an_error_at_its_place(opened: Open, text: str, expected: str) -> None:
    before = text[: text.index("§")]
    place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    document = opened(text.replace("§", ""))
    assert document.broken
    errors = [line for line in _reported(document) if line.startswith("error")]
    assert errors[0].startswith(f"error {place} {expected}")
    if "duplicate" not in expected:
        with pytest.raises(BrokenCaseError):
            document.case(0)


def test_dropped_key_of_an_old_format_is_reported_once(opened: Open) -> None:
    call = {"tool_name": "t", "tool_input": {}, "mock_tool_output": "x"}
    text = json.dumps([{"query": "q", "expected_tool_use": [call, call], "referenc": "r"}])
    document = opened(text, "a.test.json")
    assert not document.broken
    assert sorted(fault.message.split("`")[1] for fault in document.faults) == ["mock_tool_output", "referenc"]
    assert "Did you mean `reference`?" in " ".join(_reported(document))


def test_old_file_that_is_not_json_has_all_its_faults(opened: Open) -> None:
    document = opened('[\n{"query": "q",},\n{"query": "r"} // two\n]', "a.test.json")
    assert [(fault.line, fault.column) for fault in document.faults] == [(2, 14), (3, 16)]


def test_empty_old_file_has_no_cases(opened: Open) -> None:
    document = opened("[]")
    assert (document.format, document.cases, document.broken) == ("old_evalset", (), False)
