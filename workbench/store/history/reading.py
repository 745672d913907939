"""Readers of runs, from the database, a JSON report, or a result file of ADK or agents-cli.

A run is read as its summary, as all of its events, or as transcripts to score again. Single cases can be read, too.
"""

import contextlib
import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from operator import attrgetter
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
from workbench.store.database.database import Connection, Database, database, is_stored, run_path, state_of
from workbench.store.database.runs import (
    ExecutionRow,
    RunRow,
    events_of_execution,
    executions_of,
    executions_of_case,
    facts_of,
    inputs_of,
    replace_projection,
)
from workbench.store.database.runs import find_run as run_by_id
from workbench.store.history.execution_rows import RunRows, add_executions, facts_text, read_facts
from workbench.store.history.other_programs import (
    ENDING,
    adk_case_events,
    adk_summary,
    agents_cli_events,
    agents_cli_summary,
    is_agents_cli_result,
)
from workbench.store.history.run_names import find_run
from workbench.store.history.stored_events import (
    UNREADABLE_CASES,
    is_reading_problem,
    read_report,
    read_run,
    report_events,
)
from workbench.store.history.summary import RunBundles, Summary, summarize_events
from workbench.store.transcripts import StoredRun, collect

END_IS_LOST = "the end of this case cannot be read: the database is damaged"


def open_summary(name: str, state: Path, folder: Path) -> tuple[Summary, list[str]]:
    """Return the summary of the run named `name`, and messages about unreadable parts. Files are relative to `folder`.

    Raises:
        UsageFaultError: There is no such run, or none of it can be read.
    """
    try:
        return read_summary(find_run(name, state, folder))
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def read_summary(path: Path) -> tuple[Summary, list[str]]:
    """Return the summary of a stored run or of a file, and messages about unreadable parts.

    A report holds less than the database: of the criteria only thresholds, and nothing about the agents' files.

    Raises:
        UsageFaultError, OSError, ValueError: There is no such run, or none of it can be read.
    """
    if is_stored(path):
        return load_summary(state_of(path), path.name)
    if path.name.endswith(ENDING):
        return adk_summary(path), []
    if is_agents_cli_result(path):
        return agents_cli_summary(path), []
    events = list(report_events(path))
    summary = summarize_events(events, path)
    for execution in summary.executions.values():
        execution.given = tuple(one for one in execution.given if "expected" in summary.bundles[one].inputs)
    return summary, [event.message for event in events if isinstance(event, Noticed)]


def read_run_events(name: str, state: Path, folder: Path) -> list[Event]:
    """Return all events of the run named `name`. A `Noticed` names each part that cannot be read.

    Files are relative to `folder`.

    Raises:
        UsageFaultError: There is no such run, or none of it can be read.
    """
    try:
        path = find_run(name, state, folder)
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
    """Return the events of a run, and an end for each case whose end is missing.

    If the run is complete, that end was lost. If the run has no end, the case is cancelled. Nothing is added to an
    interrupted run.
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
    return CaseError("cancelled", f"the run was killed {when}, or is still in progress")


def open_run(name: str, state: Path, folder: Path) -> StoredRun:
    """Return the run named `name`: a run of the state folder `state`, or a file relative to `folder`.

    Parts that cannot be read are named in `trouble`.

    Raises:
        UsageFaultError: There is no such run, or none of it can be read.
    """
    path = find_run(name, state, folder)
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
    """Yield a `RunStarted` for these cases, then their events. A case that the run does not have gets no event.

    `file` names a stored run (`run_path`), or is a result file of ADK or agents-cli.

    Raises:
        OSError: The database or the file cannot be read, or there is no such run.
        ValueError: The file is not a result file, or a part of a case is lost.
    """
    if is_stored(file):
        yield from _stored_cases(file, refs)
    elif file.name.endswith(ENDING):
        yield from adk_case_events(file, refs)
    elif is_agents_cli_result(file):
        yield from agents_cli_events(file, refs)
    else:
        raise ValueError(f"{file} is not a stored run or a result file of ADK or agents-cli")


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
        row_of = dict(zip(add_executions(summary, rows, path), rows, strict=True))
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {error!r}") from None
    known = {ref: one.planned for ref, one in summary.executions.items()}
    planned = tuple(known.get(ref) or PlannedCase(ref, None, "not known") for ref in refs)
    yield RunStarted(run.run_id, summary.root, run.started, planned, run.scored_from, until_sure=summary.until_sure)
    for ref, row in row_of.items():
        if ref in refs:
            yield from _stored_case(stored, path, ref, row)


def _stored_case(stored: Database, path: Path, ref: CaseRef, row: ExecutionRow) -> Iterator[Event]:
    rows = stored.read(partial(events_of_execution, execution=row.id, first=row.first)) or []
    if len(rows) != row.events or not row.is_whole or not all(each.is_whole for each in rows):
        raise ValueError(f"{path}: a part of {row.eval_id} is lost")
    for each in rows:
        try:
            event = from_json(json.loads(each.data))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: event {each.number} is damaged: {error}") from None
        if getattr(event, "case", ref) != ref:
            raise ValueError(f"{path}: event {each.number} belongs to another case than {row.eval_id}")
        yield event


_TEXTS_AT_ONCE = 200
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""Errors that malformed rows and facts raise."""


