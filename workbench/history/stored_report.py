"""A JSON report read back as the events of its run, so that a run of another machine can be scored here."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.engine.plan.options import UsageFaultError
from workbench.engine.plan.transcripts import StoredRun, collect
from workbench.event_json import from_json, sentences
from workbench.events import (
    AgentActed,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    PlannedCase,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.regular_file import read_regular

SCHEMA = "agent-workbench/report/1"
_BROKEN_OFF = {"user_content", "intermediate_data"}
"""What a report has of a turn that did not come to its end."""


class _WrongShapeError(ValueError):
    """A case of the report is not what a report holds."""


def read_report(path: Path) -> StoredRun:
    """The run of the report at `path`. A case that is not as reports have it is named in `trouble` and left out.

    A report has of the criteria only names and thresholds, and of custom metrics nothing.

    Raises:
        UsageFaultError: it is no report, or one that says that nothing ran.
        OSError: it cannot be read.
    """
    data = read_report_data(path)
    trouble: list[str] = []
    cases: dict[CaseRef, list[Event]] = {}
    planned: list[PlannedCase] = []
    for number, item in enumerate(data["cases"], 1):
        try:
            case, events = _planned(item), list(case_events(item))
        except (ValueError, RecursionError) as error:
            trouble.append(f"{path}: case {number} is left out: {error}")
            continue
        if case.case in cases:
            trouble.append(f"{path}: case {number} is left out: {case.case.label} stands twice in the report")
            continue
        cases[case.case] = events
        planned.append(case)
    root, run_id = data.get("root"), data.get("run_id")
    started = RunStarted(
        run_id if isinstance(run_id, str) else path.name, root if isinstance(root, str) else "", "", tuple(planned)
    )
    run = collect([started, *(event for events in cases.values() for event in events)])
    run.trouble, run.file = trouble, path
    for stored in run.cases.values():
        stored.simulation_kept = False
    return run


def read_report_data(path: Path) -> dict[str, Any]:
    """The JSON of a report; its `cases` are a list of anything. Raises as `read_report`."""
    try:
        data = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise UsageFaultError(f"{path} is no JSON report: {error}", kind="broken_file") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        said = f"its schema is {found!r}, not {SCHEMA!r}" if found else f"it has no schema {SCHEMA!r}"
        raise UsageFaultError(
            f"{path} is no JSON report: {said}", "`agent-workbench run --json FILE` writes one", "broken_file"
        )
    refusal = data.get("error")
    if isinstance(refusal, dict):
        raise UsageFaultError(f"{path} says that nothing ran: {refusal.get('message')}")
    if not isinstance(data.get("cases"), list):
        raise UsageFaultError(f"{path} is no JSON report: it has no list of cases", kind="broken_file")
    return data


def _planned(item: Any) -> PlannedCase:
    return planned_case(_ref(_object(item, "the case")), item)


def planned_case(ref: CaseRef, item: dict[str, Any]) -> PlannedCase:
    """Return the case of a report as its run announced it."""
    config, rule = item.get("config_file"), item.get("matched_by")
    file = config if isinstance(config, str) else None
    changed = sentences(item.get("criteria_changed"))
    return PlannedCase(ref, file, "as in the report", changed, rule if isinstance(rule, str) else "")


def _ref(item: dict[str, Any]) -> CaseRef:
    agent, file, set_id, eval_id = (_text(item, key) for key in ("agent", "evalset_file", "eval_set_id", "eval_id"))
    repeat = item.get("repeat", 1)
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise _WrongShapeError("its repeat is no number from 1 up")
    return CaseRef(agent, file, set_id, eval_id, repeat)


def case_events(item: dict[str, Any]) -> Iterator[Event]:
    """The events of a case of a report, without its verdicts; a `CaseFinished` at the end. Raises ValueError for one of
    another shape."""
    ref = _ref(item)
    finished = _finished(ref, item)
    invocations = [_object(entry, "an invocation") for entry in _list(item, "invocations")]
    scenario = None if item.get("scenario") is None else _object(item["scenario"], "its scenario")
    references = [entry.get("expected") for entry in invocations]
    expected = None if scenario is not None or not any(references) else _expected(references)
    rubrics = tuple(_object(rubric, "a rubric") for rubric in _list(item, "rubrics"))
    if invocations or finished.error is None:
        attempt = item.get("attempt")
        number = attempt if isinstance(attempt, int) and attempt > 0 else 1
        yield CaseStarted(ref, 0.0, expected, _criteria(item), scenario, rubrics, attempt=number)
    for number, entry in enumerate(invocations):
        if entry.get("actual") is not None:
            yield from _turn(ref, number, entry)
    yield finished


def _expected(references: list[Any]) -> tuple[dict[str, Any], ...]:
    """The reference; turns beyond it have none."""
    return tuple(_object(reference, "a reference") for reference in references if reference is not None)


def _turn(ref: CaseRef, number: int, entry: dict[str, Any]) -> Iterator[Event]:
    actual = _object(entry["actual"], "what the agent did")
    user = _object(entry.get("user") or {}, "what the user said")
    yield TurnStarted(ref, number, user)
    if actual.keys() == _BROKEN_OFF:
        data = _object(actual["intermediate_data"], "what the agent did")
        yield from (AgentActed(ref, number, _object(step, "a step")) for step in _list(data, "invocation_events"))
        return
    note = entry.get("note")
    yield TurnFinished(ref, number, actual, note if isinstance(note, str) else "")


def _criteria(item: dict[str, Any]) -> dict[str, Any]:
    """Names and thresholds; what is only informational has none."""
    metrics = [metric for metric in _list(item, "metrics") if isinstance(metric, dict)]
    return {
        metric["name"]: metric["threshold"]
        for metric in metrics
        if isinstance(metric.get("name"), str) and isinstance(metric.get("threshold"), int | float)
    }


def _finished(ref: CaseRef, item: dict[str, Any]) -> CaseFinished:
    fields = {"status": item.get("status"), "error": item.get("error"), "duration_seconds": 0.0}
    event = from_json({"event": "CaseFinished", "case": dataclasses.asdict(ref), **fields})
    assert isinstance(event, CaseFinished)
    return event


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _WrongShapeError(f"{what} is no object")
    return value


def _list(item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _WrongShapeError(f"its {key} are no list")
    return value


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise _WrongShapeError(f"its {key} is no text")
    return value
