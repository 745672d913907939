"""Differences that can be accepted have the form of the evidence."""

from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from workbench.editing.accept import Comparison
from workbench.results.evidence_turn import hunk_lines
from workbench.results.lines import View


def turn(calls: list[dict[str, Any]], answer: str, texts: list[Any] = []) -> dict[str, Any]:  # noqa: B006
    return {
        "user_content": {"parts": [{"text": "hi"}], "role": "user"},
        "intermediate_data": {"tool_uses": calls, "intermediate_responses": texts},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
    }


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


def shown(expected: dict[str, Any], actual: dict[str, Any], width: int = 79, **ended: Any) -> list[list[str]]:
    """Return the lines of each difference."""
    case = {"eval_id": "case", "conversation": [expected], **({"final_session_state": {"n": 1}} if ended else {})}
    lines = [
        list(hunk_lines(hunk, View(width, signs=True))) for hunk in Comparison(case, [actual], ended or None).hunks
    ]
    assert all(line.cell_len <= width for several in lines for line in several)
    return [[line.plain.rstrip() for line in several] for several in lines]


@pytest.mark.parametrize(
    ("expected", "actual", "lines"),
    [
        (
            turn([call("refund", amount=12.5, id="A")], "Paid."),
            turn([call("refund", amount="12.50", id="A")], "Paid."),
            [
                "  call 1 ≠  refund(amount=…)",
                "            − expected  12.5     number",
                '            + actual    "12.50"  text',
            ],
        ),
        (
            turn([call("find", id="A"), call("refund", id="A")], "Paid."),
            turn([call("find", id="A")], "Paid."),
            ['  call 2 −  refund(id="A")  not called'],
        ),
        (
            turn([call("find", id="A")], "Paid."),
            turn([call("find", id="A"), call("refund", id="A")], "Paid."),
            ['  call 2 +  refund(id="A")  not expected'],
        ),
        (
            turn([], "It is on its way."),
            turn([], "It is late."),
            ["  answer ≠  − expected  It is −{on its way}.", "            + actual    It is +{late}."],
        ),
        (turn([], ""), turn([], "It is late."), ["  answer +  It is late."]),
        (
            turn([], "Yes.", [["planner", [{"text": "Flights first."}]]]),
            turn([], "Yes."),
            ["  agent  −  planner", "            − expected  Flights first.", "            the agent gave none"],
        ),
        (
            turn([call("a"), call("b")], "Yes."),
            turn([call("b"), call("a")], "Yes."),
            ["  calls  ↕  − expected  a, b", "            + actual    b, a"],
        ),
    ],
)
def test_each_kind_of_difference_shows_both_sides(
    expected: dict[str, Any], actual: dict[str, Any], lines: list[str]
) -> None:
    assert shown(expected, actual) == [lines]


def test_end_state_has_its_path() -> None:
    assert shown(turn([], "Yes."), turn([], "Yes."), n=2) == [
        ["  state  ≠  n", "            − expected  1  number", "            + actual    2  number"]
    ]


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
@pytest.mark.parametrize("width", [24, 60])
def test_hostile_values_are_safe(text: str, width: int) -> None:
    expected = turn([call("refund", note="x"), call("gone")], "x", [["a", [{"text": "x"}]]])
    actual = turn([call("refund", note=text), call(text, **{text: text})], text, [[text, [{"text": text}]]])
    for lines in shown(expected, actual, width):
        assert not leaks("".join(lines))
