import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria import alignment
from workbench.criteria.call_rows import MAX_DIFFERENCES, CallRules, Calls, call_rows
from workbench.files.invocation import ToolCall

calls = st.lists(
    st.builds(ToolCall, name=st.sampled_from("ab"), args=st.none() | st.dictionaries(st.just("k"), st.integers(0, 2))),
    max_size=8,
)


def _call(name: str, **args: Any) -> ToolCall:
    return ToolCall(name, args)


def _picture(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['mark']} {(row['expected'] or row['actual'])['name']}" for row in rows]


@given(calls, calls, st.booleans())
def test_every_call_is_in_one_row_with_the_right_mark(
    expected: list[ToolCall], actual: list[ToolCall], ignore_args: bool
) -> None:
    rows = call_rows(expected, actual, CallRules(ignore_args))
    assert [row["expected_index"] for row in rows if row["expected"]] == list(range(len(expected)))
    assert sorted(row["actual_index"] for row in rows if row["actual"]) == list(range(len(actual)))
    calls = Calls(expected, actual, CallRules(ignore_args))
    wanted, got = calls.expected, calls.actual
    for row in rows:
        one, other = row["expected_index"], row["actual_index"]
        both = one is not None and other is not None
        assert (row["mark"] in ("same", "differs", "moved")) == both
        if both:
            assert (wanted[one] == got[other]) == (row["differences"] == [])
            assert row["mark"] != "same" or wanted[one] == got[other]
            assert expected[one].name == actual[other].name
        else:
            assert (row["mark"] == "missing") == (one is not None)
    unmoved = [row for row in rows if row["mark"] in ("same", "differs")]
    for before, after in itertools.pairwise(unmoved):
        assert before["actual_index"] < after["actual_index"]
    missing = {row["expected"]["name"] for row in rows if row["mark"] == "missing"}
    assert not missing & {row["actual"]["name"] for row in rows if row["mark"] == "extra"}, "these two belong together"


@given(calls, calls)
def test_every_call_present_on_both_sides_is_matched(expected: list[ToolCall], actual: list[ToolCall]) -> None:
    rows = call_rows(expected, actual, CallRules())
    identical = sum(row["mark"] in ("same", "moved") and not row["differences"] for row in rows)
    keys = Calls(expected, actual, CallRules())
    left = list(keys.actual)
    for key in keys.expected:
        if key in left:
            left.remove(key)
    assert identical == len(actual) - len(left)


def test_similar_calls_are_paired() -> None:
    expected = [_call("find", id="A-7"), _call("refund", order="A-7", amount=12.5)]
    actual = [
        _call("login"),
        _call("find", id="A-7"),
        _call("refund", order="B-1", amount=99),
        _call("refund", order="A-7", amount="12.50"),
    ]
    rows = call_rows(expected, actual, CallRules())
    assert _picture(rows) == ["extra login", "same find", "extra refund", "differs refund"]
    assert [difference["path"] for difference in rows[3]["differences"]] == ["args.amount"]


def test_moved_calls_are_not_reported_as_missing() -> None:
    expected = [_call("a", k=1), _call("b", k=1), _call("c", k=1)]
    actual = [_call("c", k=2), _call("b", k=1), _call("a", k=1)]
    rows = call_rows(expected, actual, CallRules())
    assert sorted(_picture(rows)) == ["moved b", "moved c", "same a"] or sorted(_picture(rows)) == [
        "moved a",
        "moved c",
        "same b",
    ]
    assert rows[2]["differences"][0]["path"] == "args.k"


def test_missing_args_differ_from_empty_args_unless_ignored() -> None:
    expected, actual = [ToolCall("now", None)], [ToolCall("now", {})]
    (row,) = call_rows(expected, actual, CallRules())
    assert row["mark"] == "differs"
    assert [row["differences"][0][key] for key in ("path", "expected_shown", "actual_shown")] == [
        "args",
        "(not given)",
        "{}",
    ]
    assert _picture(call_rows(expected, actual, CallRules(ignore_args=True))) == ["same now"]


def test_excess_differences_are_counted_but_not_stored() -> None:
    many = {f"k{index}": index for index in range(500)}
    (row,) = call_rows([ToolCall("a", many)], [ToolCall("a", {})], CallRules())
    assert len(row["differences"]) == MAX_DIFFERENCES
    assert row["more_differences"] == 500 - MAX_DIFFERENCES


def test_huge_arguments_are_shortened_in_their_row() -> None:
    huge = ToolCall("a", {"text": "x" * 1_000_000, **{f"k{index}": index for index in range(1000)}})
    (row,) = call_rows([huge], [huge], CallRules())
    assert row["mark"] == "same"
    assert len(json.dumps(row)) < 10_000
    assert row["actual"]["args"]["…"] == "801 more"


@pytest.mark.parametrize("cells", [alignment.MAX_CELLS, 0])
def test_hundreds_of_repeated_calls_are_aligned(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MAX_CELLS", cells)
    expected = [_call("poll", attempt=index) for index in range(600)]
    actual = [_call("poll", attempt=index + index % 2) for index in range(700)]
    rows = call_rows(expected, actual, CallRules())
    assert sum(row["mark"] == "same" for row in rows) >= 300
    assert sum(row["expected"] is not None for row in rows) == 600
    json.dumps(rows)
