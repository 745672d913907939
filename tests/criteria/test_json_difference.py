import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE, leaks
from workbench.criteria.json_difference import ABSENT, describe, hashable, sentence, shown
from workbench.criteria.value_rules import compare, described

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, width=16) | st.text("ab1 ", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


def _first(expected: Any, actual: Any) -> str:
    return sentence(described(next(compare(expected, actual, {}, "args"))))


@given(values, values)
def test_hashable_forms_are_equal_like_python_values(one: Any, other: Any) -> None:
    assert (hashable(one) == hashable(other)) == (one == other)


@given(values, values)
def test_values_have_differences_exactly_if_they_are_unequal(one: Any, other: Any) -> None:
    assert (next(compare(one, other, {}, "args"), None) is None) == (one == other)


@given(values)
def test_copy_has_no_differences(value: Any) -> None:
    assert list(compare(value, copy.deepcopy(value), {}, "args")) == []


def test_nan_differs_from_itself_even_if_it_is_the_same_object() -> None:
    one, other = json.loads('[{"a": NaN}, {"a": NaN}]')
    assert one == other, "Python compares by identity first"
    assert hashable(one) != hashable(other)
    assert _first(one, other) == "args.a: number NaN, got number NaN"


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        ({"amount": 12.5}, {"amount": "12.50"}, 'args.amount: number 12.5, got text "12.50"'),
        ({"ok": True}, {"ok": "true"}, 'args.ok: true, got text "true"'),
        ({"a": None}, {}, "args.a: nothing (null), got nothing (not given)"),
        ({}, {"a": [1]}, "args.a: nothing (not given), got list [1]"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "args.a[1].b: number 2, got number 3"),
        ({"a": [1]}, {"a": [1, 2]}, "args.a[1]: nothing (not given), got number 2"),
        ({"a b": 1}, {"a b": 2}, 'args["a b"]: number 1, got number 2'),
        ({"a": {}}, {"a": []}, "args.a: object {}, got list []"),
    ],
)
def test_differences_are_described_in_plain_words(expected: Any, actual: Any, said: str) -> None:
    assert _first(expected, actual) == said


@pytest.mark.parametrize(
    ("expected", "actual", "wanted", "got"),
    [
        ("refund ", "refund", '"refund␠"', '"refund"'),
        ("re\u200bfund", "refund", '"re⟨ZWSP⟩fund"', '"refund"'),
        ("re\ufe0ffund", "refund", '"re\ufe0ffund" (U+FE0F at character 3)', '"refund" (U+0066 at character 3)'),
        ("a\u2028b", "a\nb", '"a⟨BREAK⟩b" (U+2028 at character 2)', '"a␊b" (U+000A at character 2)'),
        ("caf\u00e9", "cafe\u0301", '"café" (U+00E9 at character 4)', '"cafe\u0301" (U+0065 U+0301 at character 4)'),
        ("р", "p", '"р" (U+0440 at character 1)', '"p" (U+0070 at character 1)'),
        ("a–b", "a-b", '"a–b" (U+2013 at character 2)', '"a-b" (U+002D at character 2)'),
        ("ａ", "a", '"ａ" (U+FF41 at character 1)', '"a" (U+0061 at character 1)'),
        ("yes", "no", '"yes"', '"no"'),
        ("返金", "払戻", '"返金"', '"払戻"'),
    ],
)
def test_lookalike_characters_are_named(expected: str, actual: str, wanted: str, got: str) -> None:
    found = describe("args", expected, actual)
    assert (found["expected_shown"], found["actual_shown"]) == (wanted, got)


def test_long_texts_are_cut_around_their_first_difference() -> None:
    found = describe("args", "x" * 5000 + "A" + "y" * 5000, "x" * 5000 + "B" + "y" * 5000)
    assert "A" in found["expected_shown"]
    assert "B" in found["actual_shown"]
    assert len(found["expected_shown"]) < 100


def test_long_values_are_shortened() -> None:
    found = describe("args", {"text": "x" * 1500}, ["x" * 5000])
    assert found["expected"] == {"text": "x" * 1500}
    assert len(found["actual"]) < 300


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_shown_text_is_safe_and_short(text: str) -> None:
    found = describe("args", text, {"k": text})
    for side in ("expected_shown", "actual_shown"):
        assert not leaks(found[side])
        assert "\n" not in found[side]
        assert len(found[side]) < 1000
    json.dumps(found)


@given(st.text(), st.text(), st.text(st.characters(), max_size=80))
def test_any_two_texts_can_be_described(one: str, other: str, before: str) -> None:
    found = describe("args", before + one, before + other)
    assert not leaks(found["expected_shown"] + found["actual_shown"])
    if one != other:
        assert found["expected_shown"] != found["actual_shown"]


def test_values_are_shown_as_short_json() -> None:
    assert [shown(value) for value in (ABSENT, None, True, math.inf, "")] == [
        "(not given)",
        "(null)",
        "true",
        "Infinity",
        '""',
    ]
