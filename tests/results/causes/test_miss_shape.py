"""Causes of calls without a recording: the gate's real messages, folded by tool and differing argument."""

from typing import Any

import pytest

from tests.worker.test_matching import call, frame, gate, why
from workbench.store.reasons import error_text, miss_text


def missed(then: list[dict[str, Any]], now: dict[str, Any], tool: str = "refund") -> str:
    made = gate(*(frame(args=args) for args in then))
    for _ in then:
        made.tool(call(then[0]))
    return error_text(why(made.tool(call(now, tool=tool))))


@pytest.mark.parametrize(
    ("then", "now", "tool", "text"),
    [
        ([{"n": 1}], {"n": 2}, "refund", "refund: n differs from the recording"),
        (
            [{"n": "x" * 500}],
            {"n": 'quo"te, in turn 3; x was y'},
            "refund",
            "refund: n differs from the rec",
        ),
        ([{"n": 1, "to": [{"id": 4}]}], {"n": 1, "to": [{"id": 5}]}, "refund", "refund: to[].id differs from the"),
        ([{"n": 1}], {}, "refund", "refund: n differs from the recording"),
        ([{"n": 1}], {"n": 1}, "refund", "refund: more calls than recorded"),
        ([{"n": 1}], {"n": 1}, "find", "find: call is not in the recording"),
        ([], {"n": 1}, "find", "find: call is not in the recording"),
    ],
)
def test_missed_call_is_named_by_tool_and_differing_argument(
    then: list[dict[str, Any]], now: dict[str, Any], tool: str, text: str
) -> None:
    assert missed(then, now, tool).startswith(text)


def test_cases_that_miss_the_same_argument_have_the_same_cause() -> None:
    assert missed([{"order": "A-18"}], {"order": "late parcel"}) == missed([{"order": "B"}], {"order": ["C", 7]})


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ('its request 2 has another instruction: was "a", now "b"', "another instruction than recorded"),
        ("its request 1 has other tools", "other tools than recorded"),
        ("only 3 of its requests are recorded", "more requests than recorded"),
        ("none of its requests is recorded", "request is not in the recording"),
        ("its outcome was not recorded: gone", "its outcome was not recorded"),
    ],
)
def test_cause_of_a_missed_request_names_the_part_that_differs(message: str, text: str) -> None:
    assert miss_text(f"desk made a model request that is not recorded: {message}") == f"model of desk: {text}"


@pytest.mark.parametrize(
    "message", ["", "desk called refund(", "RuntimeError: no order", "a(" * 900, "b called " * 200]
)
def test_other_messages_are_not_missed_calls(message: str) -> None:
    assert miss_text(message) == ""
