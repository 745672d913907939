"""Tests of the pane "Trace": rows, bars, open rows, highlighted messages and links to the evidence."""

import json
from typing import Any

import pytest

from tests.ui.transcripts import execute, turn
from workbench.events.events import SpansRecorded
from workbench.files.prices import Prices
from workbench.results import evidence, trace, trace_reading
from workbench.results.document import Document, Subject
from workbench.results.lines import View
from workbench.results.trace import build, trace_lines
from workbench.results.trace_reading import (
    cached_trace,
    conversation_lines,
    duration,
    messages,
    own_events,
    read_trace,
    row_line,
)
from workbench.results.trace_sections import BRIEF, data_lines
from workbench.store.execution import CaseRecord, Turn
from workbench.store.spans import read_turn

PIECES = {
    "system": "Be kind.",
    "asked": {"role": "user", "parts": [{"text": "荷物はどこですか"}]},
    "tools": [{"function_declarations": [{"name": "find_order"}, {"name": "refund"}]}],
    "args": {"id": "A-7"},
    "gave": {"item": "kettle"},
    "said": {"content": {"parts": [{"text": "A kettle."}]}},
}
SPANS: list[dict[str, Any]] = [
    {"id": 1, "kind": "turn", "name": "", "start": 0.0, "end": 1.0},
    {"id": 2, "kind": "agent", "name": "desk", "parent": 1, "start": 0.0, "end": 1.0},
    {
        "id": 3,
        "kind": "model",
        "name": "m",
        "agent": "desk",
        "parent": 2,
        "start": 0.0,
        "end": 0.25,
        "tokens": [1200, 34],
        "events": [0],
        "response": "said",
        "request": {"system": "system", "more": ["asked"], "tools": "tools"},
    },
    {
        "id": 4,
        "kind": "tool",
        "name": "find_order",
        "parent": 2,
        "start": 0.25,
        "end": 0.75,
        "call": "c1",
        "args": "args",
        "response": "gave",
        "events": [1],
        "agent": "desk",
    },
    {"id": 5, "kind": "agent", "name": "inner", "parent": 4, "start": 0.3, "end": 0.7, "error": "ValueError: no"},
    {"id": 6, "kind": "model", "name": "m", "parent": 2, "start": 0.75, "end": 1.0, "events": [2]},
]


def record(*, watched: bool = True) -> CaseRecord:
    parts: list[Any] = [
        {"function_call": {"id": "c1", "name": "find_order", "args": {"id": "A-7"}}},
        {"function_response": {"id": "c1", "name": "find_order", "response": {"item": "kettle"}}},
        {"text": "A kettle."},
    ]
    events = [{"author": "desk", "content": {"role": "model", "parts": [part]}} for part in parts]
    actual = {**turn("荷物はどこですか", (), "A kettle."), "intermediate_data": {"invocation_events": events}}
    made = execute([turn("荷物はどこですか", [("find_order", {"id": "A-7"})], "A kettle.")], [actual])
    if watched:
        pieces = {name: json.dumps(value) for name, value in PIECES.items()}
        made.turns[0].spans = SpansRecorded(made.ref, 0, json.dumps(SPANS), pieces)
    return made


def shown(*opened: str, width: int = 76, prices: Prices | None = None) -> Document:
    return build(Subject(record(), prices=prices), View(width, opened=frozenset(opened)))


def lines(document: Document) -> list[str]:
    return [line.plain.rstrip() for line in document.lines]


def test_messages_of_a_row_are_highlighted() -> None:
    read = read_trace(record().turns, None, None)
    found = {}
    for node in read.turns[0].trace.root.walk():
        lit = own_events(node)
        told = [line.plain for line in conversation_lines(read.turns[0].messages, lit, 60)]
        found[node.number] = [place for place, line in enumerate(told) if line.startswith("▶")]
    # The user's message, the call, its result, the answer.
    assert found == {1: [0], 2: [1, 2, 3], 3: [1], 4: [2], 5: [2], 6: [3]}


def test_highlighted_messages_of_a_long_turn_are_among_the_first_lines() -> None:
    event = {"author": "desk", "content": {"parts": [{"text": "yes"}]}}
    long = Turn({"parts": [{"text": "go"}]}, acted=[event] * 30)
    for number in range(30):
        told = [line.plain for line in conversation_lines(messages(long), frozenset({number}), 60)]
        assert any(line.startswith("▶") for line in told[:4])


