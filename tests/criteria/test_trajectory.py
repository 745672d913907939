import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria.base import NotScorableError, Scored, ScoreRequest
from workbench.criteria.description import read_options
from workbench.criteria.trajectory import MAX_ROWS, TrajectoryOptions, rescore, score
from workbench.files.criteria import Criterion

Turn = dict[str, Any]
MakeTurn = Callable[..., Turn]

calls = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([None, {}, {"k": 1}, {"k": True}, {"k": "1"}])), max_size=4
)


def _score(expected: list[Turn] | None, actual: list[Turn], threshold: float = 1.0, **options: Any) -> Scored:
    criterion = Criterion("tool_trajectory_avg_score", threshold, threshold, options)
    return score(ScoreRequest(criterion, None if expected is None else tuple(expected), tuple(actual)))


def _turn(found: list[tuple[str, Any]]) -> Turn:
    return {"intermediate_data": {"tool_uses": [{"name": name, "args": args} for name, args in found]}}


def _oracle(match_type: str, expected: list[Any], actual: list[Any]) -> bool:
    """Try the definitions one by one."""
    if match_type == "EXACT":
        return expected == actual
    choose = itertools.combinations if match_type == "IN_ORDER" else itertools.permutations
    return any(list(chosen) == expected for chosen in choose(actual, len(expected)))


@given(calls, calls, st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]), st.booleans())
def test_turn_scores_follow_the_definitions(
    expected: list[tuple[str, Any]], actual: list[tuple[str, Any]], match_type: str, ignore_args: bool
) -> None:
    found = _score([_turn(expected)], [_turn(actual)], match_type=match_type, ignore_args=ignore_args)
    names = [name for name, _ in expected], [name for name, _ in actual]
    sides = names if ignore_args else (expected, actual)
    assert found.result.score == float(_oracle(match_type, *sides))
    details = found.turns[0].details
    for other in ("EXACT", "IN_ORDER", "ANY_ORDER"):
        assert details["other_match_types"][other] == float(_oracle(other, *sides))
    assert details["other_match_types"]["names only"] == float(_oracle(match_type, *names))
    assert bool(found.turns[0].reason) == (found.turns[0].status == "failed"), "each failure has its reason"
    json.dumps(details)


def test_case_score_is_the_mean_and_names_the_first_differing_turn(turn: MakeTurn) -> None:
    expected = [turn("greet"), turn(("refund", {"amount": 12.5})), turn("bye")]
    actual = [turn("greet"), turn(("refund", {"amount": "12.50"})), turn()]
    found = _score(expected, actual, threshold=0.5)
    assert found.result.score == 1 / 3
    assert found.result.status == "failed"
    assert found.result.threshold == 0.5
    assert found.result.reason == (
        'turn 2: args.amount: number 12.5, got text "12.50" (call 1: refund), and 1 more of 3 turns'
    )
    assert [result.status for result in found.turns] == ["passed", "failed", "failed"]
    assert found.result.details["other_match_types"]["names only"] == 2 / 3


@pytest.mark.parametrize(
    ("expected", "actual", "match_type", "reason"),
    [
        (["a"], ["b"], "EXACT", "call 1: expected a, got b"),
        (["a"], [], "EXACT", "call 1: expected a, which was not called"),
        ([], ["a"], "EXACT", "call 1: a was called but not expected"),
        (["a", "b"], ["b", "a"], "IN_ORDER", "call 1: a was called out of order, as call 2"),
        (["a"], ["b", "c"], "ANY_ORDER", "call 1: expected a, which was not called"),
        (
            ["now"],
            [("now", {})],
            "EXACT",
            "args: nothing (not given), got object {}; ADK distinguishes missing args from empty args: "
            'write "args": {} (call 1: now)',
        ),
    ],
)
def test_reason_names_the_first_difference(
    turn: MakeTurn, expected: list[Any], actual: list[Any], match_type: str, reason: str
) -> None:
    assert _score([turn(*expected)], [turn(*actual)], match_type=match_type).result.reason == reason


def test_extra_calls_fail_only_with_exact(turn: MakeTurn) -> None:
    expected, actual = [turn("a")], [turn("x", "a", "y")]
    for match_type, value in (("EXACT", 0.0), ("IN_ORDER", 1.0), ("ANY_ORDER", 1.0)):
        assert _score(expected, actual, match_type=match_type).result.score == value


def test_long_loop_of_calls_has_a_short_explanation(turn: MakeTurn) -> None:
    found = _score([turn("a")], [turn(*["a"] * 5000)]).turns[0]
    assert found.reason == "call 2: a was called but not expected"
    assert len(found.details["rows"]) == MAX_ROWS
    assert found.details["more_rows"] == 5000 - MAX_ROWS


