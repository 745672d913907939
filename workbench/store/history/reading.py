"""Runs that are read: from the database, a JSON report, or a result file of ADK or agents-cli.

Each can be read as its summary, as all of its events, or as transcripts to score again. Cases can be read alone.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from workbench.events.event_json import from_json
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    Noticed,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)
from workbench.files.file_access import unreadable_text
from workbench.files.run_options import UsageFaultError
from workbench.store.database.database import Connection, database
from workbench.store.database.runs import (
    EventRow,
    ExecutionRow,
    RunRow,
    events_of_execution,
    executions_of_case,
    facts_of,
)
from workbench.store.database.runs import (
    find_run as run_by_id,
)
from workbench.store.history.adk_results import ENDING, adk_case_events, adk_summary
from workbench.store.history.agents_cli_results import agents_cli_events, agents_cli_summary, is_agents_cli_result
from workbench.store.history.execution_rows import add_executions, read_facts
from workbench.store.history.run_names import find_run
from workbench.store.history.state_dir import is_stored, state_of
from workbench.store.history.stored_events import UNREADABLE_CASES, is_reading_problem, read_run
from workbench.store.history.stored_report import read_report, report_events
from workbench.store.history.stored_runs import load_summary
from workbench.store.history.summary import Summary, summarize_events
from workbench.store.transcripts import StoredRun, collect

END_IS_LOST = "the end of this case cannot be read: the database is damaged"


def open_summary(word: str, state: Path, folder: Path) -> tuple[Summary, list[str]]:
    """Return the summary of the run named `word`, and what could not be read. Files are relative to `folder`.

    Raises:
        UsageFaultError: there is no such run, or none of it can be read.
    """
    try:
        path = find_run(word, state, folder)
        return load_summary(state_of(path), path.name) if is_stored(path) else _file_summary(path)
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def _file_summary(path: Path) -> tuple[Summary, list[str]]:
    if path.name.endswith(ENDING):
        return adk_summary(path), []
    if is_agents_cli_result(path):
        return agents_cli_summary(path), []
    return _report_summary(path)


def _report_summary(path: Path) -> tuple[Summary, list[str]]:
    """Return the summary of a report.

    A report holds less than the database: of the criteria only thresholds, and nothing about the agents' files.
    """
    events = list(report_events(path))
    summary = summarize_events(events, path)
    for execution in summary.executions.values():
        execution.given = tuple(one for one in execution.given if "expected" in summary.bundles[one].inputs)
    return summary, [event.message for event in events if isinstance(event, Noticed)]


def read_run_events(word: str, state: Path, folder: Path) -> list[Event]:
    """Return all events of the run named `word`. A `Noticed` names each part that cannot be read.

    Files are relative to `folder`.

    Raises:
        UsageFaultError: there is no such run, or none of it can be read.
    """
    try:
        path = find_run(word, state, folder)
        if is_stored(path):
            return _stored_events(path)
        if path.name.endswith(ENDING):
            return list(adk_case_events(path.absolute()))
        if is_agents_cli_result(path):
            return list(agents_cli_events(path))
        return list(report_events(path))
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def _stored_events(path: Path) -> list[Event]:
    """Return the events of a run, with an end for each case.

    If the run ended by itself, a missing end was lost. Otherwise the case was cancelled.
    """
    events = list(read_run(path))
    unended: dict[CaseRef, None] = {}
    end: RunFinished | None = None
    for event in events:
        match event:
            case RunFinished():
                end = event
            case RunResumed():
                end = None
            case RunStarted():
                unended.update(dict.fromkeys(planned.case for planned in event.cases))
            case CaseStarted():
                unended[event.case] = None
            case CaseFinished():
                unended.pop(event.case, None)
            case RepeatsDropped():
                unended = {ref: None for ref in unended if ref not in event.cases}
    if end is not None and not end.interrupted:
        why = CaseError("broken_file", END_IS_LOST)
        events += [CaseFinished(ref, "error", why, 0.0) for ref in unended]
    elif end is None:
        began = {event.case for event in events if isinstance(event, CaseStarted)}
        events += [CaseFinished(ref, "cancelled", _unended(began=ref in began), 0.0) for ref in unended]
    return events


def _unended(*, began: bool) -> CaseError:
    when = "while this case was running" if began else "before this case started"
    return CaseError("cancelled", f"the run ended {when}: it was killed, or is still in progress")


def open_run(word: str, state: Path, folder: Path) -> StoredRun:
    """Return the run named `word`: a run of the state folder `state`, or a file relative to `folder`.

    Parts that cannot be read are named in `trouble`.

    Raises:
        UsageFaultError: there is no such run, or none of it can be read.
    """
    path = find_run(word, state, folder)
    try:
        return _stored_run(path) if is_stored(path) else read_report(path)
    except OSError as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def _stored_run(path: Path) -> StoredRun:
    trouble: list[str] = []

    def readable() -> Iterator[Event | None]:
        for event in read_run(path):
            if isinstance(event, Noticed) and is_reading_problem(event, path):
                trouble.append(event.message)
                yield None
            else:
                yield event

    try:
        run = collect(readable())
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None
    run.trouble, run.file = trouble, path
    if UNREADABLE_CASES in run.cases:
        why = CaseError("broken_file", "the list of the run's cases cannot be read: the database is damaged")
        run.cases[UNREADABLE_CASES].take(CaseFinished(UNREADABLE_CASES, "error", why, 0.0))
    run.run_id = run.run_id or path.name
    return run


def case_events(file: Path, refs: Collection[CaseRef]) -> Iterator[Event]:
    """Yield a `RunStarted` for these cases, then their events.

    `file` names a stored run (`state_dir`), or is a result file of ADK or agents-cli. A case that the
    run does not have gets no event.

    Raises:
        OSError: the database or the file cannot be read, or there is no such run.
        ValueError: the file is not a result file, or a part of a case is lost.
    """
    if is_stored(file):
        yield from _stored_cases(file, refs)
    elif file.name.endswith(ENDING):
        yield from adk_case_events(file, refs)
    elif is_agents_cli_result(file):
        yield from agents_cli_events(file, refs)
    else:
        raise ValueError(f"{file} is not a result file")


def _stored_cases(path: Path, refs: Collection[CaseRef]) -> Iterator[Event]:
    stored = database(state_of(path))

    def ask(connection: Connection) -> tuple[RunRow, str | None, list[ExecutionRow]] | None:
        run = run_by_id(connection, path.name)
        if run is None:
            return None
        names = dict.fromkeys((ref.evalset_file, ref.eval_id) for ref in refs)
        rows = [row for name in names for row in executions_of_case(connection, *name, run.id)]
        return run, facts_of(connection, run.id), rows

    found = stored.read(ask)
    if found is None:
        raise FileNotFoundError(2, "no such run", str(path))
    run, facts, rows = found
    summary = Summary(run.run_id, started=run.started, scored_from=run.scored_from)
    try:
        read_facts(summary, facts or "{}")
        add_executions(summary, rows, path)
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {error!r}") from None
    known = {ref: one.planned for ref, one in summary.executions.items()}
    planned = tuple(known.get(ref) or PlannedCase(ref, None, "not known") for ref in refs)
    yield RunStarted(run.run_id, summary.root, run.started, planned, run.scored_from, until_sure=summary.until_sure)
    for row in (row for ref, row in zip(known, rows, strict=False) if ref in refs):
        events = stored.read(lambda connection: events_of_execution(connection, row.id, row.first)) or []  # noqa: B023
        if len(events) != row.events or not row.is_whole or not all(event.is_whole for event in events):
            raise ValueError(f"{path}: a part of {row.eval_id} is lost")
        yield from _parsed(path, events)


def _parsed(path: Path, events: Iterable[EventRow]) -> Iterator[Event]:
    for event in events:
        try:
            yield from_json(json.loads(event.data))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{event.number}: {error}") from None
