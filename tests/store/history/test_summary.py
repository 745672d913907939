"""Summaries: live events give the same summary as stored ones, are not changed, and can be stored as rows."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench.events.event_json import as_line, from_json
from workbench.events.events import (
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
from workbench.results.run_comparison import compare
from workbench.store.database.runs import ExecutionRow
from workbench.store.history.execution_rows import RunRows, add_executions, facts_text
from workbench.store.history.summary import Summary, summarize_events

FILE = Path("runs.db", "run")
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
def test_summary_of_live_events_equals_that_of_stored_events_and_rows(events: list[Event]) -> None:
    lines = [as_line(event) for event in events]
    before = copy.deepcopy([line.event for line in lines])
    live = summarize_events((line.event for line in lines), FILE)
    stored = summarize_events((from_json(json.loads(line.text)) for line in lines), FILE)
    assert repr(live.executions) == repr(stored.executions)
    assert live.bundles.texts == stored.bundles.texts
    assert facts_text(live) == facts_text(stored)
    assert repr([line.event for line in lines]) == repr(before)
    (execution,) = live.executions.values()
    assert execution.steps is not None
    assert [step[0] for step in execution.steps] == ["c", "r", "a"]
    assert execution.scores["m"].status == "failed"
    assert_read_from_its_row_is_the_same(events)


def assert_read_from_its_row_is_the_same(events: list[Event]) -> None:
    rows = RunRows(1, FILE)
    for number, line in enumerate(map(as_line, events), 1):
        rows.take(line.event, number, len(line.text))
    (row,) = [row.sealed() for row in rows.rows(rows.places.values())]
    assert row.is_whole
    made = rows.builder.summary
    again = Summary("run", bundles=made.bundles)
    add_executions(again, [ExecutionRow(*row)], FILE)
    (written,), (read,) = made.executions.values(), again.executions.values()
    # Of a judge, only what it is called and its kind are stored.
    judged = {name: replace(result, details={}) for name, result in written.scores.items()}
    assert repr({name: replace(result, details={}) for name, result in read.scores.items()}) == repr(judged)
    unlike: dict[str, Any] = {"scores": {}, "inputs": ()}
    assert repr(replace(read, **unlike)) == repr(replace(written, **unlike))
    assert [*read.inputs] == [*written.inputs]
    assert (read.size, read.started_at) == (sum(len(as_line(event).text) for event in events[1:5]), 0.0)


def test_results_of_injected_faults_are_not_compared(tmp_path: Path) -> None:
    case = CaseRef("desk", "a.evalset.json", "a", "one")
    runs = [
        summarize_events(
            [
                RunStarted("r", "/", "", (PlannedCase(case, None, ""),), inputs={"options": options}),
                CaseFinished(case, "failed", None, 0.1),
            ]
        )
        for options in ({}, {"inject": "matrix"})
    ]
    assert [run.has_faults for run in runs] == [False, True]
    assert compare(runs[0], runs[1], tmp_path).is_empty
    assert not compare(runs[0], runs[0], tmp_path).is_empty


def test_summary_accepts_repeated_attempts_and_missing_events() -> None:
    error = CaseFinished(REF, "error", CaseError("crashed", "it died"), 1.0)
    passed = CaseFinished(REF, "passed", None, 2.0)
    score = MetricScored(REF, MetricResult("m", "passed", 1.0, 0.5))
    started = CaseStarted(REF, 0.0, (), {})
    announced = RunStarted("run", "/root", "2026", (PlannedCase(REF, "c.json", "defaults"),))
    (last,) = summarize_events([announced, started, score, error, started, passed]).executions.values()
    assert (last.state, last.scores, last.error, last.duration_seconds) == ("passed", {}, None, 2.0)
    # The start of the second attempt, or the announcement, is lost.
    (last,) = summarize_events([announced, started, error, score, passed]).executions.values()
    assert (last.state, list(last.scores), last.planned.config_file) == ("passed", ["m"], "c.json")
    (last,) = summarize_events([TurnFinished(REF, 2, {}), passed]).executions.values()
    assert (last.state, last.planned.criteria_source, last.given) == ("passed", "not known", ())
