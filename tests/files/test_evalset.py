"""Opening evalset files: the list of cases, each case, and every fault with its place."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.files import samples
from tests.files.conftest import Open
from workbench.files.evalset import (
    CHECKED_AT_ONCE,
    MOST_FAULTS,
    BrokenCaseError,
    BrokenFileError,
    EvalsetDocument,
    open_evalset,
    read_initial_session,
)

TURN = '{"user_content": {"parts": [{"text": "hi"}]}}'


def _reported(document: EvalsetDocument, severity: str | None = None) -> list[str]:
    """Return `line:column (path) message. hint` of every fault."""
    return [
        fault.sentence("").removeprefix(":")
        for fault in document.faults
        if severity is None or fault.severity == severity
    ]


def test_valid_file_lists_its_cases_without_faults(opened: Open) -> None:
    content = {**samples.EVALSET, "eval_cases": [samples.CASE, samples.SCENARIO]}
    del content["unknown"]
    for kind in (samples.CASE, samples.SCENARIO):
        assert kind in content["eval_cases"]
    document = opened(json.dumps(content, indent=2))
    assert (document.kind, document.format, document.broken) == ("evalset", "current", False)
    assert (document.eval_set_id, document.name, document.description) == ("s", "n", None)
    assert [(case.eval_id, case.index) for case in document.cases] == [("late", 0), ("e", 1)]
    assert {fault.severity for fault in document.faults} == {"warning"}
    assert all("drops it" in fault.message for fault in document.faults)


def test_case_is_normalised_and_raw_stays_unchanged(with_case: Open) -> None:
    text = (
        '{"evalId": "late", "conversation": [{"userContent": {"parts": [{"text": "hi", "thought": null}]},'
        ' "finalResponse": null, "intermediateData": {"toolUses": [{"name": "f", "args": {"someKey": null}}],'
        ' "intermediateResponses": [["a", [{"text": "x"}]]]}}],'
        ' "sessionInput": {"appName": "desk", "userId": "u", "state": {"theKey": null},'
        ' "sessionId": null, "moreKeys": null},'
        ' "finalSessionState": {"aB": null}}'
    )
    document = with_case(text)
    case = document.case(0)
    assert case.eval_id == "late"
    assert case.turns == (
        {
            "user_content": {"parts": [{"text": "hi"}]},
            "intermediate_data": {
                "tool_uses": [{"name": "f", "args": {"someKey": None}}],
                "intermediate_responses": [["a", [{"text": "x"}]]],
            },
        },
    )
    assert case.session_input == {"app_name": "desk", "user_id": "u", "state": {"theKey": None}, "moreKeys": None}
    assert case.final_session_state == {"aB": None}
    assert case.scenario is None
    assert case.rubrics == ()
    assert case.raw == json.loads(text)
    assert document.case(0) is case


def test_scenario_has_no_turns(with_case: Open) -> None:
    case = with_case(json.dumps(samples.NAMED_PERSONA)).case(0)
    assert case.turns is None
    assert case.scenario == samples.NAMED_PERSONA["conversation_scenario"]


def test_keys_that_adk_drops_stay_only_in_raw(with_case: Open) -> None:
    document = with_case(json.dumps(samples.CASE))
    case = document.case(0)
    assert case.turns is not None
    (event,) = case.turns[1]["intermediate_data"]["invocation_events"]
    assert "unknown" not in event
    assert case.raw == samples.CASE
    assert len(_reported(document, "warning")) == 1


# In these the place of the fault is marked with §.


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            '§{"eval_id": "a"}',
            "(eval_cases[0]): this case has neither `conversation` nor `conversation_scenario`",
        ),
        (
            '{"eval_id": "a", §"converstion": []}',
            "(eval_cases[0].converstion): this case has neither `conversation` nor `conversation_scenario`. "
            "Did you mean `conversation` instead of `converstion`?",
        ),
        (
            '{"eval_id": "a", "conversation": [{"user_content": §"hi"}]}',
            '(eval_cases[0].conversation[0].user_content): `user_content` must be an object, not the text "hi". Write'
            ' {"role": "user", "parts": [{"text": "…"}]}',
        ),
        (
            '{"eval_id": "a", "conversation": [{§"user_contents": {}}]}',
            "(eval_cases[0].conversation[0].user_contents): unknown key `user_contents`: ADK rejects the file. Did you"
            " mean `user_content`?",
        ),
        (
            '{"eval_id": "a", "conversation": [{"userContent": {"parts": [{§"txt": 1}]}}]}',
            "(eval_cases[0].conversation[0].userContent.parts[0].txt): unknown key `txt`: ADK rejects the file. Did you"
            " mean `text`?",
        ),
        (
            '{"eval_id": "a", "conversation": [§{}]}',
            "(eval_cases[0].conversation[0]): `user_content` is missing",
        ),
        (
            '{§"evalid": "a", "conversation": []}',
            "(eval_cases[0].evalid): `eval_id` is missing. Did you mean `eval_id` instead of `evalid`?",
        ),
        (
            '{"eval_id": §5, "conversation": []}',
            "(eval_cases[0].eval_id): `eval_id` must be text, not the number 5",
        ),
        (
            '{"eval_id": "a", "conversation": [{§"query": "hi", "user_content": {}}]}',
            "(eval_cases[0].conversation[0].query): unknown key `query`: ADK rejects the file. Did you mean"
            " `user_content`?",
        ),
        (
            '{"eval_id": "a", "conversation": [{"user_content": {}, "intermediate_data":'
            ' {§"tool_uses": [], "invocation_events": []}}]}',
            "(eval_cases[0].conversation[0].intermediate_data.tool_uses): `tool_uses` and `invocation_events` both",
        ),
        (
            '{"eval_id": "a", "conversation": [{"user_content": {}, "intermediate_data":'
            ' {"tool_uses": [{"args": §"{}"}]}}]}',
            "(eval_cases[0].conversation[0].intermediate_data.tool_uses[0].args): `args` must be an object, not the"
            ' text "{}". This is an object written as text',
        ),
        (
            '{"eval_id": "a", "conversation": [{"user_content": {}, "intermediate_data":'
            ' {"intermediate_responses": [§["x"]]}}]}',
            "(eval_cases[0].conversation[0].intermediate_data.intermediate_responses[0]): this list has too few items",
        ),
        (
            '{"eval_id": "a", "conversation": [{§"user_content": {}, "userContent": {}}]}',
            "(eval_cases[0].conversation[0].user_content): `user_content` occurs in both snake_case and camelCase",
        ),
        (
            '{"eval_id": "a", "conversation": [], §"conversation_scenario": {"starting_prompt": "",'
            ' "conversation_plan": ""}}',
            "(eval_cases[0].conversation_scenario): a case may have `conversation` or `conversation_scenario`, but",
        ),
        (
            '{"eval_id": "a", "conversation_scenario": {"starting_prompt": "", "conversation_plan": "",'
            ' "user_persona": §"NOVCE"}}',
            "(eval_cases[0].conversation_scenario.user_persona): `NOVCE` is not a prebuilt persona. Did you mean"
            " NOVICE?",
        ),
        (
            '{"eval_id": "a", "conversation": [], "session_input": §{"app_name": "x"}}',
            "(eval_cases[0].session_input): `user_id` is missing",
        ),
        (
            '{"eval_id": "a", "conversation": [], "sessionInput": {"appName": "x", "userId": "u", "events":'
            ' [{"author": "user"}, §{"content": {}}]}}',
            "(eval_cases[0].sessionInput.events[1]): `author` is missing",
        ),
        (
            '{"eval_id": "a", "conversation": [], "session_input": {"app_name": "x", "user_id": "u", "events":'
            ' [{"author": §""}]}}',
            "(eval_cases[0].session_input.events[0].author): this event has no author. Write",
        ),
        (
            '{"eval_id": "a", "conversation": [], "session_input": {"app_name": "x", "user_id": "u", "events":'
            ' [{"author": "user", "content": {§"part": []}}]}}',
            "(eval_cases[0].session_input.events[0].content.part): unknown key `part`. Did you mean `parts`?",
        ),
        (
            '{"eval_id": "a", "conversation": [{"user_content": {"parts": [{"inline_data": {"data": §"no!"}}]}}]}',
            "(eval_cases[0].conversation[0].user_content.parts[0].inline_data.data): `data` must be base64 text, but",
        ),
        ("§5", "(eval_cases[0]): this must be an object, not the number 5"),
    ],
)
def test_input_that_adk_rejects_is_an_error_at_its_place(with_case: Open, case: str, expected: str) -> None:
    document = with_case(case.replace("§", ""))
    assert document.broken
    assert _reported(document, "error")[0].startswith(f"3:{case.index('§') + 1} {expected}")
    with pytest.raises(BrokenCaseError, match=r"orders\.evalset\.json:3:"):
        document.case(0)


def test_events_of_a_session_keep_unknown_keys_and_values_of_the_user(with_case: Open) -> None:
    events = (
        '[{"author": "user", "invocationId": "i", "content": {"parts": [{"text": "hi", "thought": null}]},'
        ' "actions": {"stateDelta": {"aB": null}, "someAction": 1}, "branch": null}]'
    )
    document = with_case(
        '{"eval_id": "a", "conversation": [], "session_input":'
        ' {"app_name": "x", "user_id": "u", "events": ' + events + "}}"
    )
    session = document.case(0).session_input
    assert session is not None
    assert session["events"] == [
        {
            "author": "user",
            "invocationId": "i",
            "content": {"parts": [{"text": "hi"}]},
            "actions": {"state_delta": {"aB": None}, "someAction": 1},
        }
    ]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            '{"eval_id": "a", §"eval_id": "b", "conversation": [%s]}',
            "(eval_cases[0].eval_id): duplicate key `eval_id`: this one is used, the one on line 3 is ignored",
        ),
        (
            '{§"eval_id": "a", "evalId": "b", "conversation": [%s]}',
            "(eval_cases[0].eval_id): `eval_id` and `evalId` are the same key in two spellings: ADK reads `evalId`",
        ),
        (
            '{"evalId": "b", §"eval_id": "a", "conversation": [%s]}',
            "(eval_cases[0].eval_id): `eval_id` and `evalId` are the same key in two spellings: ADK reads `evalId`",
        ),
        (
            '{"eval_id": "b", "conversation": [%s], "session_input": {"app_name": "s", §"user_id": "a",'
            ' "userId": "b"}}',
            "(eval_cases[0].session_input.user_id): `user_id` and `userId` are the same key in two spellings",
        ),
        (
            '{"eval_id": "b", "conversation": [%s], "x": §NaN}',
            "(eval_cases[0].x): NaN is not valid JSON, but ADK accepts it",
        ),
        (
            '{"eval_id": "b", "conversation": [%s], "x": §"\\udfff"}',
            "(eval_cases[0].x): half a character (\\udfff, a lone surrogate), which ADK cannot read",
        ),
        (
            '{"eval_id": "b", "conversation": [%s], §"rubric": []}',
            "(eval_cases[0].rubric): `rubric` is kept, but nothing reads it. Did you mean `rubrics`?",
        ),
        (
            '{"eval_id": "b", "conversation": §[]}',
            "(eval_cases[0].conversation): the conversation has no turns, so there is nothing to judge",
        ),
        (
            '{"eval_id": "b", "conversation": [{"user_content": {}, "intermediate_data":'
            ' {"invocation_events": [{"author": "x", §"contents": 1}]}}]}',
            "(eval_cases[0].conversation[0].intermediate_data.invocation_events[0].contents): ADK does not know the key"
            " `contents` here and drops it. Did you mean `content`?",
        ),
        (
            '{"eval_id": "b", "conversation_scenario": {"starting_prompt": "", "conversation_plan": "", "user_persona":'
            ' {"id": "i", "description": "", "behaviors": [], §"zoo": 1}}}',
            "(eval_cases[0].conversation_scenario.user_persona.zoo): ADK does not know the key `zoo` here and drops it",
        ),
    ],
)
def test_input_that_adk_drops_or_misreads_is_a_warning(with_case: Open, case: str, expected: str) -> None:
    marked = case.replace("%s", TURN)
    document = with_case(marked.replace("§", ""))
    assert not document.broken
    assert _reported(document)[0].startswith(f"3:{marked.index('§') + 1} {expected}")
    assert document.cases[0].eval_id == document.case(0).eval_id == "b"


@pytest.mark.parametrize(
    "extra", ['"app_name": "a", "appName": "b"', '"session_input": {"evalId": 1, "eval_id": 2, %s}']
)
def test_two_spellings_of_an_unrelated_key_give_no_warning(with_case: Open, extra: str) -> None:
    session = '"app_name": "s", "user_id": "u"'
    # A case without anything to warn about would not be scanned.
    document = with_case(f'{{"eval_id": "b", "conversation": [{TURN}], "x": NaN, {extra.replace("%s", session)}}}')
    assert not [line for line in _reported(document) if "two spellings" in line]


def test_lone_surrogates_are_kept(opened: Open) -> None:
    text = (
        '{"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [{"user_content": {"parts":'
        ' [{"text": "x\\ud800 \\ud83d\\ude00 \\\\ud800"}]}, "intermediate_data": {"tool_uses":'
        ' [{"name": "f", "args": {"\\udc01": "\\udc02"}}]}}]}]}'
    )
    turns = opened(text).case(0).turns
    assert turns is not None
    assert turns[0]["user_content"]["parts"][0]["text"] == "x\ud800 😀 \\ud800"
    assert turns[0]["intermediate_data"]["tool_uses"][0]["args"] == {"\udc01": "\udc02"}
    as_bytes = opened('{"eval_set_id": "s\ud800", "eval_cases": [{"eval_id": "a\ud801", "conversation": []}]}')
    assert (as_bytes.eval_set_id, as_bytes.cases[0].eval_id, as_bytes.broken) == ("s\ud800", "a\ud801", False)
    assert as_bytes.case(0).eval_id == "a\ud801"


def test_byte_order_mark_is_a_warning(opened: Open) -> None:
    text = '{"eval_set_id": "s", "eval_cases": [{"eval_id": 5}]}'
    document = opened(b"\xef\xbb\xbf" + text.encode())
    assert _reported(document)[0].startswith("1:1: the file begins with a byte-order mark: ADK cannot read it")
    assert _reported(document)[1].startswith(f"1:{text.index('5') + 1} (eval_cases[0].eval_id): ")


def test_other_encodings_are_named(opened: Open) -> None:
    assert (
        _reported(opened('{"eval_set_id": "s"}'.encode("utf-16")))[0]
        == "1:1: the file is UTF-16, not UTF-8. Save it as UTF-8"
    )
    document = opened('{"eval_set_id": "s",\n "name": "caf\xe9", "eval_cases": []}'.encode("latin-1"))
    assert _reported(document) == ["2:14: the byte 0xe9 is not UTF-8. Save it as UTF-8"]
    assert document.broken


def test_json_and_schema_faults_are_reported_together(opened: Open) -> None:
    document = opened(
        """{
  "eval_set_id": "s", // the id
  "nme": "n",
  "eval_cases": [
    {"eval_id": "a", "conversation": [{"user_content": {"parts": [{"txt": "x"}]}},]},
    {"eval_id": "b", "conversation": [{"user_content": 'hi'}]},
    {"eval_id": 5}
  ]
}
"""
    )
    assert document.broken
    assert document.cases == ()
    assert [expected.split(":")[0] for expected in _reported(document)] == ["2", "5", "5", "6", "6", "7"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"eval_set_id": "s", "eval_cases": [],}', ["1:38: a trailing comma before `}`. Delete it"]),
        (
            '{"eval_set_id": "s", "eval_cases": 5,}',
            [
                "1:36 (eval_cases): `eval_cases` must be a list, not the number 5",
                "1:37: a trailing comma before `}`. Delete it",
            ],
        ),
    ],
)
def test_existing_cases_are_not_reported_as_missing(opened: Open, text: str, expected: list[str]) -> None:
    assert _reported(opened(text), "error") == expected


def test_schema_is_not_checked_if_brackets_do_not_match(opened: Open) -> None:
    document = opened('{"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [}]}')
    assert len(_reported(document)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: the file is empty"),
        ("5", "1:1: the file holds the number 5, but an evalset is an object"),
        ("{}", "1:1: `eval_set_id` is missing"),
        ('{"eval_set_id": "s"}', "1:1: `eval_cases` is missing"),
        (
            '{"eval_set_id": "s", "evalCases": []}',
            "1:22 (evalCases): `eval_cases` is missing. Did you mean `eval_cases`",
        ),
        ('{"evalSetId": "s", "eval_cases": []}', "1:2 (evalSetId): `eval_set_id` is missing. Did you mean"),
        ('{"eval_set_id": 5, "eval_cases": []}', "1:17 (eval_set_id): `eval_set_id` must be text, not the number 5"),
        ('{"eval_set_id": "s", "eval_cases": {}}', "1:36 (eval_cases): `eval_cases` must be a list, not an object"),
        ('[{"eval_id": "a", "conversation": []}]', "1:1: a bare list of cases, without the evalset around it"),
        ("[1, 2]", "1:1: a list in a format that ADK does not know"),
    ],
)
def test_file_that_is_not_an_evalset_has_one_fault(opened: Open, text: str, expected: str) -> None:
    document = opened(text)
    assert document.broken
    assert not document.cases
    assert _reported(document)[0].startswith(expected)


def test_keys_beside_the_cases_are_checked(opened: Open) -> None:
    cases = ",\n".join(f'{{"eval_id": "c{number}", "conversation": [{TURN}]}}' for number in range(50))
    document = opened(
        f'{{\n"eval_set_id": "s",\n"eval_cases": [\n{cases}\n],\n"descripton": "x",\n"zebra": 1, "zebra": 2\n}}'
    )
    assert not document.broken
    assert _reported(document) == [
        "55:1 (descripton): ADK does not know the key `descripton` here and drops it. Did you mean `description`?",
        "56:13 (zebra): duplicate key `zebra`: this one is used, the one on line 56 is ignored",
        "56:13 (zebra): ADK does not know the key `zebra` here and drops it",
    ]


def test_last_of_two_eval_cases_lists_is_used(opened: Open) -> None:
    document = opened(
        '{"eval_set_id": "s", "eval_cases": [{"eval_id": "no"}],\n'
        ' "eval_cases": [{"eval_id": "b", "conversation": []}]}'
    )
    assert [case.eval_id for case in document.cases] == ["b"]
    assert document.case(0).turns == ()
    assert _reported(document)[0].startswith("2:2 (eval_cases): duplicate key `eval_cases`")


def test_duplicate_ids_are_errors_and_empty_ids_warnings(opened: Open) -> None:
    cases = ",\n".join(f'{{"eval_id": "{name}", "conversation": [{TURN}]}}' for name in ("a", "b", "a", ""))
    document = opened(f'{{"eval_set_id": "s", "eval_cases": [\n{cases}]}}')
    assert document.broken
    assert _reported(document) == [
        "4:13 (eval_cases[2].eval_id): duplicate case ID `a`: the case on line 2 has the same ID. Give each"
        " case its own ID",
        "5:13 (eval_cases[3].eval_id): the ID of this case is empty",
    ]


def test_file_without_cases_has_a_warning(opened: Open) -> None:
    document = opened('{"eval_set_id": "s", "eval_cases": []}')
    assert not document.broken
    assert [fault.message for fault in document.faults] == ["the file has no cases, so there is nothing to run"]


def test_test_file_may_hold_several_cases(opened: Open) -> None:
    cases = ", ".join(f'{{"eval_id": "{name}", "conversation": [{TURN}]}}' for name in "ab")
    document = opened(f'{{"eval_set_id": "s", "eval_cases": [{cases}]}}', "orders.test.json")
    assert (document.kind, len(document.cases), document.faults) == ("test", 2, ())


def test_missing_file_and_a_folder_have_one_fault(tmp_path: Path) -> None:
    missing = open_evalset(tmp_path / "no.evalset.json")
    assert [fault.message for fault in missing.faults] == ["there is no such file"]
    assert (missing.cases, missing.eval_set_id, missing.broken) == ((), "no", True)
    assert open_evalset(tmp_path).faults[0].message.startswith("the file cannot be read: ")
    with pytest.raises(IndexError):
        missing.case(0)


def test_opening_a_pipe_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.evalset.json"
    os.mkfifo(pipe)
    assert [fault.message for fault in open_evalset(pipe).faults] == [
        "the file cannot be read: it is not a regular file"
    ]


def test_nesting_too_deep_for_adk_is_an_error(with_case: Open) -> None:
    def nested(levels: int) -> str:
        return '{"eval_id": "a", "conversation": [], "x": ' + "[" * levels + "]" * levels + "}"

    assert not with_case(nested(198)).broken
    document = with_case(nested(199))
    assert [fault.column for fault in document.faults if "nested deeper" in fault.message] == [241]
    assert document.broken
    assert with_case(nested(50_000)).broken


# Large files


def _large(count: int, case: dict[str, Any], last: dict[str, Any]) -> str:
    cases = [{**case, "eval_id": f"c{number}"} for number in range(count)]
    return json.dumps({"eval_set_id": "large", "eval_cases": [*cases, {"eval_id": "last", **last}]}, indent=2)


def test_large_file_is_checked_on_request(opened: Open) -> None:
    text = _large(200, samples.CASE | {"conversation": [json.loads(TURN)] * 20}, {"conversation": [{}]})
    assert len(text) > CHECKED_AT_ONCE
    document = opened(text)
    assert len(document.cases) == 201
    assert not document.broken
    assert document.case(100).eval_id == "c100"
    with pytest.raises(BrokenCaseError, match="`user_content` is missing"):
        document.case(200)
    assert document.check() == document.faults
    assert document.broken
    (fault,) = document.faults
    lines = text.splitlines()
    assert lines[fault.line - 1][fault.column - 1 :] == "{}"
    assert document.check() == document.faults


def test_large_file_that_is_not_json_is_reported_at_once(opened: Open) -> None:
    text = _large(200, {"conversation": [json.loads(TURN)] * 20}, {"conversation": []})
    document = opened(text.replace('"c150"', '"c150" // here', 1))
    fault = document.faults[0]
    assert '"c150"' in text.splitlines()[fault.line - 1]
    assert fault.message == "a comment (//): JSON does not allow comments"


def test_errors_are_found_after_many_warnings(opened: Open) -> None:
    case = {"eval_id": "x", "conversation": [], "rubric": 1}
    cases = [{**case, "eval_id": f"c{number}"} for number in range(MOST_FAULTS + 100)]
    document = opened(json.dumps({"eval_set_id": "s", "eval_cases": [*cases, {"eval_id": "last"}]}))
    assert [fault.json_path for fault in document.faults if fault.severity == "error"] == [f"eval_cases[{len(cases)}]"]
    assert len(document.faults) <= MOST_FAULTS + 10


def test_checking_stops_after_very_many_errors(opened: Open) -> None:
    cases = [{"eval_id": f"c{number}"} for number in range(MOST_FAULTS + 100)]
    document = opened(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    assert len(document.faults) == MOST_FAULTS + 1
    assert document.faults[-1].message.startswith(f"{MOST_FAULTS} errors or more: ")


def test_open_document_keeps_its_content_when_the_file_changes(opened: Open) -> None:
    document = opened(f'{{"eval_set_id": "s", "eval_cases": [{{"eval_id": "a", "conversation": [{TURN}]}}]}}')
    document.path.write_text("", encoding="utf-8")
    assert document.case(0).eval_id == "a"


# Initial session files


def test_initial_session_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "initial.session.json"
    path.write_text('{"state": {"k": 1}, "app_name": "x", "user_id": "u"}', encoding="utf-8")
    assert read_initial_session(path) == {"state": {"k": 1}, "app_name": "x", "user_id": "u"}
    path.write_text("{}", encoding="utf-8")
    assert read_initial_session(path) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"app_name": 5}', "1:14 (app_name): `app_name` must be text, not the number 5"),
        ('{"state": []}', "1:11 (state): `state` must be an object, not a list"),
        ('{"state": {},}', "1:13: a trailing comma before `}`. Delete it"),
        ("[]", "1:1: an initial session must be an object with app_name, user_id and state, not a list"),
        ("", "1:1: the file is empty"),
    ],
)
def test_wrong_initial_session_file_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "initial.session.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BrokenFileError) as caught:
        read_initial_session(path)
    assert [fault.sentence("").removeprefix(":") for fault in caught.value.faults] == [expected]


def test_missing_initial_session_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenFileError, match="there is no such file"):
        read_initial_session(tmp_path / "no.json")


def test_initial_session_is_only_for_the_old_test_format(opened: Open) -> None:
    session = {"app_name": "x", "user_id": "u", "state": {"k": 1}}
    modern = opened('{"eval_set_id": "s", "eval_cases": []}', initial_session=session)
    assert "works only with the old test format" in _reported(modern, "error")[0]
    assert opened('[{"name": "n", "data": []}]', initial_session=session).broken
    old = opened('[{"query": "q"}]', "a.test.json", initial_session=session)
    assert not old.broken
    assert old.case(0).session_input == session
    assert opened('[{"query": "q"}]', "a.test.json", initial_session={}).case(0).session_input is None
