"""Events of single cases of a stored run, read without loading the other cases."""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from workbench.database.database import Connection, database
from workbench.database.runs import (
    EventRow,
    ExecutionRow,
    RunRow,
    events_of_execution,
    executions_of_case,
    facts_of,
    find_run,
)
from workbench.event_json import from_json, sentences
from workbench.events import CaseRef, Event, PlannedCase, RunStarted
from workbench.history.adk_events import adk_case_events
from workbench.history.adk_results import ENDING
from workbench.history.agents_cli_results import agents_cli_events, is_agents_cli_result
from workbench.history.execution_rows import read_facts, rows_from
from workbench.history.lost_turns import add_lost_turn_starts
from workbench.history.state_dir import is_stored, state_of
from workbench.history.summary import Row, Summary


def case_events(file: Path, refs: Collection[CaseRef]) -> Iterator[Event]:
    """Yield a `RunStarted` for these cases, then their events.

    `file` names a stored run (`workbench.history.state_dir`), or is a result file of ADK or agents-cli. A case that the
    run does not have gets no event.

    Raises:
        OSError: the database or the file cannot be read, or there is no such run.
        ValueError: the file is not a result file, or a part of a case is lost.
    """
    if is_stored(file):
        yield from _stored(file, refs)
    elif file.name.endswith(ENDING):
        yield from adk_case_events(file, refs)
    elif is_agents_cli_result(file):
        yield from agents_cli_events(file, refs)
    else:
        raise ValueError(f"{file} is not a result file")


def _stored(path: Path, refs: Collection[CaseRef]) -> Iterator[Event]:
    stored = database(state_of(path))

    def ask(connection: Connection) -> tuple[RunRow, str | None, list[ExecutionRow]] | None:
        run = find_run(connection, path.name)
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
        rows_from(summary, rows)
    except (TypeError, KeyError, IndexError, RecursionError) as error:
        raise ValueError(f"{path}: {error!r}") from None
    wanted = {_key(ref): ref for ref in refs}
    executions = {key: row for key, row in zip(summary.rows, rows, strict=False) if key in wanted}
    planned = tuple(_planned(ref, summary.rows.get(key), summary) for key, ref in wanted.items())
    rate = summary.until_sure
    yield RunStarted(run.run_id, summary.root, run.started, planned, run.scored_from, until_sure=rate)
    for row in executions.values():
        events = stored.read(lambda connection: events_of_execution(connection, row.id, row.first)) or []  # noqa: B023
        if len(events) != row.events or not row.is_whole or not all(event.is_whole for event in events):
            raise ValueError(f"{path}: a part of {row.eval_id} is lost")
        yield from add_lost_turn_starts(_parsed(path, events))


def _parsed(path: Path, events: Iterable[EventRow]) -> Iterator[Event]:
    for event in events:
        try:
            yield from_json(json.loads(event.data))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{event.number}: {error}") from None


def _key(ref: CaseRef) -> tuple[object, ...]:
    return ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat


def _planned(ref: CaseRef, row: Row | None, summary: Summary) -> PlannedCase:
    """Return how a case was announced, as far as that is known."""
    if row is None or row["plan"] is None or row["plan"] >= len(summary.plans):
        return PlannedCase(ref, None, "not known")
    config, source, changed, rule = summary.plans[row["plan"]]
    return PlannedCase(ref, config, source or "not known", sentences(changed), rule)