def load_summary(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the summary of a run, and messages about parts that could not be read. Call it in a thread.

    Damaged and missing rows are rebuilt from the run's events.

    Raises:
        FileNotFoundError: There is no such run.
        OSError: The database cannot be read.
    """
    path, stored = run_path(state, run_id), database(state)
    summary = stored.read(lambda connection: _whole_summary(connection, stored, path))
    if summary is not None:
        return summary, summary.damage
    read = stored.read(lambda connection: _readable_rows(connection, run_id))
    if read is None:
        raise FileNotFoundError(2, "no such run", str(path))
    return _repaired(stored, path, *read)


def _whole_summary(connection: Connection, stored: Database, path: Path) -> Summary | None:
    """Return the summary of a run, or None if there is no such run or any of its rows is damaged or missing."""
    row = run_by_id(connection, path.name)
    facts = None if row is None else facts_of(connection, row.id)
    if row is None or facts is None or not row.is_whole:
        return None
    with contextlib.suppress(*_UNREADABLE):
        summary = _summary(row, RunBundles(StoredTexts(stored, row.id)))
        read_facts(summary, facts)
        whole = itertools.takewhile(attrgetter("is_whole"), executions_of(connection, row.id))
        add_executions(summary, whole, path)
        return summary if len(summary.executions) == row.executions else None
    return None


def _readable_rows(connection: Connection, run_id: str) -> tuple[RunRow, list[ExecutionRow], str | None] | None:
    row = run_by_id(connection, run_id)
    if row is None:
        return None
    rows = [each for each in executions_of(connection, row.id) if each.is_whole and _is_readable(each)]
    return row, rows, facts_of(connection, row.id)


def _summary(row: RunRow, bundles: RunBundles) -> Summary:
    return Summary(
        row.run_id,
        started=row.started,
        scored_from=row.scored_from,
        seconds=row.seconds,
        interrupted=bool(row.interrupted),
        bundles=bundles,
    )


def _is_readable(row: ExecutionRow) -> bool:
    with contextlib.suppress(*_UNREADABLE):
        add_executions(Summary(), [row], Path())
        return True
    return False


class StoredTexts(dict[int, str]):
    """The bundles of inputs of a run as JSON text, read in batches when they are needed."""

    def __init__(self, stored: Database, run: int) -> None:
        super().__init__()
        self._stored, self._run = stored, run

    def __missing__(self, number: int) -> str:
        piece = range(number, number + _TEXTS_AT_ONCE)
        with contextlib.suppress(OSError):
            self.update(self._stored.read(lambda connection: inputs_of(connection, self._run, piece)) or {})
        if number not in self:
            raise KeyError(number)
        return self[number]


def _repaired(
    stored: Database, path: Path, row: RunRow, whole: Sequence[ExecutionRow], facts: str | None
) -> tuple[Summary, list[str]]:
    """Rebuild the damaged rows of a run from its events, and store them unless the run is still being written.

    Intact rows stay, even if their events are lost.
    """
    again = RunRows(row.id, path)
    damage, last = again.replay()
    known = (stored.read(lambda connection: inputs_of(connection, row.id)) or {}) if whole else {}
    # The bundles of rows that are made again come after those of rows that stay.
    first = max(known, default=-1) + 1
    texts = [known.get(number, "[null, {}]") for number in range(first)] + again.builder.texts
    if not row.is_whole:
        made = again.builder.summary
        row = row._replace(
            started=made.started,
            seconds=made.seconds,
            interrupted=int(made.interrupted),
            scored_from=made.scored_from,
            events=0,
        )
    summary = _summary(row, RunBundles(texts))
    try:
        read_facts(summary, facts or "")
    except _UNREADABLE:
        read_facts(summary, facts_text(again.builder.summary))
    found = {each.id: each.sealed() for each in again.rows(again.places.values(), first)}
    found |= {each.id: each for each in whole}
    rows = [found[key] for key in sorted(found)]
    add_executions(summary, rows, path)
    summary.damage = list(dict.fromkeys((*summary.damage, *damage)))
    if not row.is_being_written:
        fixed = row._replace(events=max(last, row.events), executions=len(rows), listed=None)
        text, seen = facts_text(summary), row.seen or 0.0
        with contextlib.suppress(OSError):
            stored.write(lambda connection: replace_projection(connection, fixed, text, rows, texts, seen))
    return summary, summary.damage
