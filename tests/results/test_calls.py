"""Tests of tool calls in the evidence."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.ui.transcripts import Call, execute, recorded, turn
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


def test_different_values_are_marked_on_both_sides() -> None:
    lines = section([REFUND], [("refund", {"amount": "12.50"})], 120)
    marks = [piece for line in lines for piece in pieces(line) if piece[1].startswith("mark-")]
    assert marks == [("12.5", "mark-missing"), ('"12.50"', "mark-extra")]


@pytest.mark.parametrize(("count", "more"), [(4, "1 more value differs"), (5, "2 more values differ")])
def test_values_beyond_the_first_three_are_counted(count: int, more: str, texts: Texts) -> None:
    sides = [("refund", {f"amount_{number}": number + step for number in range(count)}) for step in (0, 1)]
    assert f"▸ {more}" in [line.strip() for line in texts(section([sides[0]], [sides[1]]))]


def test_match_type_line_shows_the_scores_of_other_match_types() -> None:
    words = match_type_words(scored([FIND], [FIND, REFUND], match_type="EXACT")).plain
    assert words == "EXACT; others would score IN_ORDER 1.00 · ANY_ORDER 1.00 · names only 0.00"
    words = match_type_words(scored([REFUND], [REFUND], args_match={"refund": {"amount": "any"}})).plain
    assert words.startswith("EXACT, arguments by rules; others")


@pytest.mark.parametrize(
    "rows", ["text", [1], [{"mark": "other"}], [{"mark": "same"}], [{"mark": "same", "actual": 1}]]
)
def test_malformed_rows_are_ignored(rows: object, texts: Texts) -> None:
    record = execute([turn("hi", [("a", {})])], [recorded("hi", [("a", {})])], criteria=())
    record.turns[0].metrics = {CALLS: MetricResult(CALLS, "passed", 1.0, 1.0, "", {"rows": rows})}
    assert "  call 1 =  a()" in texts(build(Subject(record), View(79)).lines)


def test_call_that_is_too_long_has_one_argument_per_line(texts: Texts) -> None:
    call = {"name": "refund", "args": {"order_id": "A-7", "amount": 12.5}}
    assert texts(call_lines(call, 31)) == ["refund(", '  order_id="A-7",', "  amount=12.5", ")"]
