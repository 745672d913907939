"""Editing an evalset file: one case, the list of cases, the frame; all other bytes stay."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.model.evalset_edit import EvalsetText, NewCase
from workbench.model.json_edit import EditError

FILE = """{
  "eval_set_id": "refunds",
  "eval_cases": [
    {
      "eval_id": "eins",
      "conversation": []
    },
    {"evalId": "zwei", "x": 1.0},
    {
      "eval_id": "drei ü",
      "note": null
    }
  ],
  "name": "späte Pakete"
}
"""


def test_a_case_is_changed_and_nothing_else() -> None:
    case = EvalsetText(FILE.encode()).case(2)
    case["note"] = "neu"
    assert EvalsetText(FILE.encode()).with_case(2, case).decode() == FILE.replace("null", '"neu"')


def test_a_case_over_lines_gets_a_member_in_its_own_layout() -> None:
    text = EvalsetText(FILE.encode())
    assert text.with_case(0, {**text.case(0), "rubrics": []}).decode() == FILE.replace(
        '"conversation": []', '"conversation": [],\n      "rubrics": []'
    )


def test_a_case_goes() -> None:
    after = EvalsetText(FILE.encode()).with_order([0, 2]).decode()
    assert after == FILE.replace('    {"evalId": "zwei", "x": 1.0},\n', "")


def test_a_case_moves_with_its_own_text() -> None:
    after = EvalsetText(FILE.encode()).with_order([1, 0, 2]).decode()
    assert [case.get("eval_id") or case["evalId"] for case in json.loads(after)["eval_cases"]] == [
        "zwei",
        "eins",
        "drei ü",
    ]
    assert '    {"evalId": "zwei", "x": 1.0},\n    {\n      "eval_id": "eins",' in after
    assert len(after) == len(FILE)


def test_a_new_case_is_laid_out_like_the_others() -> None:
    after = EvalsetText(FILE.encode()).with_order([0, NewCase({"eval_id": "neu", "conversation": []}), 1, 2]).decode()
    added = '    {\n      "eval_id": "neu",\n      "conversation": []\n    },\n'
    assert after == FILE.replace('    {"evalId": "zwei"', added + '    {"evalId": "zwei"')


def test_the_first_case_of_an_empty_evalset() -> None:
    text = '{\n  "eval_set_id": "a",\n  "eval_cases": []\n}\n'
    after = EvalsetText(text.encode()).with_order([NewCase({"eval_id": "b"})]).decode()
    assert after == text.replace("[]", '[\n    {\n      "eval_id": "b"\n    }\n  ]')


def test_all_cases_go() -> None:
    after = json.loads(EvalsetText(FILE.encode()).with_order([]))
    assert after["eval_cases"] == []
    assert after["name"] == "späte Pakete"


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ({"eval_set_id": "neu"}, '"refunds"', '"neu"'),
        ({"name": "x"}, '"späte Pakete"', '"x"'),
        ({"name": None}, ',\n  "name": "späte Pakete"', ""),
        ({"description": "ä"}, '"späte Pakete"', '"späte Pakete",\n  "description": "ä"'),
    ],
)
def test_what_stands_around_the_cases(change: dict[str, Any], before: str, after: str) -> None:
    assert EvalsetText(FILE.encode()).with_frame(change).decode() == FILE.replace(before, after)


def test_a_byte_order_mark_and_carriage_returns_stay() -> None:
    content = b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()
    after = EvalsetText(content).with_frame({"name": "x"})
    assert after == content.replace("späte Pakete".encode(), b"x")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"eval_cases": [', "not in order"),
        (b'[{"query": "hi"}]', "migrate"),
        (b'{"eval_set_id": "a"}', "no plain list"),
        (b'{"eval_cases": ["\xff"]}', "not UTF-8"),
    ],
)
def test_what_cannot_be_changed_says_why(content: bytes, words: str) -> None:
    with pytest.raises(EditError, match=words):
        EvalsetText(content)


@given(st.lists(st.integers(0, 6), unique=True), st.sampled_from([None, 2, "\t"]), st.integers(0, 3))
def test_any_order_of_cases(order: list[int], indent: int | str | None, new: int) -> None:
    cases = [{"eval_id": f"c{number}é", "amount": float(number)} for number in range(7)]
    content = json.dumps({"eval_set_id": "s", "eval_cases": cases, "n": None}, indent=indent, ensure_ascii=False)
    wanted: list[Any] = [*order, *(NewCase({"eval_id": f"n{number}"}) for number in range(new))]
    after = EvalsetText(content.encode()).with_order(wanted)
    expected = [cases[item] if isinstance(item, int) else item.value for item in wanted]
    assert json.loads(after) == {"eval_set_id": "s", "eval_cases": expected, "n": None}
    # What Python writes is evenly laid out, and so it stays.
    if expected:
        assert after.decode() == json.dumps(json.loads(after), indent=indent, ensure_ascii=False)
