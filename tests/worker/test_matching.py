"""Recorded calls are found by value and in order, and a miss names the nearest recording."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.worker.gate import Gate, Live, Miss, ModelCall, Replay
from workbench.worker.matching import ToolCall, canonical, plain_branch

_SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def frame(**fields: Any) -> dict[str, Any]:
    return {"kind": "tool", "turn": 0, "agent": "desk", "branch": "", "tool": "refund", "answer": "done", **fields}


def gate(*calls: dict[str, Any], **replay: Any) -> Gate:
    made = Gate({"record": True, "replay": {"mode": "tools", "on_miss": "error", "ignore": {}, "tools": {}, **replay}})
    for call in calls:
        made.load(call)
    return made


def call(args: Any, tool: str = "refund", agent: str = "desk", branch: str = "", ahead: int = 0) -> ToolCall:
    return ToolCall(agent, branch, tool, args, ahead)


def answer(decision: Any) -> Any:
    assert isinstance(decision, Replay), decision
    return decision.recorded.value


def why(decision: Any) -> str:
    assert isinstance(decision, Miss), decision
    assert decision.fault["kind"] == "frozen_miss"
    return decision.fault["message"]


@given(_VALUES)
def test_canonical_form_survives_json_and_order_of_keys(value: Any) -> None:
    again = json.loads(json.dumps(value))
    assert canonical(again) == canonical(value)
    if isinstance(value, dict):
        assert canonical(dict(reversed(value.items()))) == canonical(value)


@pytest.mark.parametrize("other", [1.0, 1])
def test_numbers_match_by_value(other: float) -> None:
    assert answer(gate(frame(args={"n": 1})).tool(call({"n": other}))) == "done"


@pytest.mark.parametrize("other", [True, "1", None, [1], 1.5])
def test_values_of_different_types_do_not_match(other: Any) -> None:
    assert f"n was 1, now {json.dumps(other)}" in why(gate(frame(args={"n": 1})).tool(call({"n": other})))


def test_equal_calls_are_answered_in_recorded_order() -> None:
    made = gate(*(frame(args={"n": 1}, answer=number) for number in range(3)))
    assert [answer(made.tool(call({"n": 1}))) for _ in range(3)] == [0, 1, 2]
    assert "recorded only 3 times" in why(made.tool(call({"n": 1})))
    assert made.counts() == {"tools": 3, "models": 0, "live": 0, "misses": 1}


def test_parallel_equal_calls_get_the_answers_of_their_positions() -> None:
    made = gate(*(frame(args={"n": 1}, answer=number) for number in range(3)))
    assert answer(made.tool(call({"n": 1}, ahead=2))) == 2
    assert answer(made.tool(call({"n": 1}, ahead=1))) == 1
    assert answer(made.tool(call({"n": 1}))) == 0


def test_calls_of_branches_are_separate_but_an_unknown_branch_matches_each() -> None:
    made = gate(frame(args={}, branch="all.left", answer=1), frame(args={}, branch="all.right@3f0c-a1", answer=2))
    assert answer(made.tool(call({}, branch="all.right"))) == 2
    assert 'recorded in branch "all.left"' in why(made.tool(call({}, branch="elsewhere")))
    assert answer(gate(frame(args={}, branch=None)).tool(call({}, branch="elsewhere"))) == "done"


def test_ignored_arguments_do_not_count() -> None:
    made = gate(frame(args={"n": 1, "at": "10:00"}), ignore={"refund": ["at"]})
    assert answer(made.tool(call({"n": 1, "at": "11:00"}))) == "done"
    assert "n was 1, now 2" in why(made.tool(call({"n": 2})))


def test_miss_names_the_nearest_recording_and_the_first_difference() -> None:
    made = gate(
        frame(turn=0, args={"order": "A-1", "items": [{"sku": "x"}]}),
        frame(turn=1, args={"order": "A-2", "items": [{"sku": "y"}, {"sku": "z"}]}),
    )
    message = why(made.tool(call({"order": "A-2", "items": [{"sku": "y"}]})))
    assert message.startswith('desk called refund(order="A-2", items=[{"sku": "y"}]), which has no recording')
    assert 'in turn 2; items[1] was {"sku": "z"}, now not given' in message


def test_miss_says_what_is_recorded_instead() -> None:
    made = gate(frame(args={}), frame(args={}, tool="lookup"), frame(args={}, agent="clerk", tool="notify"))
    assert "recorded tools of desk: lookup, refund" in why(made.tool(call({}, tool="ship")))
    assert "recorded only for the agent clerk" in why(made.tool(call({}, tool="notify")))
    assert "nobody has no recorded call" in why(made.tool(call({}, tool="ship", agent="nobody")))


def test_call_without_outcome_is_a_miss() -> None:
    lost = frame(args={}, lost="larger than 4 MiB")
    del lost["answer"]
    assert "its outcome was not recorded: larger than 4 MiB" in why(gate(lost).tool(call({})))


def test_calls_made_live_on_a_miss_are_counted() -> None:
    made = gate(on_miss="live")
    assert made.tool(call({})) == Live(missed=True)
    assert made.counts() == {"tools": 0, "models": 0, "live": 1, "misses": 0}


def test_gate_without_replay_runs_every_call_live() -> None:
    assert Gate(None).tool(call({})) == Live()
    assert Gate({"record": True, "replay": None}).counts() is None


def test_only_the_first_miss_ends_the_case() -> None:
    faults: list[Any] = []
    made = Gate({"replay": {"mode": "tools"}}, faults.append)
    for _ in range(2):
        decision = made.tool(call({}))
        assert isinstance(decision, Miss)
        made.end(decision)
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("branch", "plain"),
    [
        (None, ""),
        ("a.b", "a.b"),
        ("a@1.b@22", "a@1.b@22"),
        ("a@adk-1f.b", "a.b"),
        ("a@12345678.b@call_9", "a.b"),
        ("a@1b.c", "a.c"),
    ],
)
def test_generated_run_ids_are_removed_from_a_branch(branch: str | None, plain: str) -> None:
    assert plain_branch(branch) == plain


def test_miss_is_reported_with_the_nearest_recording() -> None:
    ended: list[Any] = []
    made = gate(frame(args={"order": "A", "n": 1}), frame(args={"order": "A", "n": 2}, turn=1))
    made._on_miss = ended.append
    decision = made.tool(call({"order": "A", "n": 3}))
    assert isinstance(decision, Miss)
    made.end(decision)
    assert [fault["kind"] for fault in ended] == ["frozen_miss"]
    (message,) = made.take_messages()
    (miss,) = json.loads(message["calls"])
    assert (miss["kind"], miss["tool"], miss["nearest"]["turn"]) == ("miss", "refund", 0)
    pieces = {name: json.loads(text) for name, text in message["pieces"].items()}
    assert (pieces[miss["args"]], pieces[miss["nearest"]["args"]]) == ({"order": "A", "n": 3}, {"order": "A", "n": 1})


def test_case_with_a_missed_call_gets_no_more_answers() -> None:
    gate = Gate({"replay": {"mode": "tools"}})
    gate.load({"kind": "tool", "agent": "desk", "tool": "find", "args": {"n": 1}, "answer": 1})
    miss = gate.tool(ToolCall("desk", "", "find", {"n": 2}))
    assert isinstance(miss, Miss)
    gate.end(miss)
    assert gate.tool(ToolCall("desk", "", "find", {"n": 1})) == miss
    assert gate.model(ModelCall("desk", "", "", {})) == miss
    assert gate.no_toolset("desk", "Remote") == miss


@pytest.mark.parametrize(
    ("recorded", "words"),
    [(0, "none of its requests is"), (1, "only 1 of its requests is"), (2, "only 2 of its requests are")],
)
def test_missed_request_says_how_many_are_recorded(recorded: int, words: str) -> None:
    model = {"kind": "model", "agent": "desk", "asked": "d", "responses": []}
    made = gate({**model, "agent": "other"}, *[model] * recorded, mode="all")
    for _ in range(recorded):
        assert isinstance(made.model(ModelCall("desk", "", "d", {})), Replay)
    assert f"{words} recorded" in why(made.model(ModelCall("desk", "", "d", {})))
