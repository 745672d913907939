"""Stored runs found by name and read from reports. Bad input leads to a refusal and nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stored import change_event, drop_events, sql
from workbench.events.event_json import as_line
from workbench.events.events import (
    AgentActed,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
    UserSimulated,
)
from workbench.exporting import SCHEMA as WRITTEN
from workbench.files.run_options import UsageFaultError
from workbench.store.database.database import database, run_path
from workbench.store.history.reading import open_run
from workbench.store.history.run_names import find_run, last_run, last_run_without_faults, run_ids
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import SCHEMA, read_report

REF = CaseRef("desk", "desk/a.evalset.json", "a", "one")


def keep(state: Path, run_id: str, scored_from: str = "", **more: Any) -> Path:
    """Store a run with one case of one turn."""
    journal = RunWriter.open(state, run_id)
    assert journal.path is not None
    events: list[Event] = [
        RunStarted(run_id, "/root", "", (PlannedCase(REF, None, "defaults"),), scored_from, **more),
        CaseStarted(REF, 0.0, ({},), {}),
        TurnFinished(REF, 0, {"said": run_id}),
    ]
    journal.write(map(as_line, events), sync=False)
    journal.close()
    return journal.path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    keep(state, "2026-11-21T10-30-00-bbbb")
    keep(state, "2026-11-21T10-30-00-aaaa")
    keep(state, "2026-11-22T09-00-00-cccc", scored_from="2026-11-21T10-30-00-aaaa")
    return state


def test_runs_within_one_second_are_listed_newest_first(state: Path) -> None:
    assert [name[-4:] for name in run_ids(state)] == ["cccc", "bbbb", "aaaa"]
    assert run_ids(state / "nowhere") == []


def test_last_is_the_newest_run_with_agents(state: Path, tmp_path: Path) -> None:
    path = last_run(state)
    assert path is not None
    assert path.name == "2026-11-21T10-30-00-bbbb"
    run = open_run("last", state, tmp_path)
    assert (run.run_id, run.root, run.file) == ("2026-11-21T10-30-00-bbbb", "/root", path)
    begun = RunWriter.open(state, "2026-11-22T09-30-00-eeee")
    assert last_run(state) == path, "one that has not announced itself yet has no cases"
    begun.release()
    only = tmp_path / "only"
    keep(only, "2026-11-22T09-00-00-dddd", scored_from="x")
    assert open_run("last", only, tmp_path).scored_from == "x", "where there is no other, that one"
    assert last_run(tmp_path / "nowhere") is None


def test_run_with_injected_faults_is_not_the_last_run_to_freeze(state: Path, tmp_path: Path) -> None:
    keep(state, "2026-11-22T09-10-00-ffff", inputs={"options": {"inject": "matrix"}})
    assert find_run("last", state, tmp_path).name == "2026-11-22T09-10-00-ffff"
    assert last_run_without_faults(state) == "2026-11-21T10-30-00-bbbb"
    assert last_run_without_faults(tmp_path / "nowhere") == "last"


@pytest.mark.parametrize("word", ["2026-11-21T10-30-00-bbbb", "2026-11-21T10-30-00-b"])
def test_run_is_found_by_id_or_its_beginning(word: str, state: Path, tmp_path: Path) -> None:
    run = open_run(word, state, tmp_path)
    assert run.cases[REF].turns[0].actual == {"said": "2026-11-21T10-30-00-bbbb"}


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("2026", "3 runs start with 2026", "They are 2026-11-22T09-00-00-cccc, "),
        ("2026-11-21T10-30-00-abbb", "no run 2026-11-21T10-30-00-abbb found", "Similar names: 2026-11-21T10-30-00-"),
        ("x", "no run x found", "lists all runs. Newest: 2026-11-22T09-00-00-cccc"),
        ("../runs", "../runs does not exist", "lists all runs"),
        ("..", "no run .. found", ""),
        ("", "is empty", ""),
        ("a\0b", "no run", ""),
        ("\ud800", "no run", ""),
    ],
)
def test_unknown_run_is_refused_with_a_hint(word: str, message: str, hint: str, state: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageFaultError) as refused:
        open_run(word, state, tmp_path)
    assert message in str(refused.value)
    assert hint in refused.value.hint


def test_damaged_event_is_named_and_leaves_its_case_incomplete(state: Path, tmp_path: Path) -> None:
    path = run_path(state, "2026-11-21T10-30-00-bbbb")
    change_event(path, 3, "said", "sold")
    run = open_run("last", state, tmp_path)
    (trouble,) = run.trouble
    assert f"{path}: event 3 is damaged" in trouble
    error = run.cases[REF].why_incomplete()
    assert error is not None


def test_schema_name_equals_that_of_written_reports() -> None:
    assert SCHEMA == WRITTEN


INVOCATION: Mapping[str, Any] = {
    "user": {"role": "user", "parts": [{"text": "hi"}]},
    "expected": {"user_content": {}, "final_response": {}},
    "actual": {"invocation_id": "1", "user_content": {}, "intermediate_data": {"invocation_events": []}},
    "note": "",
    "metrics": [],
}
CASE: Mapping[str, Any] = {
    "agent": "desk",
    "evalset_file": "desk/a.evalset.json",
    "eval_set_id": "a",
    "eval_id": "one",
    "repeat": 1,
    "status": "passed",
    "error": None,
    "config_file": None,
    "duration_seconds": 1.0,
    "usage": {},
    "metrics": [{"name": "response_match_score", "threshold": 0.8}, {"name": "tool_call_count_v1", "threshold": None}],
    "invocations": [INVOCATION],
    "scenario": None,
    "rubrics": [{"rubric_id": "r"}],
}


def report(path: Path, *cases: Any) -> Path:
    file = path / "report.json"
    file.write_text(json.dumps({"schema": SCHEMA, "run_id": "run", "root": "/x", "cases": list(cases)}))
    return file


def test_case_of_a_report_is_read(tmp_path: Path) -> None:
    run = read_report(report(tmp_path, CASE))
    case = run.cases[REF]
    assert case.why_incomplete() is None
    assert case.started is not None
    assert case.started.expected == (INVOCATION["expected"],)
    assert case.started.criteria == {"response_match_score": 0.8}
    assert case.started.rubrics == ({"rubric_id": "r"},)
    assert case.turns[0].actual == INVOCATION["actual"]


def test_scenario_of_a_report_is_read(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "hi", "conversation_plan": "ask"}
    case = {**CASE, "scenario": scenario, "invocations": [{**INVOCATION, "expected": None}]}
    stored = read_report(report(tmp_path, case)).cases[REF]
    assert stored.why_incomplete() is None
    assert stored.started is not None
    assert (stored.started.expected, stored.started.scenario) == (None, scenario)


def test_incomplete_turn_is_not_a_turn(tmp_path: Path) -> None:
    acted = [{"author": "desk", "content": {}}]
    broken = {**INVOCATION, "actual": {"user_content": {}, "intermediate_data": {"invocation_events": acted}}}
    error = {"kind": "timeout", "message": "m", "hint": "h", "traceback": "t"}
    case = {**CASE, "status": "error", "error": error, "invocations": [INVOCATION, broken]}
    stored = read_report(report(tmp_path, case)).cases[REF]
    assert len(stored.turns) == 1
    why = stored.why_incomplete()
    assert why is not None
    assert (why.kind, why.message, why.hint, why.traceback) == ("timeout", "m", "h", "t")
    lying = read_report(report(tmp_path, {**case, "status": "passed", "error": None})).cases[REF]
    assert lying.why_incomplete() is not None, "a case that says it passed, with a turn that has no end"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_malformed_reports_only_lose_cases(tmp_path: Path, data: st.DataObject) -> None:
    case = dict(CASE)
    for key in data.draw(st.lists(st.sampled_from(sorted(CASE)), min_size=1, max_size=3)):
        case[key] = data.draw(json_values)
    if data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(INVOCATION)))
        case["invocations"] = [{**INVOCATION, key: data.draw(json_values)}]
    run = read_report(report(tmp_path, case))
    assert len(run.cases) + len(run.trouble) == 1
    for stored in run.cases.values():
        stored.why_incomplete()


def test_report_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("[" * 200_000)
    with pytest.raises(UsageFaultError, match="not a JSON report"):
        read_report(file)


OTHER = CaseRef("desk", "desk/a.evalset.json", "a", "played")
ENDS: list[Event] = [CaseFinished(ref, "passed", None, 1.0) for ref in (REF, OTHER)]
WHOLE: list[Event] = [
    RunStarted("run", "/root", "", (PlannedCase(REF, None, ""), PlannedCase(OTHER, None, ""))),
    CaseStarted(REF, 0.0, ({}, {}), {}),
    CaseStarted(OTHER, 0.0, None, {}, {"starting_prompt": "hi"}),
    *(
        event
        for ref in (REF, OTHER)
        for number in (0, 1)
        for event in (
            TurnStarted(ref, number, {}),
            AgentActed(ref, number, {"author": "desk"}),
            TurnFinished(ref, number, {"said": f"{ref.eval_id} {number}"}),
        )
    ),
    UserSimulated(OTHER, 2, "stop_signal", {}),
    *ENDS,
    RunFinished(1.0),
]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lost=st.sets(st.integers(1, len(WHOLE)), max_size=8), cut=st.integers(0, 4))
def test_transcript_with_a_lost_event_is_not_complete(tmp_path: Path, lost: set[int], cut: int) -> None:
    state = tmp_path / "hurt"
    path = run_path(state, "run")
    if not database(state).exists:
        writer = RunWriter.open(state, "run")
        writer.write(map(as_line, WHOLE), sync=False)
        writer.close()
        sql(state, "CREATE TABLE kept AS SELECT * FROM event")
    sql(state, "DELETE FROM event")
    sql(state, "INSERT INTO event SELECT * FROM kept")
    drop_events(path, *lost, *range(len(WHOLE) + 1 - cut, len(WHOLE) + 1))
    run = open_run("run", state, tmp_path)
    for ref, case in run.cases.items():
        if case.why_incomplete() is None:
            assert case.started is not None
            assert [turn.actual for turn in case.turns] == [{"said": f"{ref.eval_id} {number}"} for number in (0, 1)]
