"""The worker's decision about each tool call: whether it gets a fault, and which one."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.worker.gate import Gate, Inject, Live, Miss, Replay
from workbench.worker.matching import InjectedFault, Injection, ToolCall, damaged, is_within


def due(rule: dict[str, Any], calls: int, seed: int = 1) -> list[int]:
    injection = Injection([{"tool": "search", "answer": 1, **rule}], seed)
    return [nth for nth in range(1, calls + 1) if injection.decide("agent", "search", {}) is not None]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"only": 2}, [2]),
        ({"every": 3}, [3, 6]),
        ({"since": 5}, [5, 6]),
        ({"probability": 0}, []),
        ({"probability": 1}, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_rule_selects_calls_by_number_and_chance(rule: dict[str, Any], expected: list[int]) -> None:
    assert due(rule, 6) == expected


def test_chance_depends_on_the_seed_only() -> None:
    first = due({"probability": 0.5}, 200)
    assert first == due({"probability": 0.5}, 200)
    assert first != due({"probability": 0.5}, 200, seed=2)
    assert 70 < len(first) < 130


def test_rule_applies_only_to_its_agent_tool_and_arguments() -> None:
    injection = Injection([{"tool": "search", "agent": "desk", "args": {"filter": {"id": 7}}, "answer": 0}], 1)
    args = {"filter": {"id": 7.0, "open": True}, "page": 2}
    assert injection.decide("desk", "search", args) == InjectedFault("answer", 0, 1, answer=0)
    assert injection.decide("other", "search", args) is None
    assert injection.decide("desk", "find", args) is None
    assert injection.decide("desk", "search", {"filter": {"id": True}}) is None


def test_rule_counts_calls_that_an_earlier_rule_answers() -> None:
    rules = [{"tool": "*", "only": 1, "answer": "first"}, {"tool": "search", "only": 2, "dropped": "no_answer"}]
    injection = Injection(rules, 1)
    found = [injection.decide("a", "search", {}) for _ in range(3)]
    assert found == [InjectedFault("answer", 0, 1, answer="first"), InjectedFault("no_answer", 1, 2), None]


def test_calls_of_other_tools_do_not_change_what_chance_selects() -> None:
    rules = [{"tool": "search", "probability": 0.5, "answer": 1}, {"tool": "*", "probability": 0.5, "answer": 2}]
    plain, mixed = Injection(rules[:1], 3), Injection(rules, 3)
    alone, together = [], []
    for _ in range(50):
        mixed.decide("a", "other", {})
        fault = mixed.decide("a", "search", {})
        together.append(fault is not None and fault.rule == 0)
        alone.append(plain.decide("a", "search", {}) is not None)
    assert alone == together


def test_each_rule_gives_its_kind_of_fault() -> None:
    error = {"types": ["builtins.KeyError"], "message": "no"}
    rules = [
        {"tool": "t", "only": 1, "latency_seconds": 2},
        {"tool": "t", "only": 2, "error": error, "latency_seconds": 0.5},
        {"tool": "t", "only": 3, "dropped": "never"},
        {"tool": "t", "only": 4, "malformed": "cut_json"},
    ]
    injection = Injection(rules, 1)
    assert [injection.decide("a", "t", {}) for _ in range(5)] == [
        InjectedFault("", 0, 1, 2.0),
        InjectedFault("error", 1, 2, 0.5, error=error),
        InjectedFault("never", 2, 3),
        InjectedFault("malformed", 3, 4, how="cut_json"),
        None,
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(json_values)
def test_cut_answer_is_only_a_part_of_the_text(answer: Any) -> None:
    cut = damaged(answer, "cut_json")
    assert isinstance(cut, str)
    assert len(cut) < len(json.dumps(answer))


@settings(max_examples=40)
@given(json_values)
def test_every_value_with_wrong_types_differs_in_type(answer: Any) -> None:
    def differs(before: Any, after: Any) -> bool:
        if isinstance(before, dict):
            return before.keys() == after.keys() and all(differs(before[key], after[key]) for key in before)
        if isinstance(before, list):
            return len(before) == len(after) and all(map(differs, before, after))
        return type(before) is not type(after)

    assert differs(answer, damaged(answer, "wrong_types"))


@settings(max_examples=40)
@given(json_values)
def test_every_value_is_contained_in_itself(value: Any) -> None:
    assert is_within(value, json.loads(json.dumps(value)))


def gate(*rules: dict[str, Any], recorded: int | None = None) -> Gate:
    """Return a gate with rules, and with so many recorded calls of `search`, or without replay."""
    replay = None if recorded is None else {"mode": "tools", "on_miss": "error"}
    made = Gate({"record": True, "replay": replay, "inject": list(rules), "seed": 1})
    for number in range(recorded or 0):
        call = {"kind": "tool", "turn": 0, "agent": "desk", "branch": "", "tool": "search", "args": {}}
        made.load({**call, "answer": {"number": number}})
    return made


SEARCH = ToolCall("desk", "", "search", {})


def test_injected_fault_consumes_no_recording() -> None:
    opened = gate({"tool": "search", "only": 1, "dropped": "no_answer"}, recorded=1)
    assert opened.tool(SEARCH) == Inject(InjectedFault("no_answer", 0, 1))
    again = opened.tool(SEARCH)
    assert isinstance(again, Replay)
    assert again.recorded.value == {"number": 0}


def test_malformed_answer_is_that_of_the_next_recording_which_stays_unused() -> None:
    opened = gate({"tool": "search", "only": 1, "malformed": "cut_json"}, recorded=1)
    first, second = opened.tool(SEARCH), opened.tool(SEARCH)
    assert isinstance(first, Inject)
    assert isinstance(first.then, Replay)
    assert isinstance(second, Replay)
    assert first.then.recorded is second.recorded


def test_delayed_call_uses_its_recording() -> None:
    opened = gate({"tool": "search", "latency_seconds": 1}, recorded=1)
    delayed, missing = opened.tool(SEARCH), opened.tool(SEARCH)
    assert isinstance(delayed, Inject)
    assert isinstance(delayed.then, Replay)
    assert isinstance(missing, Inject)
    assert isinstance(missing.then, Miss)
    assert missing.then.fault["kind"] == "frozen_miss"


def test_call_without_recording_after_a_fault_is_off_recording() -> None:
    opened = gate({"tool": "search", "only": 1, "answer": "busy"}, recorded=1)
    opened.tool(SEARCH)
    decision = opened.tool(SEARCH._replace(tool="other"))
    assert isinstance(decision, Miss)
    assert decision.fault["kind"] == "off_recording"


def test_live_calls_get_faults_too() -> None:
    opened = gate({"tool": "search", "only": 2, "malformed": "wrong_types"})
    assert opened.tool(SEARCH) == Live()
    assert opened.tool(SEARCH) == Inject(InjectedFault("malformed", 0, 2, how="wrong_types"), Live())
