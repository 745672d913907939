"""Summaries: live events give the same summary as stored ones, and are not changed."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench.database.runs import ExecutionRow
from workbench.engine.run.event_lines import as_line
from workbench.event_json import to_json
from workbench.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunResumed,
    RunStarted,
    TurnFinished,
    Usage,
)
from workbench.history.compare import compare
from workbench.history.execution_rows import Place, rows_from, to_stored
from workbench.history.summary import Summary, summarize_events

REF = CaseRef("desk", "desk/r.evalset.json", "r", "one", 2)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=3)
sources = st.dictionaries(st.sampled_from(["desk", "shop"]), objects, max_size=2)


def deep(value: Any, levels: int) -> Any:
    return value if levels == 0 else {"deeper": deep(value, levels - 1)}


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    parts = [
        {"function_call": {"name": "look", "args": draw(objects)}},
        {"function_response": {"name": "look", "response": deep(draw(values), draw(st.sampled_from([0, 300])))}},
    ]
    recorded = {"invocation_events": [{"author": "desk", "content": {"parts": parts}}]}
    actual = {**draw(objects), "final_response": {"parts": [{"text": draw(st.text())}]}, "intermediate_data": recorded}
    criterion = {"threshold": draw(st.floats()), "judge_model_options": draw(values)}
    judge = {**draw(objects), "judge": draw(values | st.fixed_dictionaries({"model": values}))}
    metric = MetricResult("m", "failed", draw(st.none() | st.floats()), 0.5, draw(st.text()), judge)
    return [
        RunStarted("run", "/root", "2026", (PlannedCase(REF, None, "defaults"),), sources=draw(sources)),
        CaseStarted(REF, 0.0, (draw(objects),), {"m": criterion, "n": draw(values)}, draw(objects), (draw(objects),)),
        TurnFinished(REF, 0, actual),
        MetricScored(REF, metric, (metric,)),
        CaseFinished(REF, "error", CaseError("judge", draw(st.text())), draw(st.floats()), Usage(2, 20, 10)),
        RunResumed("2026"),
        RunFinished(1.5, git={"commit": draw(values)}, sources=draw(sources)),
    ]


@given(runs())
def test_summary_of_live_events_equals_that_of_stored_ones(events: list[Event]) -> None:
    lines = [as_line(event) for event in events]
    before = copy.deepcopy(lines)
    live = summarize_events(line.data for line in lines)
    stored = summarize_events(json.loads(line.text) for line in lines)
    assert repr(live) == repr(stored)
    row, place = next(iter(live.rows.values())), Place(7)
    kept = to_stored(row, live, place, 1).sealed()
    again = Summary(causes=[])
    rows_from(again, [ExecutionRow(*kept)])
    assert kept.is_whole
    (read,) = again.rows.values()
    lost = ("cause", "size")
    assert repr({name: read.get(name) for name in row if name not in lost}) == repr(
        {name: value for name, value in row.items() if name not in lost}
    )
    (row,) = live.rows.values()
    assert row["said"]
    assert len(row["steps"]) == 2
    assert row["metrics"]["m"][2] == "failed"
    assert json.dumps([to_json(line.event) for line in before]) == json.dumps([line.data for line in lines])


def test_results_of_injected_faults_are_not_compared(tmp_path: Path) -> None:
    case = CaseRef("desk", "a.evalset.json", "a", "one")
    runs = [
        summarize_events(
            [
                to_json(RunStarted("r", "/", "", (PlannedCase(case, None, ""),), inputs={"options": options})),
                to_json(CaseFinished(case, "failed", None, 0.1)),
            ]
        )
        for options in ({}, {"inject": "matrix"})
    ]
    assert [run.has_faults for run in runs] == [False, True]
    assert compare(runs[0], runs[1], tmp_path).is_empty
    assert not compare(runs[0], runs[0], tmp_path).is_empty
