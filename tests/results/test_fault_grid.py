"""The table of tool faults on the screen: rows, cells and columns, from records that never ran."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE, leaks
from workbench.events.events import CaseRef, FaultHandling, FaultOutcome, FaultWay, PlannedCase, ToolFault
from workbench.results.cells import cell_len
from workbench.results.faults import (
    GridRow,
    about_cell,
    columns_for,
    grid_rows,
    is_problem,
    progress_text,
    status_of,
    text_of,
)
from workbench.run.fault_outcome import STATUS, WAYS
from workbench.store.execution import CaseRecord

FUNCTION = {"judge": {"model": "python:desk.judge:decide", "kind": "python", "by": "function"}}


def record(
    case: str, tool: str, way: FaultWay, outcome: FaultOutcome | None, *, agent: str = "desk", rules: bool = False
) -> CaseRecord:
    number = list(WAYS).index(way) + 1
    planned = PlannedCase(CaseRef(agent, "a.json", "a", case, number), None, "", fault=ToolFault(tool, way))
    found = CaseRecord(planned)
    if outcome is not None:
        found.state = STATUS[outcome]
        found.handling = FaultHandling(outcome, f"because {outcome}", FUNCTION if rules else {})
    return found


ROWS = [
    record("late", "find", "error", "recovered"),
    record("late", "find", "timeout", "crashed"),
    record("lost", "find", "error", "made_up", rules=True),
    record("lost", "find", "timeout", None),
    record("lost", "refund", "error", "not_called"),
]


def cells(row: GridRow) -> list[str]:
    return [text_of(row.cells[way], short=True) for way in ("error", "timeout")]


def test_tools_are_summed_or_shown_case_by_case() -> None:
    heading, find, refund = grid_rows(ROWS, by_case=False)
    assert (heading.name, heading.is_heading) == ("desk", True)
    assert (find.name, cells(find)) == ("find", ["1✗ 1✓", "1! 1·"])
    assert cells(refund) == ["– no call", ""]
    by_case = grid_rows(ROWS, by_case=True)
    assert [row.name for row in by_case] == ["desk", "find", "late", "lost", "refund", "lost"]
    assert cells(by_case[2]) == ["✓ recovered", "! crashed"]
    assert cells(by_case[3]) == ["✗ made upƒ", "·"]
    assert text_of(find.cells["error"], short=False) == "✗ made upƒ 1, ✓ recovered 1"
    # The worst one comes first, so that enter opens it.
    assert [one.ref.eval_id for one in find.cells["error"]] == ["lost", "late"]
    assert status_of(find.cells["timeout"]) == "error"


def test_cell_is_explained_in_words() -> None:
    _, find, _ = grid_rows(ROWS, by_case=False)
    assert about_cell(find, "error") == ("find · error: 1 made up, 1 recovered", "ƒ because made_up")
    assert about_cell(find, "timeout") == ("find · timeout: 1 crashed, 1 to come", "because crashed")
    assert about_cell(find, "no_answer") == ("find · no answer: not run", "")
    late = grid_rows(ROWS, by_case=True)[2]
    assert about_cell(late, "error") == ("find · late · error: recovered", "because recovered")
    assert [is_problem((one,)) for one in ROWS] == [False, True, True, False, False]
    assert progress_text(ROWS) == "4 of 5 faults"


@pytest.mark.parametrize(("room", "above"), [(115, False), (75, False), (60, True)])
def test_columns_fit_into_usual_terminals(room: int, above: bool) -> None:
    every = [record("late", "find_order", way, "made_up", rules=True) for way in WAYS]
    columns = columns_for(grid_rows(every, by_case=False), room)
    assert columns.above == above
    answer = "answ…" if columns.short else "answer"
    assert " ".join("".join(columns.titles()).split()) == f"error timeout error {answer} no answer malformed"


def test_long_names_use_the_width_beside_the_columns() -> None:
    name = "refund_by_card_after_two_weeks_without_any_answer"
    rows = grid_rows([record(name, "find_order", "error", "crashed")], by_case=True)
    narrow, wide = columns_for(rows, 105), columns_for(rows, 190)
    assert narrow.name + sum(narrow.ways) - 1 == 105
    assert wide.name > len(name)
    assert wide.name + sum(wide.ways) < 190, "but no more than they need"


OUTCOMES = st.sampled_from([*STATUS, None])


@given(st.lists(st.tuples(st.sampled_from(HOSTILE), st.sampled_from(list(WAYS)), OUTCOMES)), st.integers(1, 200))
def test_texts_are_safe_and_columns_never_wider_than_the_room(
    given: list[tuple[str, FaultWay, FaultOutcome | None]], room: int
) -> None:
    records = [record(name, name, way, outcome, agent=name) for name, way, outcome in given]
    for by_case in (False, True):
        rows = grid_rows(records, by_case=by_case)
        columns = columns_for(rows, room)
        assert columns.name + sum(columns.ways) - 1 <= max(room, 11)
        for row in rows:
            texts = [row.name, *(text for way in WAYS for text in about_cell(row, way))]
            assert not leaks("".join(texts))
            for way, width in zip(WAYS, columns.ways, strict=True):
                assert not row.cells or room < 70 or cell_len(text_of(row.cells[way], short=columns.short)) <= width
