"""Tests of tool calls in the evidence."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.ui.transcripts import Call, execute, recorded, turn
from workbench.criteria.base import ScoreRequest
from workbench.criteria.trajectory import score
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.results.calls import call_lines, match_type_words
from workbench.results.document import Subject
from workbench.results.evidence import build
from workbench.results.lines import Line, View, pieces

Texts = Callable[[Iterable[Line]], list[str]]
FIND, REFUND = ("find_order", {"id": "A-7"}), ("refund", {"amount": 12.5})
CALLS = "tool_trajectory_avg_score"


def section(
    expected: list[Call], actual: list[Call], width: int = 79, *, full: bool = False, **options: Any
) -> list[Line]:
    record = execute([turn("hi", expected)], [recorded("hi", actual)], criteria=[Criterion(CALLS, 1.0, 1.0, options)])
    return list(build(Subject(record), View(width, full)).lines)


def scored(expected: list[Call], actual: list[Call], **options: Any) -> MetricResult:
    record = execute([turn("hi", expected)], [recorded("hi", actual)], criteria=[Criterion(CALLS, 1.0, 1.0, options)])
    return record.turns[0].metrics[CALLS]


def test_missing_args_differ_from_empty_args(texts: Texts) -> None:
    lines = texts(section([("log", None)], [("log", {})]))
    assert any(line.startswith("            − expected  (not given)") for line in lines)
    assert any(line.startswith("            + actual    {}") for line in lines)


def test_different_values_are_marked_on_both_sides() -> None:
    lines = section([REFUND], [("refund", {"amount": "12.50"})], 120)
    marks = [piece for line in lines for piece in pieces(line) if piece[1].startswith("mark-")]
    assert marks == [("12.5", "mark-missing"), ('"12.50"', "mark-extra")]


def test_invisible_characters_are_named(texts: Texts) -> None:
    lines = texts(section([("say", {"to": "Ann Lee"})], [("say", {"to": "Ann\u00a0Lee"})], 120))
    assert any("⟨NBSP⟩" in line for line in lines)


def test_match_type_shows_the_scores_of_the_others() -> None:
    words = match_type_words(scored([FIND], [FIND, REFUND], match_type="EXACT")).plain
    assert words == "EXACT; others would score IN_ORDER 1.00 · ANY_ORDER 1.00 · names only 0.00"
    words = match_type_words(scored([REFUND], [REFUND], args_match={"refund": {"amount": "any"}})).plain
    assert words.startswith("EXACT, arguments by rules; others")


def test_calls_are_aligned_without_the_criterion_too(texts: Texts) -> None:
    record = execute([turn("hi", [("a", {})])], [recorded("hi", [("b", {}), ("a", {})])], criteria=())
    lines = texts(build(Subject(record), View(79)).lines)
    assert lines[4:6] == ["  call 1 +  b()  not expected", "  call 2 =  a()"]


@pytest.mark.parametrize(
    "rows", ["text", [1], [{"mark": "other"}], [{"mark": "same"}], [{"mark": "same", "actual": 1}]]
)
def test_malformed_rows_are_ignored(rows: object, texts: Texts) -> None:
    record = execute([turn("hi", [("a", {})])], [recorded("hi", [("a", {})])], criteria=())
    record.turns[0].metrics = {CALLS: MetricResult(CALLS, "passed", 1.0, 1.0, "", {"rows": rows})}
    assert "  call 1 =  a()" in texts(build(Subject(record), View(79)).lines)


def test_simple_arguments_continue_on_the_next_line(texts: Texts) -> None:
    call = {"name": "refund", "args": {"order_id": "A-7", "amount": 12.5, "currency": "EUR"}}
    assert texts(call_lines(call, 31, View(46))) == ['refund(order_id="A-7",', '  amount=12.5, currency="EUR")']


def test_large_arguments_show_the_values_that_differ_first(texts: Texts) -> None:
    items = [{"sku": f"S-{index}", "quantity": index} for index in range(30)]
    other = [{**item, "quantity": "7"} if item["quantity"] == 7 else item for item in items]
    short = texts(section([("ship", {"items": items})], [("ship", {"items": other})]))
    assert "  call 1 ≠  ship(items=…)" in short
    assert '            + actual    "7"  text' in short
    assert not any('"sku"' in line for line in short)
    whole = texts(section([("ship", {"items": items})], [("ship", {"items": other})], full=True))
    assert sum('"sku"' in line for line in whole) == 30


def test_many_differences_are_counted(texts: Texts) -> None:
    wanted, got = ({"x": {str(key): value for key in range(80)}} for value in (1, 2))
    lines = texts(section([("f", wanted)], [("f", got)], 120))
    assert any("▸ 77 more values differ" in line for line in lines)


def test_call_inside_an_agent_tool_is_named(texts: Texts) -> None:
    inner = {"call": None, "tool": "ask", "agent": "clerk", "name": "find_order", "args": {"id": "A-8"}}
    made = recorded("hi", [("ask", {}), REFUND])
    criterion = Criterion(CALLS, 1.0, 1.0, {"include_agent_tools": True})
    expected = turn("hi", [("ask", {}), FIND, ("refund", {"amount": 1})])
    result = score(ScoreRequest(criterion, (expected,), (made,), inner_calls=((inner,),)))
    record = execute([expected], [made], criteria=())
    record.turns[0].inner_calls = (inner,)
    record.turns[0].metrics = {CALLS: result.turns[0]}
    lines = texts(build(Subject(record), View(79)).lines)
    start = lines.index("  call 2 ≠  find_order(id=…)")
    assert lines[start + 1] == "            made inside ask"
