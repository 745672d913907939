"""Spans as a tree, their cost and their path, for any recorded data."""

import json
from typing import Any

import pytest

from workbench.events.events import CaseRef, SpansRecorded
from workbench.files.prices import Price, Prices
from workbench.results.costs import totals
from workbench.results.trace_reading import draw_path, path_of, visited_names
from workbench.store.spans import TurnTrace, content_digests, read_turn

REF = CaseRef("desk", "desk/r.evalset.json", "r", "one")
SPANS: list[dict[str, Any]] = [
    {"id": 1, "kind": "turn", "name": "", "start": 0.0, "end": 2.0},
    {"id": 2, "kind": "agent", "name": "desk", "parent": 1, "start": 0.0, "end": 2.0},
    {"id": 3, "kind": "model", "name": "m", "parent": 2, "start": 0.0, "end": 0.5, "tokens": [10, 2], "events": [0]},
    {"id": 4, "kind": "tool", "name": "clerk", "parent": 2, "start": 0.5, "end": 1.5, "call": "c1", "events": [1]},
    {"id": 5, "kind": "agent", "name": "clerk", "parent": 4, "start": 0.6, "end": 1.4},
    {"id": 6, "kind": "model", "name": "m", "parent": 5, "start": 0.6, "end": 1.4, "tokens": [20, 3], "error": "quota"},
    {"id": 7, "kind": "model", "name": "free", "parent": 2, "start": 1.5, "end": None, "events": [2]},
]


def trace_of(spans: Any, events: int = 3) -> TurnTrace:
    return read_turn(0, SpansRecorded(REF, 0, spans if isinstance(spans, str) else json.dumps(spans)), [{}] * events)


def test_tree_follows_the_recorded_parents() -> None:
    trace = trace_of(SPANS)
    assert [(node.number, node.depth) for node in trace.root.walk()] == [
        *((1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (6, 4), (7, 2)),
    ]
    assert trace.timed
    assert [node.number for node in list(trace.root.walk())[5].path] == [1, 2, 4, 5, 6]
    assert {node.number: node.events for node in trace.root.walk() if node.events} == {3: (0,), 4: (1,), 7: (2,)}
    assert [node.number for node in trace.root.walk() if node.facts.get("call") == "c1"] == [4]
    assert [node.seconds for node in trace.root.walk()][-1] is None


@pytest.mark.parametrize(("name", "lost"), [("7", 7), (7, 7), ("many", 0), ("9" * 5000, int("9" * 20))])
def test_number_of_lost_spans_may_be_anything(name: Any, lost: int) -> None:
    assert trace_of([*SPANS, {"kind": "lost", "name": name}]).lost == lost


def test_tokens_and_cost_include_descendants() -> None:
    trace = trace_of(SPANS)
    found = totals(trace.root, Prices({"m": Price(1_000_000, 0), "free": Price(0, 0)}))
    assert (found[4].calls, found[4].read, found[4].written, found[4].cost) == (1, 20, 3, 20.0)
    assert (found[1].calls, found[1].read) == (3, 30)
    assert found[1].cost is None, "nobody said how many tokens the last call took"
    assert totals(trace.root, None)[4].cost is None


def test_path_counts_calls_and_marks_the_selected_node() -> None:
    trace = trace_of(SPANS)
    clerk = list(trace.root.walk())[5]
    lines = [(line.branches, line.stop.name, line.marked) for line in draw_path(path_of(trace.root), clerk)]
    assert lines == [
        ("", "user", True),
        ("└─ ", "desk", True),
        ("   ├─ ", "m", False),
        ("   ├─ ", "clerk", True),
        ("   │  └─ ", "clerk", True),
        ("   │     └─ ", "m", True),
        ("   └─ ", "free", False),
    ]
    assert visited_names(trace.root) == ["desk", "clerk"]
    offered = [line.stop for line in draw_path(path_of(trace.root, {"desk": ["clerk", "refund"]}))]
    assert [stop.name for stop in offered if stop.offered] == ["refund"]


@pytest.mark.parametrize("spans", ["", "{", "5", "[[[[", '{"id": 1}'])
def test_unreadable_spans_are_reported_and_replaced_by_events(spans: str) -> None:
    event = {"author": "desk", "content": {"parts": [{"text": "hi"}]}}
    trace = read_turn(0, SpansRecorded(REF, 0, spans), [event])
    assert not trace.timed
    assert "cannot be read" in trace.trouble
    assert [node.kind for node in trace.root.walk()] == ["turn", "agent", "model"]


@pytest.mark.parametrize(
    "changed",
    [{"id": 2}, {"parent": 3}, {"parent": 99}, {"kind": {}}, {"start": float("inf")}, {"events": [7, -1, "x"]}],
)
def test_malformed_span_is_ignored(changed: dict[str, Any]) -> None:
    trace = trace_of([*SPANS[:2], {**SPANS[2], **changed}, *SPANS[3:]])
    assert len(list(trace.root.walk())) in (6, 7)
    assert all(0 <= event < 3 for node in trace.root.walk() for event in node.events)


def test_events_alone_give_a_tree_without_times() -> None:
    call = {"function_call": {"id": "c1", "name": "find", "args": {"id": 1}}}
    answer = {"function_response": {"id": "c1", "name": "find", "response": {"item": "kettle"}}}
    usage = {"prompt_token_count": 10, "candidates_token_count": 2, "thoughts_token_count": 1}
    events = [
        {"author": "desk", "content": {"parts": [call]}, "usage_metadata": usage},
        {"author": "desk", "content": {"parts": [answer]}},
        {"author": "other", "content": {"parts": [{"text": "A kettle."}]}},
    ]
    trace = read_turn(0, None, events)
    found = [(node.kind, node.name, node.events, node.tokens) for node in trace.root.walk()]
    assert found == [
        ("turn", "", (), None),
        ("agent", "desk", (), None),
        ("model", "", (0,), (10, 3)),
        ("tool", "find", (0, 1), None),
        ("agent", "other", (), None),
        ("model", "", (2,), (0, 0)) if "usage_metadata" in events[2] else ("model", "", (2,), None),
    ]


def test_request_reuses_the_beginning_of_an_earlier_request() -> None:
    requests: list[Any] = [
        {"more": ["a", "b"]},
        {"base": 1, "same": 2, "more": ["c"]},
        {"base": 2, "same": 1, "more": ["d"]},
        {"base": 4, "same": 3, "more": ["e"]},
    ]
    spans = [
        {"id": number, "kind": "model", "name": "m", "start": 0.0, "request": request}
        for number, request in enumerate(requests, 1)
    ]
    models = {node.number: node for node in trace_of(spans).root.children}
    assert [content_digests(models[number], models) for number in (1, 2, 3)] == [
        *(["a", "b"], ["a", "b", "c"], ["a", "d"]),
    ]
    assert content_digests(models[4], models) == ["e"], "one that names itself does not go round for ever"
