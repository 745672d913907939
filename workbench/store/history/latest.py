"""Stored verdicts of cases: the newest one of each case, and those of one case in all runs."""

import contextlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.events.events import CaseName, CaseRef
from workbench.store.database.database import Connection, database
from workbench.store.database.runs import (
    ExecutionRow,
    RunRow,
    all_runs,
    executions_of_case,
    run_starts,
    runs_with_cases,
)
from workbench.store.execution import Execution
from workbench.store.history.execution_rows import add_executions
from workbench.store.history.state_dir import ages, run_path
from workbench.store.history.stored_runs import load_summary
from workbench.store.history.summary import Summary

_MAX_RUNS = 100
"""Number of newest runs searched for verdicts. Older verdicts are found in the history only."""
_FEW = 50
"""Number of cases for which the database is asked which runs have them."""


@dataclass(frozen=True, slots=True)
class LatestRun:
    """A run with the newest verdict of some cases. `executions` are all their repeats, `file` names the run."""

    summary: Summary
    file: Path
    executions: tuple[Execution, ...]

    @property
    def refs(self) -> tuple[CaseRef, ...]:
        """References of the executions."""
        return tuple(one.ref for one in self.executions)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that decided a case. `executions` are those with a verdict, in the order of repeats."""

    run_id: str
    started: str
    executions: tuple[Execution, ...]


def latest_runs(
    state: Path, cases: Mapping[str, Collection[str]], before: str = "", most: int = _MAX_RUNS
) -> Iterator[LatestRun]:
    """Yield the runs with the newest verdicts of `cases`, newest first, but only `most` runs are searched.

    `cases` maps evalset paths relative to the root to case IDs. With `before`, only runs older than the run with this
    ID count. Runs are read one by one, until every case has a verdict. Unreadable runs are skipped. A case without a
    verdict in a run is searched in older runs, unless its verdict may have been lost.
    """
    wanted = {file: set(ids) or {""} for file, ids in cases.items()}
    missing = {(file, eval_id) for file, ids in wanted.items() for eval_id in ids}
    seen: set[CaseName] = set()
    for run_id in _candidates(state, wanted, missing, before)[:most]:
        if not missing:
            return
        try:
            summary, damaged = load_summary(state, run_id)
        except (OSError, ValueError):
            continue
        of_cases: dict[CaseName, list[Execution]] = {}
        for one in summary.executions.values():
            name = one.ref.name
            if name[0] in wanted and name not in seen and not one.apart:
                of_cases.setdefault(name, []).append(one)
        # The lost lines may contain verdicts. Another repeat or an older run may have passed, so neither replaces them.
        lost = {name for name, every in of_cases.items() if damaged and not all(one.finished for one in every)}
        found = {
            name: ended
            for name, every in of_cases.items()
            if name not in lost and (ended := [one for one in every if one.decides_case])
        }
        if found:
            executions = tuple(itertools.chain.from_iterable(found.values()))
            yield LatestRun(summary, run_path(state, run_id), executions)
        seen.update(found, lost)
        missing -= seen
        if damaged and not summary.started:
            return  # This run may have had any case.


def past_runs(state: Path, ref: CaseRef, most: int) -> tuple[PastRun, ...]:
    """Return the newest `most` runs with a verdict for the case of `ref`, newest first. Call it in a thread.

    The other cases of the runs are not read. Damaged executions are left out.

    Raises:
        OSError: the database cannot be read.
    """

    def ask(connection: Connection) -> tuple[list[ExecutionRow], dict[int, tuple[str, str]]]:
        rows = executions_of_case(connection, ref.evalset_file, ref.eval_id)
        return rows, run_starts(connection, {row.run for row in rows})

    rows, starts = database(state).read(ask) or ([], {})
    of_run: dict[int, list[ExecutionRow]] = {}
    for row in rows:
        if row.is_whole and row.run in starts:
            of_run.setdefault(row.run, []).append(row)
    age = ages()
    newest = sorted(of_run, key=lambda run: age(*starts[run]), reverse=True)
    found = (PastRun(*starts[run], _decided(state, starts[run][0], of_run[run], ref)) for run in newest)
    return tuple(itertools.islice((run for run in found if run.executions), most))


def _decided(state: Path, run_id: str, rows: Iterable[ExecutionRow], ref: CaseRef) -> tuple[Execution, ...]:
    """Return the executions in a run that decided the case of `ref` with its agent."""
    summary = Summary(run_id)
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        add_executions(summary, rows, run_path(state, run_id))
    return tuple(
        one for one in summary.executions.values() if one.decides_case and replace(one.ref, repeat=ref.repeat) == ref
    )


def newest_options(state: Path, latest: Iterable[LatestRun] = ()) -> Mapping[str, Any]:
    """Return the options of the newest run in which an agent got a verdict, or {} if unknown.

    `latest` are runs that were read already.
    """
    read = {run.summary.run_id: run.summary for run in latest}
    for run in _newest(state)[:_MAX_RUNS]:
        try:
            summary = read[run.run_id] if run.run_id in read else load_summary(state, run.run_id)[0]
        except (OSError, ValueError):
            continue
        if not summary.scored_from and any(one.decides_case for one in summary.executions.values()):
            return summary.options
    return {}


def _candidates(state: Path, files: Collection[str], cases: Collection[tuple[str, str]], before: str) -> list[str]:
    """Return the IDs of runs that may have one of these cases, newest first; with `before`, only older ones."""
    newest = _newest(state)
    if before:
        place = next((place for place, run in enumerate(newest) if run.run_id == before), len(newest))
        newest = newest[place + 1 :]
    having = _with_few(state, cases)
    return [
        run.run_id
        for run in newest
        if _has_file(run, files) and (having is None or run.id in having or not run.is_whole or not run.executions)
    ]


def _newest(state: Path) -> list[RunRow]:
    """Return all runs, newest first; none if the database cannot be read."""
    try:
        found = database(state).read(all_runs) or []
    except OSError:
        return []
    age = ages()
    return sorted(found, key=lambda run: age(run.run_id, ""), reverse=True)


def _has_file(run: RunRow, files: Collection[str]) -> bool:
    """Return whether a run may have a case of one of these evalsets. A damaged run may have any case."""
    if run.listed is None or not run.is_whole:
        return True
    try:
        return not set(json.loads(run.listed)["files"]).isdisjoint(files)
    except (ValueError, KeyError, TypeError):
        return True


def _with_few(state: Path, missing: Collection[tuple[str, str]]) -> frozenset[int] | None:
    """Return the numbers of runs that have one of these cases, or None if there are too many cases to ask."""
    if len(missing) > _FEW:
        return None
    try:
        return frozenset(database(state).read(lambda connection: runs_with_cases(connection, missing)) or ())
    except OSError:
        return frozenset()
