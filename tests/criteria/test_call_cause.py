"""The cause of a failed comparison of calls is the first call that differs, without its values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria.base import ScoreRequest
from workbench.criteria.call_cause import call_cause
from workbench.criteria.trajectory import score
from workbench.files.criteria import Criterion

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
def test_values_and_places_do_not_matter(number: int, text: str, before: int) -> None:
    actual = [*[FIND] * before, ("refund", {"id": text, "amount": str(number)})]
    expected = [*[FIND] * before, ("refund", {"id": text, "amount": number})]
    assert cause([expected], [actual]) == "refund: amount is text, expected number"