def test_turns_without_intermediate_data_have_no_calls(turn: MakeTurn) -> None:
    bare: Turn = {"user_content": {}}
    assert _score([bare], [turn()]).result.status == "passed"
    assert _score([bare], [turn("a")]).result.status == "failed"


def test_calls_are_read_from_recorded_events() -> None:
    recorded = {
        "intermediate_data": {
            "invocation_events": [
                {"author": "root", "content": {"parts": [{"function_call": {"name": "a", "args": {"k": 1}}}]}},
                {"author": "sub", "content": {"parts": [{"text": "hm"}, {"function_call": {"name": "b"}}]}},
            ]
        }
    }
    assert _score([_turn([("a", {"k": 1.0}), ("b", None)])], [recorded]).result.score == 1.0


def test_invalid_requests_are_refused(turn: MakeTurn) -> None:
    with pytest.raises(NotScorableError, match="expected 1 turn, got 2"):
        _score([turn()], [turn(), turn()])
    with pytest.raises(NotScorableError, match="reference"):
        _score(None, [turn()])
    with pytest.raises(NotScorableError, match="IN_ORDER"):
        _score([turn()], [turn()], match_type="INORDER")


def _recorded(*found: tuple[str, str]) -> Turn:
    """Return a recorded turn with one event for each call, given by ID and name."""
    parts = [{"function_call": {"id": call, "name": name, "args": {}}} for call, name in found]
    events = [{"author": "desk", "content": {"parts": [part]}} for part in parts]
    return {"intermediate_data": {"invocation_events": events}}


def _inner(call: str, name: str, **args: Any) -> dict[str, Any]:
    return {"call": call, "tool": "ask", "agent": "clerk", "name": name, "args": args}


def _including(expected: list[tuple[str, Any]], inner: tuple[Any, ...], **options: Any) -> Scored:
    criterion = Criterion("tool_trajectory_avg_score", 1.0, 1.0, {"include_agent_tools": True, **options})
    actual = _recorded(("1", "ask"), ("2", "refund"))
    return score(ScoreRequest(criterion, (_turn(expected),), (actual,), inner_calls=inner))


def test_calls_inside_agent_tools_count_where_they_happened() -> None:
    inner = (_inner("1", "find", id="A"), _inner("1", "find", id="B"))
    in_order = [("ask", {}), ("find", {"id": "A"}), ("find", {"id": "B"}), ("refund", {})]
    found = _including(in_order, (inner,))
    assert found.result.status == "passed"
    assert [row.get("inside") for row in found.turns[0].details["rows"]] == [None, "ask", "ask", None]
    assert found.result.details["include_agent_tools"] is True
    moved = _including([in_order[0], in_order[3], *in_order[1:3]], (inner,))
    assert moved.result.status == "failed"
    assert (
        _including([("ask", {}), ("find", {"id": "C"}), ("refund", {})], (inner,), match_type="IN_ORDER").result.score
        == 0
    )


def test_calls_inside_agent_tools_do_not_count_without_the_option(turn: MakeTurn) -> None:
    request = ScoreRequest(
        Criterion("tool_trajectory_avg_score", 1.0, 1.0, {}),
        (_turn([("ask", {}), ("refund", {})]),),
        (_recorded(("1", "ask"), ("2", "refund")),),
        inner_calls=((_inner("1", "find"),),),
    )
    assert score(request).result.status == "passed"


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        ((), "were not recorded"),
        ((None,), "were not recorded"),
        (({"call": "1", "tool": "ask", "hidden": True},), "the calls inside `ask` are not known"),
    ],
)
def test_unknown_calls_inside_agent_tools_are_not_evaluated(inner: tuple[Any, ...], why: str) -> None:
    calls = (inner,) if inner and isinstance(inner[0], dict) else inner
    found = _including([("ask", {}), ("refund", {})], calls)
    assert (found.result.status, found.result.score) == ("not_evaluated", None)
    assert why in found.result.reason


def test_stored_scores_without_calls_inside_agent_tools_are_not_used_with_them() -> None:
    details = _score([_turn([("a", {})])], [_turn([("a", {})])]).result.details
    options = {"include_agent_tools": True}
    with_them = read_options(TrajectoryOptions, Criterion("tool_trajectory_avg_score", 1.0, 1.0, options))
    assert rescore(details, TrajectoryOptions.model_validate({})) == 1.0
    assert rescore(details, with_them) is None
