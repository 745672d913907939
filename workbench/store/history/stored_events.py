"""Events of stored runs and of JSON reports, with a message for each part that is damaged or missing."""

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from workbench.events.event_json import from_json, read_fields
from workbench.events.events import (
    AgentActed,
    CaseRef,
    CaseStarted,
    Event,
    ForkOf,
    Noticed,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.events.shards import Shard
from workbench.files.file_access import read_regular
from workbench.files.run_options import UsageFaultError
from workbench.store.database.database import database, state_of
from workbench.store.database.runs import EventRow, Unread, find_run, some_events
from workbench.store.transcripts import StoredRun, collect
from workbench.text.counting import counted
from workbench.text.json_values import number as number_of
from workbench.text.json_values import objects, string, strings

UNREADABLE_CASES = CaseRef("", "", "", "other cases, which cannot be read")
"""Placeholder without a verdict for the unknown cases of a run whose announcement is lost."""


class EventRead(NamedTuple):
    """A stored event. `data` is its JSON form, or None if it is damaged or was not requested.

    `problem` describes damage to this event or to events before it, or is "". `is_whole` is false if this event is
    damaged.
    """

    number: int
    name: str
    execution: int | None
    size: int
    data: dict[str, Any] | None
    problem: str
    is_whole: bool = False


def stored_events(path: Path, *, unread: Unread = "none", retried: Collection[str] = ()) -> Iterator[EventRead]:
    """Yield the events of a stored run in order, and one without data for a gap at the end.

    The data of events that `unread` names is left out. Cases that ended with an error of a kind in `retried` do not
    count as decided.

    Raises:
        FileNotFoundError: There is no such run.
        OSError: The database cannot be read.
    """
    stored = database(state_of(path))
    row = stored.read(lambda connection: find_run(connection, path.name))
    if row is None:
        raise FileNotFoundError(2, "no such run", str(path))
    last = 0
    while batch := stored.read(lambda connection: some_events(connection, row.id, last, unread, retried)):  # noqa: B023
        for event in batch:
            yield _read(event, path, last)
            last = event.number
    lost = row.events - last if row.is_whole else 0
    if lost > 0:
        missing = counted(lost, "event is", "events are")
        yield EventRead(last + 1, "", None, 0, None, f"{path}: {missing} missing at the end of the run")
    elif row.events < 0:
        yield EventRead(
            last + 1, "", None, 0, None, f"{path}: the database was damaged, and parts of this run are lost"
        )


def _read(event: EventRow, path: Path, last: int) -> EventRead:
    lost = event.number - last - 1
    missing = counted(lost, "event is", "events are")
    problem = f"{path}: {missing} missing before event {event.number}" if lost > 0 else ""
    data: dict[str, Any] | None = None
    is_whole = event.is_whole
    if is_whole and event.data:
        try:
            data = json.loads(event.data)
            if not isinstance(data, dict):
                raise ValueError("it is not a JSON object")
        except (ValueError, RecursionError) as error:
            data, is_whole, problem = None, False, f"{path}: event {event.number} is damaged: {error}"
    elif not is_whole:
        problem = f"{path}: event {event.number} is damaged: its checksum is wrong"
    return EventRead(event.number, event.name, event.execution, len(event.data), data, problem, is_whole)


def read_run(path: Path) -> Iterator[Event]:
    """Yield the events of a stored run, in order.

    Events that are damaged or of unknown form are skipped, and a `Noticed` names each. A lost `RunStarted` is replaced
    by one with the cases that other events name. A run that was killed has no `RunFinished`.

    Raises:
        FileNotFoundError: There is no such run.
        OSError: The database cannot be read.
    """
    events = _events(path)
    notices: list[Event] = []
    is_there = False
    for event in events:
        if isinstance(event, Noticed):
            notices.append(event)  # Held back, because front ends clear notices when a run is announced.
            continue
        is_there = True
        yield from ([event, *notices] if isinstance(event, RunStarted) else [_announcement(path), *notices, event])
        notices = []
        break
    if not is_there and any(is_reading_problem(notice, path) for notice in notices):
        yield _announcement(path)
    yield from notices
    yield from events


def is_reading_problem(event: Event, file: Path) -> bool:
    """Return whether an event is the reader's notice about a part of `file`, and not a notice recorded in the run."""
    return isinstance(event, Noticed) and event.message.startswith(f"{file}:")


def _events(path: Path) -> Iterator[Event]:
    for read in stored_events(path):
        if read.problem:
            yield Noticed("warning", read.problem)
        if read.data is not None:
            try:
                yield from_json(read.data)
            except (ValueError, RecursionError) as error:
                yield Noticed("warning", f"{path}: event {read.number} cannot be read: {error}")


def _announcement(path: Path) -> RunStarted:
    """Return a substitute for a lost `RunStarted`, with the cases that other events name."""
    refs: dict[CaseRef, None] = {}
    for event in _events(path):
        if (ref := getattr(event, "case", None)) is not None:
            refs[ref] = None
    # There may have been others. The placeholder keeps the run from counting as passed.
    cases = tuple(PlannedCase(ref, None, "not known: the database is damaged") for ref in (*refs, UNREADABLE_CASES))
    return RunStarted(path.name, "", "", cases)


def announcement(path: Path) -> RunStarted | None:
    """Return the `RunStarted` of a run, or None if it cannot be read."""
    try:
        for read in stored_events(path, unread="steps"):
            if read.data is None or read.name not in ("Noticed", "RunStarted"):
                return None
            if read.name == "RunStarted":
                event = from_json(read.data)
                return event if isinstance(event, RunStarted) else None
    except (OSError, ValueError, RecursionError):
        return None
    return None


SCHEMA = "agent-workbench/report/1"
_BROKEN_OFF = {"user_content", "intermediate_data"}
"""Fields of a turn that did not end."""


class _WrongShapeError(ValueError):
    """A case that does not have the form of a report's case."""


def read_report(path: Path) -> StoredRun:
    """Return the run in the report at `path`. Malformed cases are skipped and named in `trouble`.

    A report has only names and thresholds of the criteria, and nothing of custom metrics.

    Raises:
        UsageFaultError: The file is not a report, or the report says that nothing ran.
        OSError: The file cannot be read.
    """
    events = list(report_events(path, verdicts=False))
    run = collect(events)
    run.trouble, run.file = [event.message for event in events if isinstance(event, Noticed)], path
    run.run_id = run.run_id or path.name
    for stored in run.cases.values():
        stored.has_simulation = False
    return run


def report_events(path: Path, *, verdicts: bool = True) -> Iterator[Event]:
    """Yield a report as the events of its run, with or without verdicts.

    A `Noticed` names each case that is skipped because it is malformed or a duplicate.

    Raises the same errors as `read_report`.
    """
    return events_of_report(read_report_data(path), path, verdicts=verdicts)


def events_of_report(data: dict[str, Any], path: Path, *, verdicts: bool = True) -> Iterator[Event]:
    """Yield the events of a report that was read from `path`, as `report_events` does."""
    planned: dict[CaseRef, PlannedCase] = {}
    events: list[Event] = []
    for number, item in enumerate(data["cases"], 1):
        try:
            case, case_events = _planned(_object(item, "the case")), list(_case_events(item, verdicts=verdicts))
            if case.case in planned:
                raise _WrongShapeError(f"{case.case.label} is already in the report")
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            events.append(Noticed("warning", f"{path}: skipped case {number}: {error}"))
            continue
        planned[case.case] = case
        events += case_events
    words: dict[str, Any] = {name: string(data.get(name)) for name in ("run_id", "root", "started", "scored_from")}
    yield RunStarted(**words, cases=tuple(planned.values()), shard=_shard(data, path))
    yield from events
    yield RunFinished(_seconds(data.get("duration_seconds")))


def read_report_data(path: Path) -> dict[str, Any]:
    """Return the JSON of a report. Its `cases` are unchecked. Raises the same errors as `read_report`."""
    try:
        data = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise UsageFaultError(f"{path} is not a JSON report: {error}", kind="broken_file") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        why = f"its schema is {found!r}, not {SCHEMA!r}" if found else f"it has no schema {SCHEMA!r}"
        raise UsageFaultError(
            f"{path} is not a JSON report: {why}", "`agent-workbench run --json FILE` writes one", "broken_file"
        )
    refusal = data.get("error")
    if isinstance(refusal, dict):
        raise UsageFaultError(f"{path} says that nothing ran: {refusal.get('message')}")
    if not isinstance(data.get("cases"), list):
        raise UsageFaultError(f"{path} is not a JSON report: it has no list of cases", kind="broken_file")
    return data


def _seconds(value: Any) -> float:
    """Return a duration, or 0.0 for a value that is none, which no export could contain."""
    found = number_of(value)
    return found if found is not None and 0 <= found < math.inf else 0.0


def _planned(item: dict[str, Any]) -> PlannedCase:
    config, rule = item.get("config_file"), string(item.get("matched_by"))
    file = config if isinstance(config, str) else None
    changed, fork = strings(item.get("criteria_changed")), _fork(item)
    source = string(_for_merge(item).get("criteria_source")) or "as in the report"
    return PlannedCase(_ref(item), file, source, changed, rule, fork=fork)


def _for_merge(item: dict[str, Any]) -> dict[str, Any]:
    """Return the extra data in the report of a shard, or {}."""
    return _object(item.get("for_merge") or {}, "`for_merge`")


def _shard(data: dict[str, Any], path: Path) -> Shard | None:
    if data.get("shard") is None:
        return None
    try:
        return read_fields(Shard, data["shard"])
    except ValueError as error:
        raise UsageFaultError(f"{path}: the field `shard` is invalid: {error}", kind="broken_file") from None


def _fork(item: dict[str, Any]) -> ForkOf | None:
    """Return the fork that an execution tried, or None. Raise ValueError or TypeError for a malformed one."""
    fork = _known(item, "fork")
    if fork is None:
        return None
    made = ForkOf(**{"call": 0, **fork})
    if not all(type(number) is int for number in (made.repeat, made.turn, made.call)):
        raise _WrongShapeError("`repeat`, `turn` and `call` of `fork` must be integers")
    return replace(made, turn=made.turn - 1)


def _ref(item: dict[str, Any]) -> CaseRef:
    agent, file, set_id, eval_id = (_text(item, key) for key in ("agent", "evalset_file", "eval_set_id", "eval_id"))
    repeat = item.get("repeat", 1)
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise _WrongShapeError("`repeat` is not a positive integer")
    return CaseRef(agent, file, set_id, eval_id, repeat)


def _case_events(item: dict[str, Any], *, verdicts: bool) -> Iterator[Event]:
    """Yield the events of a case, with or without verdicts.

    Raises:
        ValueError, TypeError, AttributeError, LookupError, RecursionError: The case is malformed.
    """
    ref = _ref(item)
    error = item.get("error")
    invocations = [_object(entry, "an invocation") for entry in _list(item, "invocations")]
    scenario = None if item.get("scenario") is None else _object(item["scenario"], "its scenario")
    references = [entry.get("expected") for entry in invocations]
    expected = None
    if scenario is None and any(references):
        # Turns without a reference are left out.
        expected = tuple(_object(reference, "a reference") for reference in references if reference is not None)
    rubrics = tuple(_object(rubric, "a rubric") for rubric in _list(item, "rubrics"))
    if invocations or error is None:
        attempt = item.get("attempt")
        number = attempt if isinstance(attempt, int) and attempt > 0 else 1
        criteria = _for_merge(item).get("criteria") or _criteria(item)
        yield CaseStarted(ref, 0.0, expected, _object(criteria, "its criteria"), scenario, rubrics, attempt=number)
        for number, entry in enumerate(invocations):
            if entry.get("actual") is not None:
                yield from _turn(ref, number, entry)
        if verdicts:
            yield from _verdicts(ref, item, invocations)
    yield from _besides(ref, item)
    usage = {name: n for name, n in (item.get("usage") or {}).items() if isinstance(n, int) and n >= 0}
    ended = {"status": item.get("status"), "error": error, "usage": usage, "frozen": _known(item, "frozen")}
    ended["thawed"] = _known(item, "drift")
    ended["machine"] = string(item.get("place"))
    seconds = item.get("duration_seconds")
    ended["duration_seconds"] = _seconds(seconds) if isinstance(seconds, int | float) else seconds
    yield from_json({"event": "CaseFinished", "case": asdict(ref), **ended})


def _besides(ref: CaseRef, item: dict[str, Any]) -> Iterator[Event]:
    """Yield the turns of the simulated user and the agent's output, which only the report of a shard has."""
    found = _for_merge(item)
    for move in _list(found, "simulated"):
        fields = _object(move, "a turn of its simulated user")
        yield from_json({**fields, "event": "UserSimulated", "case": asdict(ref)})
    for stream, text in _object(found.get("output") or {}, "its output").items():
        yield from_json({"event": "OutputCaptured", "case": asdict(ref), "stream": stream, "text": text})


def _known(item: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the fields of an object of a case without those that are null; None if there is none."""
    found = item.get(name)
    if found is None:
        return None
    return {key: value for key, value in _object(found, name).items() if value is not None}


def _verdicts(ref: CaseRef, item: dict[str, Any], invocations: list[dict[str, Any]]) -> Iterator[Event]:
    for metric in item.get("metrics") or ():
        turn_results = [_turn_result(turn, metric) for turn in invocations if turn.get("actual") is not None]
        yield from_json({"event": "MetricScored", "case": asdict(ref), "result": metric, "turns": turn_results})


def _turn_result(turn: dict[str, Any], metric: dict[str, Any]) -> dict[str, Any]:
    """Return a metric's result for a turn. A report has the threshold only on the case."""
    name = metric["name"]
    found = next((result for result in turn.get("metrics") or () if result.get("name") == name), None)
    return {"name": name, "status": "not_applicable", **(found or {}), "threshold": metric.get("threshold")}


def _turn(ref: CaseRef, number: int, entry: dict[str, Any]) -> Iterator[Event]:
    actual = _object(entry["actual"], "the agent's turn")
    user = _object(entry.get("user") or {}, "the user's message")
    yield TurnStarted(ref, number, user)
    if actual.keys() == _BROKEN_OFF:
        data = _object(actual["intermediate_data"], "the agent's turn")
        yield from (AgentActed(ref, number, _object(step, "a step")) for step in _list(data, "invocation_events"))
        return
    inner = entry.get("inner_calls")
    calls = tuple(objects(inner)) if isinstance(inner, list) else None
    yield TurnFinished(ref, number, actual, string(entry.get("note")), inner_calls=calls)


def _criteria(item: dict[str, Any]) -> dict[str, Any]:
    """Return names and thresholds. Informational metrics have none."""
    metrics = [metric for metric in _list(item, "metrics") if isinstance(metric, dict)]
    return {
        metric["name"]: metric["threshold"]
        for metric in metrics
        if isinstance(metric.get("name"), str) and isinstance(metric.get("threshold"), int | float)
    }


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _WrongShapeError(f"{what} is not an object")
    return value


def _list(item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _WrongShapeError(f"`{key}` is not a list")
    return value


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise _WrongShapeError(f"`{key}` is not a string")
    return value
