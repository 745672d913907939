"""Columns of the table: their titles, and which of them fit."""

import pytest

from workbench.events.events import CaseRef, MetricResult, PlannedCase
from workbench.results.case_table import (
    CASE,
    INPUT,
    TIME,
    TOKENS,
    Column,
    criterion_columns,
    lay_out,
    reachable,
)
from workbench.store.execution import CaseRecord

TRAJECTORY = "tool_trajectory_avg_score"


def record(*results: MetricResult) -> CaseRecord:
    planned = PlannedCase(CaseRef("desk", "a.json", "a", "one", 1), None, "")
    return CaseRecord(planned, "passed", scores={result.name: result for result in results})


def criteria(count: int) -> tuple[Column, ...]:
    names = [Column("criterion", f"crit{number}", f"crit{number}") for number in range(count)]
    return (CASE, INPUT, *names, TOKENS, TIME)


def test_each_criterion_has_a_column_with_its_short_title() -> None:
    rules = {"judge": {"model": "python:desk.judge:decide", "kind": "python", "by": "function"}}
    records = [
        record(MetricResult("final_response_match_v2", "passed", 1.0, 0.8, "", rules)),
        record(MetricResult("tone_formal", "failed", 0.1, 0.8, ""), MetricResult("tone_warm", "passed", 1, 0.8, "")),
        record(MetricResult("token_usage_v1", "informational", 400.0, None, "")),
    ]
    columns = criterion_columns([TRAJECTORY, "final_response_match_v2"], records)
    assert [column.title + column.marks for column in columns] == ["traj", "finalƒ", "tone", "tone2"]
    assert columns[3].name == "tone_warm"


@pytest.mark.parametrize("terminal", [80, 120, 200])
@pytest.mark.parametrize("count", [1, 3, 8, 20])
@pytest.mark.parametrize("names", [5, 30, 90])
def test_case_and_input_stay_while_the_cursor_moves_over_all_columns(terminal: int, count: int, names: int) -> None:
    columns, room, first = criteria(count), terminal - 5, 0
    seen = set()
    for cursor in [*range(len(columns)), *reversed(range(len(columns)))]:
        layout = lay_out(columns, room, terminal, names, first, cursor)
        first = layout.first
        numbers = [shown.number for shown in layout.shown]
        assert numbers[:2] == [0, 1]
        assert cursor in numbers
        assert numbers[2:] == list(range(first, first + len(numbers) - 2)), "without a gap"
        assert sum(shown.width for shown in layout.shown) + len(numbers) - 1 <= room
        assert min(shown.width for shown in layout.shown[:2]) >= 14
        assert (layout.more_left, layout.more_right) == (first > 2, numbers[-1] < len(columns) - 1)
        seen |= set(numbers)
    assert seen == set(range(len(columns)))


def test_wide_terminal_gives_names_their_room_and_inputs_the_rest() -> None:
    layout = lay_out(criteria(2), 195, 200, 30, 0, 0)
    widths = [shown.width for shown in layout.shown]
    assert widths[:2] == [32, 64], "and the scores stay near them"
    assert lay_out(criteria(2), 195, 200, 66, 0, 0).shown[0].width == 68, "a long name is whole"
    assert not layout.more_right


@pytest.mark.parametrize(
    ("count", "kept"),
    [(2, ["case", "criterion", "criterion", "tokens", "time"]), (5, ["case", *["criterion"] * 5, "time"])],
)
def test_narrow_terminal_drops_the_input_and_then_the_cost(count: int, kept: list[str]) -> None:
    columns = criteria(count)
    assert [columns[number].kind for number in reachable(columns, 57, 60)] == kept
    assert [column.kind for column in columns] == [columns[number].kind for number in reachable(columns, 77, 80)]


@pytest.mark.parametrize("room", [1, 8, 20, 40])
def test_tiny_terminal_shows_at_least_the_case(room: int) -> None:
    for cursor in range(9):
        layout = lay_out(criteria(5), room, room + 5, 30, 0, cursor)
        assert layout.shown[0].number == 0
        assert all(shown.width > 0 for shown in layout.shown)
