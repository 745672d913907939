"""A JSON report read back as the events of its run, so that a run of another machine can be scored here."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.plan.transcripts import StoredRun, collect
from workbench.event_json import from_json, sentences
from workbench.events import (
    AgentActed,
    CaseRef,
    CaseStarted,
    Event,
    Noticed,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.history.summary import number as number_of
from workbench.json_values import string
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
    events = list(report_events(path, verdicts=False))
    run = collect(events)
    run.trouble, run.file = [event.message for event in events if isinstance(event, Noticed)], path
    run.run_id = run.run_id or path.name
    for stored in run.cases.values():
        stored.has_simulation = False
    return run


def report_events(path: Path, *, verdicts: bool = True) -> Iterator[Event]:
    """Read a report as the events of its run, with or without verdicts. A `Noticed` names each case that is left out:
    it is not as reports have it, or stands there twice. Raises as `read_report`."""
    data = read_report_data(path)
    planned: dict[CaseRef, PlannedCase] = {}
    events: list[Event] = []
    for number, item in enumerate(data["cases"], 1):
        try:
            case, of_case = _planned(_object(item, "the case")), list(_case_events(item, verdicts=verdicts))
            if case.case in planned:
                raise _WrongShapeError(f"{case.case.label} stands twice in the report")
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            events.append(Noticed("warning", f"{path}: case {number} is left out: {error}"))
            continue
        planned[case.case] = case
        events += of_case
    words: dict[str, Any] = {name: string(data.get(name)) for name in ("run_id", "root", "started", "scored_from")}
    yield RunStarted(**words, cases=tuple(planned.values()))
    yield from events
    yield RunFinished(number_of(data.get("duration_seconds")) or 0.0)


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


def _planned(item: dict[str, Any]) -> PlannedCase:
    """Return the case of a report as its run announced it."""
    config, rule = item.get("config_file"), string(item.get("matched_by"))
    file = config if isinstance(config, str) else None
    return PlannedCase(_ref(item), file, "as in the report", sentences(item.get("criteria_changed")), rule)


def _ref(item: dict[str, Any]) -> CaseRef:
    agent, file, set_id, eval_id = (_text(item, key) for key in ("agent", "evalset_file", "eval_set_id", "eval_id"))
    repeat = item.get("repeat", 1)
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise _WrongShapeError("its repeat is no number from 1 up")
    return CaseRef(agent, file, set_id, eval_id, repeat)


def _case_events(item: dict[str, Any], *, verdicts: bool) -> Iterator[Event]:
    """The events of a case of a report. Raises ValueError for one of another shape."""
    ref = _ref(item)
    error = item.get("error")
    invocations = [_object(entry, "an invocation") for entry in _list(item, "invocations")]
    scenario = None if item.get("scenario") is None else _object(item["scenario"], "its scenario")
    references = [entry.get("expected") for entry in invocations]
    expected = None if scenario is not None or not any(references) else _expected(references)
    rubrics = tuple(_object(rubric, "a rubric") for rubric in _list(item, "rubrics"))
    if invocations or error is None:
        attempt = item.get("attempt")
        number = attempt if isinstance(attempt, int) and attempt > 0 else 1
        yield CaseStarted(ref, 0.0, expected, _criteria(item), scenario, rubrics, attempt=number)
        for number, entry in enumerate(invocations):
            if entry.get("actual") is not None:
                yield from _turn(ref, number, entry)
        if verdicts:
            yield from _verdicts(ref, item, invocations)
    usage = {name: value for name, value in (item.get("usage") or {}).items() if isinstance(value, int)}
    ended = {"status": item.get("status"), "error": error, "usage": usage}
    seconds = item.get("duration_seconds")
    yield from_json({"event": "CaseFinished", "case": asdict(ref), "duration_seconds": seconds, **ended})


def _verdicts(ref: CaseRef, item: dict[str, Any], invocations: list[dict[str, Any]]) -> Iterator[Event]:
    for metric in item.get("metrics") or ():
        of_turns = [_of_turn(turn, metric) for turn in invocations if turn.get("actual") is not None]
        yield from_json({"event": "MetricScored", "case": asdict(ref), "result": metric, "turns": of_turns})


def _of_turn(turn: dict[str, Any], metric: dict[str, Any]) -> dict[str, Any]:
    """What the criterion said of a turn; a report leaves the threshold to the case."""
    name = metric["name"]
    found = next((result for result in turn.get("metrics") or () if result.get("name") == name), None)
    return {"name": name, "status": "not_applicable", **(found or {}), "threshold": metric.get("threshold")}


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
