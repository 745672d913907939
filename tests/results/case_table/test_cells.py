"""Cells of the table: scores are cut, glyphs say what is missing, and sorting keeps the order of equal cells."""

import pytest

from workbench.events.events import CaseRef, MetricResult, MetricStatus, PlannedCase, Usage
from workbench.results.case_table import (
    Rank,
    cost_cell,
    criterion_cell,
    in_order,
    outcome_cell,
    result_cell,
    seconds_cell,
    tokens_cell,
)
from workbench.store.execution import CaseRecord, CaseState


def record(state: CaseState = "passed", seconds: float = 1.0, **usage: int) -> CaseRecord:
    planned = PlannedCase(CaseRef("desk", "a.json", "a", "one", 1), None, "")
    return CaseRecord(planned, state, duration_seconds=seconds, usage=Usage(**usage))


def result(status: MetricStatus, score: float | None, threshold: float | None = 0.8) -> MetricResult:
    return MetricResult("tone", status, score, threshold, "")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (result("passed", 1.0), "1.00"),
        (result("failed", 0.5), "✗0.50"),
        (result("failed", 0.79999), "✗0.79"),
        (result("failed", 0.9999, 1.0), "✗0.99"),
        (result("passed", 12.345, 3.0), "12.3"),
        (result("failed", 99.99, 100.0), "✗99.9"),
        (result("passed", 1234.5, 3.0), "1234"),
        (result("failed", None), "✗"),
        (result("error", 0.9), "!"),
        (result("not_evaluated", None), "?"),
        (result("not_applicable", None), "–"),
        (result("informational", 1234.0, None), "1,234"),
    ],
)
def test_score_is_cut_so_that_a_failed_score_stays_below_its_threshold(given: MetricResult, text: str) -> None:
    assert result_cell(given).text == text


@pytest.mark.parametrize(
    ("state", "configured", "text"),
    [
        ("error", True, "!"),
        ("error", False, "–"),
        ("not_evaluated", True, "?"),
        ("passed", True, "–"),
        ("running", True, ""),
        ("queued", True, ""),
        ("cancelled", True, ""),
        ("queued", False, "–"),
    ],
)
def test_criterion_without_a_result_shows_the_reason(state: CaseState, configured: bool, text: str) -> None:
    assert criterion_cell(record(state), "tone", configured=configured).text == text


def test_case_that_never_ran_has_empty_cells() -> None:
    assert criterion_cell(None, "tone", configured=True).text == ""
    assert [cell(None).text for cell in (seconds_cell, tokens_cell)] == ["", ""]
    assert cost_cell(None, None, known=True).text == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (9.99, "9.9 s"), (59.9, "59.9 s"), (124.0, "2:04")])
def test_time_is_cut_to_tenths(seconds: float, text: str) -> None:
    assert seconds_cell(record(seconds=seconds)).text == text


def test_token_count_includes_agent_and_judges() -> None:
    assert tokens_cell(record(input_tokens=1000, output_tokens=200, judge_input_tokens=4)).text == "1,204"
    assert tokens_cell(record(input_tokens=318_999)).text == "318k"
    assert tokens_cell(record()).text == "–", "none were reported"


@pytest.mark.parametrize(
    ("cost", "known", "text"), [(0.0042, True, "0.004"), (0.0, True, "0"), (2e-5, True, "<.001"), (None, True, "?")]
)
def test_small_cost_is_not_shown_as_zero(cost: float | None, known: bool, text: str) -> None:
    assert cost_cell(record(), cost, known=known).text == text


def test_cost_is_empty_while_it_is_computed() -> None:
    assert cost_cell(record(), None, known=False).rank is Rank.EMPTY


def test_outcomes_of_a_run_have_glyphs_and_sort_worst_first() -> None:
    cells = [
        outcome_cell("passed", 0.5, 0.4),
        outcome_cell("failed", 0.9, 1.0),
        outcome_cell("error", None, None),
        outcome_cell("passed", None, None),
        outcome_cell("not_evaluated", None, None),
    ]
    assert [cell.text for cell in in_order(cells, lambda cell: cell, descending=False)] == [
        "!",
        "✗0.90",
        "✓0.50",
        "✓",
        "?",
    ]


def test_errors_stay_first_and_missing_values_last_in_both_directions() -> None:
    cells = {
        "a": result_cell(result("passed", 1.0)),
        "b": result_cell(result("error", None)),
        "c": result_cell(result("not_applicable", None)),
        "d": result_cell(result("failed", 0.2)),
        "e": result_cell(result("not_evaluated", None)),
        "f": result_cell(result("passed", 1.0)),
        "g": criterion_cell(None, "tone", configured=True),
    }
    assert "".join(in_order(cells, cells.__getitem__, descending=False)) == "bdafecg"
    assert "".join(in_order(cells, cells.__getitem__, descending=True)) == "bafdecg", "equal cells keep their order"
