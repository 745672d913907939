"""Tests of tool calls side by side."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.ui.transcripts import Call, content, execute, recorded, turn
from workbench.events import MetricResult
from workbench.execution import Turn
from workbench.metrics.base import ScoreRequest
from workbench.metrics.trajectory import score
from workbench.model.criteria import Criterion
from workbench.model.invocation import ToolCall, tool_calls
from workbench.rendering.calls import CallPiece, call_lines, call_section, made_calls, match_type_lines
from workbench.rendering.lines import Line
from workbench.rendering.rows import View

Texts = Callable[[Iterable[Line]], list[str]]
FIND, REFUND = ("find_order", {"id": "A-7"}), ("refund", {"amount": 12.5})


def scored(
    expected: list[Call], actual: list[Call], **options: Any
) -> tuple[list[ToolCall], list[ToolCall], MetricResult]:
    criterion = Criterion("tool_trajectory_avg_score", 1.0, 1.0, options)
    record = execute([turn("hi", expected)], [recorded("hi", actual)], criteria=[criterion])
    result = record.turns[0].metrics["tool_trajectory_avg_score"]
    return [ToolCall(*call) for call in expected], [ToolCall(*call) for call in actual], result


def section(expected: list[Call], actual: list[Call], width: int, **options: Any) -> Iterable[Line]:
    return lines_of(call_section(*scored(expected, actual, **options), View(width)))


def lines_of(pieces: Iterable[CallPiece]) -> list[Line]:
    return [line for piece in pieces for line in piece.lines]


def test_calls_are_in_two_columns_if_there_is_room(texts: Texts) -> None:
    lines = texts(section([FIND, REFUND], [FIND, ("refund", {"amount": "12.50"})], 100))
    assert lines == [
        " calls         expected: 2                               │ actual: 2",
        ' 1 = same      find_order(id="A-7")                      │ find_order(id="A-7")',
        ' 2 ≠ differs   refund(amount=12.5)                       │ refund(amount="12.50")',
        '               args.amount: number 12.5 · text "12.50"',
    ]


def test_calls_are_stacked_in_a_narrow_view(texts: Texts) -> None:
    lines = texts(section([FIND, REFUND], [FIND, ("refund", {"amount": "12.50"})], 46))
    assert lines[:6] == [
        " calls         2 expected, 2 made",
        ' 1 = same      find_order(id="A-7")',
        " 2 ≠ expected  refund(amount=12.5)",
        '     actual    refund(amount="12.50")',
        "               args.amount: number 12.5 · text",
        '               "12.50"',
    ]


def test_short_calls_need_less_room_for_two_columns(texts: Texts) -> None:
    lines = texts(section([FIND], [FIND], 70))
    assert lines[1] == ' 1 = same      find_order(id="A-7")       │ find_order(id="A-7")'


def test_right_to_left_text_is_never_in_columns(texts: Texts) -> None:
    call = ("find", {"id": "أ"})
    assert not any("│" in line for line in texts(section([call], [call], 140)))


@pytest.mark.parametrize(
    ("expected", "actual", "row"),
    [
        ([FIND], [], ' 1 − missing   find_order(id="A-7")'),
        ([], [FIND], ' 1 + extra     find_order(id="A-7")'),
        ([FIND, REFUND], [REFUND, FIND], "↕ moved"),
    ],
)
def test_every_row_names_its_mark(expected: list[Call], actual: list[Call], row: str, texts: Texts) -> None:
    assert any(row in line for line in texts(section(expected, actual, 46)))


def test_moved_call_names_both_positions(texts: Texts) -> None:
    lines = texts(section([FIND, REFUND], [REFUND, FIND], 80))
    assert any("made as call" in line for line in lines)


def test_missing_args_differ_from_empty_args(texts: Texts) -> None:
    lines = texts(section([("log", None)], [("log", {})], 80))
    assert " 1 ≠ differs   log (no arguments given)" in lines[1]
    assert lines[1].endswith("│ log()")


def test_different_arguments_are_marked_on_both_sides() -> None:
    lines = section([REFUND], [("refund", {"amount": "12.50"})], 120)
    marks = [(segment.text, segment.style) for line in lines for segment in line if segment.style.startswith("mark-")]
    assert marks == [("amount=12.5", "mark-missing"), ('amount="12.50"', "mark-extra")]


def test_invisible_characters_are_named(texts: Texts) -> None:
    lines = texts(section([("say", {"to": "Ann Lee"})], [("say", {"to": "Ann\u00a0Lee"})], 120))
    assert any("⟨NBSP⟩" in line for line in lines)


def test_match_type_shows_the_scores_of_the_others(texts: Texts) -> None:
    lines = texts(match_type_lines(scored([FIND], [FIND, REFUND], match_type="EXACT")[2], View(120)))
    assert lines[-1] == " match type    EXACT; others would score IN_ORDER 1.00 · ANY_ORDER 1.00 · names only 0.00"


def test_match_type_says_that_rules_compare_arguments(texts: Texts) -> None:
    result = scored([REFUND], [REFUND], args_match={"refund": {"amount": "any"}})[2]
    (line, *_) = texts(match_type_lines(result, View(120)))
    assert line.startswith(" match type    EXACT, arguments by rules; others")


def test_equal_calls_take_one_line_in_a_brief_section(texts: Texts) -> None:
    calls: list[Call] = [FIND, REFUND, ("track", {"text": "x" * 60})]
    lines = texts(lines_of(call_section(*scored(calls[:2], [*calls[:2], calls[2]]), View(46), brief=True)))
    assert lines[1] == " 1 = 2 calls   ▸ find_order, refund"
    lines = texts(lines_of(call_section(*scored([calls[2]], [calls[2], FIND]), View(46), brief=True)))
    assert lines[1].startswith(' 1 = same      track(text="xxx')
    assert lines[1].endswith("…")
    assert lines[2] == ' 2 + extra     find_order(id="A-7")'


def test_calls_are_aligned_without_the_criterion_too(texts: Texts) -> None:
    lines = texts(lines_of(call_section([ToolCall("a", {})], [ToolCall("b", {}), ToolCall("a", {})], None, View(46))))
    assert lines == [" calls         1 expected, 2 made", " 1 + extra     b()", " 2 = same      a()"]


@pytest.mark.parametrize(
    "rows", ["text", [1], [{"mark": "other"}], [{"mark": "same"}], [{"mark": "same", "actual": 1}]]
)
def test_malformed_rows_are_ignored(rows: object, texts: Texts) -> None:
    result = MetricResult("tool_trajectory_avg_score", "passed", 1.0, 1.0, "", {"rows": rows})
    lines = texts(lines_of(call_section([ToolCall("a", {})], [ToolCall("a", {})], result, View(46))))
    assert " 1 = same      a()" in lines


def test_calls_of_only_one_side_are_numbered(texts: Texts) -> None:
    section = call_section(None, [ToolCall("a", {}), ToolCall("b", {"x": 1})], None, View(46))
    assert texts(lines_of(section)) == [
        " calls          1 a()",
        "                2 b(x=1)",
    ]


def test_simple_arguments_continue_on_the_next_line(texts: Texts) -> None:
    call = {"name": "refund", "args": {"order_id": "A-7", "amount": 12.5, "currency": "EUR"}}
    assert texts(call_lines(call, 31, View(46))) == ['refund(order_id="A-7",', '  amount=12.5, currency="EUR")']


def test_large_arguments_are_shown_near_differences(texts: Texts) -> None:
    items = [{"sku": f"S-{index}", "quantity": index} for index in range(30)]
    other = [{**item, "quantity": "7"} if item["quantity"] == 7 else item for item in items]
    short = texts(section([("ship", {"items": items})], [("ship", {"items": other})], 120))
    assert any('"sku": "S-7"' in line for line in short)
    assert not any('"sku": "S-20"' in line for line in short)
    assert any("more lines" in line for line in short)
    whole = texts(
        lines_of(
            call_section(*scored([("ship", {"items": items})], [("ship", {"items": other})]), View(120, full=True))
        )
    )
    assert sum('"sku"' in line for line in whole) == 30


def test_many_differences_are_counted(texts: Texts) -> None:
    wanted, got = ({"x": {str(key): value for key in range(80)}} for value in (1, 2))
    lines = texts(section([("f", wanted)], [("f", got)], 120))
    assert any("… 74 more values differ" in line for line in lines)


def test_call_inside_an_agent_tool_is_named_and_moves_no_link(texts: Texts) -> None:
    inner = {"call": None, "tool": "ask", "agent": "clerk", "name": "find_order", "args": {"id": "A-8"}}
    made = recorded("hi", [("ask", {}), REFUND])
    criterion = Criterion("tool_trajectory_avg_score", 1.0, 1.0, {"include_agent_tools": True})
    expected = turn("hi", [("ask", {}), FIND, ("refund", {"amount": 1})])
    result = score(ScoreRequest(criterion, (expected,), (made,), inner_calls=((inner,),)))
    shown = Turn(content("hi", "user"), actual=made, inner_calls=(inner,))
    actual = made_calls(shown, result.turns[0])
    assert actual is not None
    assert [call.name for call in actual] == ["ask", "find_order", "refund"]
    pieces = list(call_section(tool_calls(expected), actual, result.turns[0], View(60)))
    assert "made inside ask" in " ".join(texts(lines_of(pieces)))
    assert [piece.made for piece in pieces] == [None, 0, None, 1]
