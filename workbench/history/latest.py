"""The newest verdict of each case over all stored runs, for a newly opened workbench."""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.events import CaseRef
from workbench.history.ages import ages
from workbench.history.run_list import summary_for_opening
from workbench.history.state_dir import JOURNAL_FILE, runs_dir
from workbench.history.summary import Row, Summary, has_verdict, is_apart
from workbench.history.summary_files import FILE_NAME as SUMMARY_NAME
from workbench.history.summary_files import read_newest
from workbench.state_folder import read_stored, stored_folders

_MAX_RUNS = 100
"""Number of newest runs searched for verdicts. Older verdicts are found in the history only."""
_FEW = 50
"""Up to this many cases, searching a summary's text for their IDs is faster than parsing it."""


@dataclass(frozen=True, slots=True)
class LatestRun:
    """A run with the newest verdict of some cases. `rows` are all their repeats, `file` is the journal."""

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
    runs = runs_dir(state)
    others = {run["run_id"] for run in read_newest(runs) if not wanted.keys() & (run.get("files") or ())}
    newest = _newest(runs)
    if before:
        newest = newest[newest.index(before) + 1 :] if before in newest else []
    for run_id in [run_id for run_id in newest if run_id not in others][:most]:
        if not missing:
            return
        if not _may_have(runs_dir(state) / run_id, missing):
            continue
        try:
            summary, damaged = summary_for_opening(state, run_id)
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
            yield LatestRun(summary, runs_dir(state) / run_id / JOURNAL_FILE, rows)
        seen.update(found, lost)
        missing -= seen
        if damaged and not summary.started:
            return  # This run may have had any case.


def newest_options(state: Path, latest: Iterable[LatestRun] = ()) -> Mapping[str, Any]:
    """Return the options of the newest run in which an agent got a verdict, or {} if unknown.

    `latest` are runs that were read already.
    """
    read = {run.summary.run_id: run.summary for run in latest}
    for run_id in _newest(runs_dir(state))[:_MAX_RUNS]:
        try:
            summary = read[run_id] if run_id in read else summary_for_opening(state, run_id)[0]
        except (OSError, ValueError):
            continue
        if not summary.scored_from and any(map(has_verdict, summary.rows.values())):
            return summary.options
    return {}


def _may_have(folder: Path, missing: Collection[tuple[str, str]]) -> bool:
    """Return whether a run may have one of these cases."""
    if len(missing) > _FEW:
        return True
    try:
        content = read_stored(folder / SUMMARY_NAME)
    except OSError:
        return True
    return any(json.dumps(eval_id).encode("ascii") in content for _, eval_id in missing)


def _newest(runs: Path) -> list[str]:
    """Return the IDs of runs, newest first, without reading the index: an ID begins with the time."""
    age = ages()
    return sorted(stored_folders(runs), key=lambda run_id: age(run_id, ""), reverse=True)