def test_only_visible_rows_of_a_long_trace_are_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(*args: Any, **told: Any) -> Any:
        made.append(args[0].number)
        return row_line(*args, **told)

    monkeypatch.setattr(trace, "row_line", counted)
    case = record()
    more = [{**SPANS[2], "id": number, "request": {"more": ["asked"] * number}} for number in range(7, 2000)]
    case.turns[0].spans = SpansRecorded(
        case.ref, 0, json.dumps([*SPANS, *more]), {"asked": json.dumps(PIECES["asked"])}
    )
    first = build(Subject(case), View(76))
    again = build(Subject(case), View(76, opened=frozenset({"span/0/1999", "span/0/1999/request"})))
    assert made == []
    assert len(again.lines) == len(first.lines) + 4 + 1999
    below = 3  # The full text of the steps, and what the agent printed.
    assert again.lines[-1002 - below].plain.split() == ["▸", "1000", "user", "荷物はどこですか"]
    assert made == []
    assert again.lines[-2004 - below].plain.startswith(" •└ ▾ m")
    assert made == [1999]


def test_finished_turns_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = record()
    read: list[int] = []

    def counted(number: int, *told: Any) -> Any:
        read.append(number)
        return read_turn(number, *told)

    monkeypatch.setattr(trace_reading, "read_turn", counted)
    turns = [case.turns[0], Turn({"parts": [{"text": "And now?"}]})]
    for _ in range(2):
        cached_trace(turns, None, None)
    assert read == [0, 1, 1], "the one that goes on may have more to tell"
    turns[1].spans = SpansRecorded(case.ref, 1, json.dumps(SPANS), {})
    for _ in range(2):
        cached_trace(turns, None, None)
    turns[1].actual = {"final_response": {"parts": [{"text": "A cup."}]}}
    assert read == [0, 1, 1, 1]
    assert cached_trace(turns, None, None).turns[1].messages[-1].text == "And now?", "no event is known that says more"
    assert read == [0, 1, 1, 1, 1]


def test_huge_value_shows_its_beginning_and_is_copied_in_full() -> None:
    value = [{"name": f"row {number}"} for number in range(100_000)]
    told = [line.plain for line in data_lines(value, 4, View(76))]
    assert len(told) == BRIEF + 1
    assert told[-1] == "    … over 880 more lines: Y copies all"
    assert told[:BRIEF] == [line.plain for line in data_lines(value[:200], 4, View(76))][:BRIEF]
    assert list(data_lines(value[:200], 4, View(76)))[-1].plain == "    … 482 more lines: Y copies all"
    assert len(list(data_lines(value[:2000], 4, View(76, full=True)))) == 6002


def test_very_deep_spans_are_shown() -> None:
    case = record()
    deep = [{**SPANS[4], "id": number, "parent": number - 1} for number in range(2, 5000)]
    case.turns[0].spans = SpansRecorded(case.ref, 0, json.dumps([SPANS[0], *deep]), {})
    document = build(Subject(case), View(76))
    assert all(line.cell_len <= 76 for line in document.lines[-50:])
    assert document.items[-2].key == "span/0/4999"


def test_row_and_call_in_the_diff_link_to_each_other() -> None:
    case = record()
    there = evidence.build(Subject(case), View(76))
    here = build(Subject(case), View(76))
    call = next(item for item in there.items if item.key.startswith("evidence/0/call"))
    assert call.targets[0].pane == "Trace"
    row = here.places[call.targets[0].places[0]]
    assert here.lines[row.start].plain.split()[2] == "find_order"
    (tool,) = [item for item in here.items if item.key == "span/0/4"]
    assert tool.targets[0].pane == "Evidence"
    place = next(place for place in tool.targets[0].places if place in there.places)
    assert "find_order" in there.lines[there.places[place].start].plain


def test_case_without_spans_has_a_tree_without_times_and_a_diff_without_cursor() -> None:
    case = record(watched=False)
    told = [line.plain for line in build(Subject(case), View(76)).lines]
    assert any("recorded without times" in line for line in told)
    assert any("find_order" in line for line in told)
    assert not any("━" in line for line in told)
    assert not evidence.build(Subject(case), View(76)).items
    assert list(trace_lines(case, 80)) == []


def test_durations_have_readable_units() -> None:
    assert [duration(seconds) for seconds in (0.0, 0.0004, 0.0123, 0.9996, 9.994, 12.34, 123.0)] == [
        *("0.0 ms", "0.4 ms", "12 ms", "1.00 s", "9.99 s", "12.3 s", "2m 03s"),
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.234, "1.23 s"), (60.0, "1m 00s"), (5_999.0, "99m 59s"), (6_000.0, "1h 40m"), (3.6e6, "1000h")],
)
def test_duration_fits_its_column(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
    assert len(shown) <= 7
