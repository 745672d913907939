import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria import json_difference as alignment
from workbench.criteria.base import ScoreRequest
from workbench.criteria.call_rows import MAX_DIFFERENCES, CallRules, Calls, call_cause, call_rows
from workbench.criteria.trajectory import score
from workbench.files.criteria import Criterion
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


FIND, TRACK = ("find_order", {"id": "A-7"}), ("track_parcel", {"id": "A-7"})


def turn(*calls: tuple[str, Any]) -> dict[str, Any]:
    return {"intermediate_data": {"tool_uses": [{"name": name, "args": args} for name, args in calls]}}


def cause(expected: list[Any], actual: list[Any], **options: Any) -> str:
    criterion = Criterion("tool_trajectory_avg_score", 1.0, 1.0, options)
    wanted, got = (tuple(turn(*calls) for calls in turns) for turns in (expected, actual))
    scored = score(ScoreRequest(criterion, wanted, got))
    return call_cause(scored.result, scored.turns)


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        ([FIND, TRACK], [FIND], "track_parcel not called"),
        ([FIND], [FIND, TRACK], "extra call track_parcel"),
        ([FIND, TRACK], [FIND, TRACK, TRACK], "track_parcel called too often"),
        ([FIND, TRACK, TRACK], [FIND, TRACK], "track_parcel called too few times"),
        ([FIND, TRACK], [TRACK, FIND], "track_parcel called before find_order"),
        ([FIND, TRACK], [FIND, ("send_label", {})], "track_parcel not called"),
        ([("refund", {"amount": 12.5})], [("refund", {"amount": "12.50"})], "refund: amount is text, expected number"),
        ([("refund", {"amount": 12.5})], [("refund", {"amount": 13})], "refund: amount differs"),
        ([("refund", {"amount": 12.5})], [("refund", {"amount": None})], "refund: amount is null, expected number"),
        ([("refund", {"all": True})], [("refund", {"all": "yes"})], "refund: all is text, expected true/false"),
        ([("refund", {"a": 1, "b": 2})], [("refund", {"a": 1})], "refund: argument b missing"),
        ([("refund", {"a": 1})], [("refund", {"a": 1, "b": 2})], "refund: argument b not expected"),
        ([("refund", {})], [("refund", None)], "refund: arguments missing"),
        ([("refund", None)], [("refund", {})], "refund: arguments not expected"),
        ([("buy", {"items": [{"n": 1}]})], [("buy", {"items": [{"n": 2}]})], "buy: items[].n differs"),
        ([("buy", {"a": 1, "b": 1})], [("buy", {"a": 2, "b": "1"})], "buy: a differs"),
    ],
)
def test_first_difference_is_named_without_values(expected: Any, actual: Any, text: str) -> None:
    assert cause([expected], [actual]) == text


def test_first_failed_turn_decides() -> None:
    assert cause([[FIND], [FIND, TRACK], [TRACK]], [[FIND], [FIND], []]) == "track_parcel not called"


def test_match_type_decides_what_counts() -> None:
    assert cause([[FIND, TRACK]], [[TRACK, ("refund", {}), FIND]], match_type="IN_ORDER").startswith("track_parcel")
    extra_and_missing = [[("refund", {}), FIND]]
    assert cause([[FIND, TRACK]], extra_and_missing, match_type="ANY_ORDER") == "track_parcel not called"


@given(st.integers(), st.text(max_size=5), st.integers(0, 3))
def test_cause_does_not_depend_on_values_and_positions(number: int, text: str, before: int) -> None:
    actual = [*[FIND] * before, ("refund", {"id": text, "amount": str(number)})]
    expected = [*[FIND] * before, ("refund", {"id": text, "amount": number})]
    assert cause([expected], [actual]) == "refund: amount is text, expected number"
