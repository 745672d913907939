"""The newest verdict of each case, over the runs that are kept: what somebody who comes back wants to see."""

import itertools
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.events import CaseRef
from workbench.history.ages import ages
from workbench.history.run_list import summary_for_opening
from workbench.history.state_dir import JOURNAL_FILE, runs_dir
from workbench.history.summary import Row, Summary, has_verdict
from workbench.history.summary_files import FILE_NAME as SUMMARY_NAME
from workbench.history.summary_files import read_newest

_LOOKED_AT = 100
"""Runs, the newest first, in which verdicts are looked for: of what lies further back only the history tells."""
_FEW = 50
"""Cases so few that it is quicker to search a summary for their ids than to read it."""


@dataclass(frozen=True, slots=True)
class LatestRun:
    """A run that has the newest verdict of some cases: `rows` are all repeats of each, `file` is its journal."""

    summary: Summary
    file: Path
    rows: tuple[Row, ...]

    @property
    def refs(self) -> tuple[CaseRef, ...]:
        """The executions."""
        return tuple(CaseRef(*row["ref"]) for row in self.rows)


def latest_runs(state: Path, cases: Mapping[str, Collection[str]]) -> Iterator[LatestRun]:
    """Yield the runs with the newest verdicts of `cases` (evalset relative to the root → ids), the newest run first.

    Each comes as soon as it is read, and nothing further back is read once every case has a verdict. What cannot be
    read is passed over. A case without a verdict in a run is looked for further back, unless its verdict may have been
    lost."""
    wanted = {file: set(ids) or {""} for file, ids in cases.items()}
    missing = {(file, eval_id) for file, ids in wanted.items() for eval_id in ids}
    seen: set[tuple[str, str]] = set()
    runs = runs_dir(state)
    others = {run["run_id"] for run in read_newest(runs) if not wanted.keys() & (run.get("files") or ())}
    for run_id in [run_id for run_id in _newest(runs) if run_id not in others][:_LOOKED_AT]:
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
            if file in wanted and (file, eval_id) not in seen:
                of_cases.setdefault((file, eval_id), []).append(row)
        # What is lost may have been verdicts: neither another repeat nor an earlier run, which may have passed, stands
        # in for them.
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
            return  # Nobody knows which cases it had.


def newest_options(state: Path, latest: Iterable[LatestRun] = ()) -> Mapping[str, Any]:
    """Return the options of the newest run that made a verdict with an agent, {} if they are not known. `latest` are
    runs that were read already."""
    read = {run.summary.run_id: run.summary for run in latest}
    for run_id in _newest(runs_dir(state))[:_LOOKED_AT]:
        try:
            summary = read[run_id] if run_id in read else summary_for_opening(state, run_id)[0]
        except (OSError, ValueError):
            continue
        if not summary.scored_from and any(map(has_verdict, summary.rows.values())):
            return summary.options
    return {}


def _may_have(folder: Path, missing: Collection[tuple[str, str]]) -> bool:
    """Whether a run may have one of these cases."""
    if len(missing) > _FEW:
        return True
    try:
        content = (folder / SUMMARY_NAME).read_bytes()
    except OSError:
        return True
    return any(json.dumps(eval_id).encode("ascii") in content for _, eval_id in missing)


def _newest(runs: Path) -> list[str]:
    """The ids of runs, the newest first. Ids begin with the time: not even the index has to be read."""
    try:
        with os.scandir(runs) as items:
            ids = [item.name for item in items if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    age = ages()
    return sorted(ids, key=lambda run_id: age(run_id, ""), reverse=True)
