"""The newest verdict of each case over all stored runs, for a newly opened workbench."""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.database.database import database
from workbench.database.runs import RunRow, all_runs, runs_with_cases
from workbench.events import CaseRef
from workbench.history.ages import ages
from workbench.history.state_dir import run_path
from workbench.history.stored_runs import load_summary
from workbench.history.summary import Row, Summary, has_verdict, is_apart

_MAX_RUNS = 100
"""Number of newest runs searched for verdicts. Older verdicts are found in the history only."""
_FEW = 50
"""Number of cases for which the database is asked which runs have them."""


@dataclass(frozen=True, slots=True)
class LatestRun:
    """A run with the newest verdict of some cases. `rows` are all their repeats, `file` names the run."""

    summary: Summary
    file: Path
    rows: tuple[Row, ...]

    @property
    def refs(self) -> tuple[CaseRef, ...]:
        """References of the executions."""
        return tuple(CaseRef(*row["ref"]) for row in self.rows)


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
    seen: set[tuple[str, str]] = set()
    for run_id in _candidates(state, wanted, missing, before)[:most]:
        if not missing:
            return
        try:
            summary, damaged = load_summary(state, run_id)
        except (OSError, ValueError):
            continue
        of_cases: dict[tuple[str, str], list[Row]] = {}
        for row in summary.rows.values():
            _, file, _, eval_id, _ = row["ref"]
            if file in wanted and (file, eval_id) not in seen and not is_apart(row):
                of_cases.setdefault((file, eval_id), []).append(row)
        # The lost lines may contain verdicts. Another repeat or an older run may have passed, so neither replaces them.
        lost = {name for name, rows in of_cases.items() if damaged and any(row["status"] is None for row in rows)}
        found = {
            name: ended
            for name, rows in of_cases.items()
            if name not in lost and (ended := [row for row in rows if has_verdict(row)])
        }
        if found:
            rows = tuple(itertools.chain.from_iterable(found.values()))
            yield LatestRun(summary, run_path(state, run_id), rows)
        seen.update(found, lost)
        missing -= seen
        if damaged and not summary.started:
            return  # This run may have had any case.


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
        if not summary.scored_from and any(map(has_verdict, summary.rows.values())):
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
