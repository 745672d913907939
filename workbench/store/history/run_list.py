"""The list of all runs, newest first: ours, those of ADK and agents-cli, and runs that cannot be read."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.files.file_access import unreadable_text
from workbench.store.database.database import database, run_path
from workbench.store.database.runs import (
    RunRow,
    all_runs,
)
from workbench.store.database.salvage import damaged_files
from workbench.store.history.other_programs import foreign_runs
from workbench.store.history.reading import load_summary
from workbench.store.history.run_names import ages, not_shown, started_at
from workbench.store.history.summary import ListedRun, listed_run
from workbench.text.counting import counted


@dataclass
class RunList:
    """The runs of a state folder, the newest first.

    `trouble` has messages about runs that cannot be listed or only in part. `unreadable` maps the IDs of runs that
    cannot be listed to the reason.
    """

    runs: list[ListedRun] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def list_runs(state: Path) -> RunList:
    """Return all runs of a state folder. Call it in a thread."""
    found = RunList()
    try:
        rows = database(state).read(all_runs) or []
    except OSError as error:
        found.trouble.append(unreadable_text(error))
        return found
    aside = damaged_files(database(state).path)
    found.trouble += [f"{file} was damaged and set aside. Its readable runs are shown" for file in aside]
    for row in rows:
        entry = _entry(state, row, found)
        if entry is not None:
            found.runs.append(entry)
    age = ages()
    found.runs.sort(key=lambda entry: age(entry.run_id, entry.started), reverse=True)
    return found


def _entry(state: Path, row: RunRow, found: RunList) -> ListedRun | None:
    if row.listed is not None and row.is_whole:
        with contextlib.suppress(ValueError, TypeError):
            return ListedRun.from_json(row.listed, str(run_path(state, row.run_id)))
    try:
        summary, trouble = load_summary(state, row.run_id)
    except (OSError, ValueError) as error:
        found.unreadable[row.run_id] = unreadable_text(error)
        found.trouble.append(found.unreadable[row.run_id])
        return None
    if not summary.executions and not trouble:
        return None  # Another program is about to begin it, or was killed before it did.
    found.trouble += trouble[:1]
    if len(trouble) > 1:
        found.trouble.append(f"and {counted(len(trouble) - 1, 'more event')} of this run")
    return listed_run(summary, row.run_id, str(run_path(state, row.run_id)))


def newest_runs(state: Path) -> list[ListedRun]:
    """Return the workbench's own runs, newest first, each compared with the previous run of the same cases."""
    return _compared(list_runs(state).runs)


def list_all_runs(state: Path, root: Path, agents: Iterable[Path]) -> tuple[list[ListedRun], list[str]]:
    """Return the runs of the workbench and of other programs, newest first, and messages about runs not shown in full.

    Reads the database and every result file of other programs.
    """
    found = list_runs(state)
    entries, trouble = foreign_runs(list(agents), root, {run.run_id for run in found.runs})
    unreadable = (
        ListedRun(run_id, str(run_path(state, run_id)), started_at(run_id), trouble=why)
        for run_id, why in found.unreadable.items()
    )
    age = ages()
    runs = sorted([*found.runs, *entries, *unreadable], key=lambda run: age(run.run_id, run.started), reverse=True)
    partly = [line for line in found.trouble if line not in found.unreadable.values()]
    return _compared(runs), [*partly, *trouble, *not_shown(state)]


def _compared(listed: Sequence[ListedRun]) -> list[ListedRun]:
    """Return the runs, each compared with the previous run of the same cases."""
    passed: dict[tuple[Any, ...], float] = {}
    runs: list[ListedRun] = []
    for run in reversed(listed):
        # Only runs that decided the same cases are compared, one vote per case.
        key = (run.is_foreign, run.agents, run.decided)
        is_whole = run.total > 0 and run.ended and not (run.interrupted or run.injected or run.fork)
        runs.append(replace(run, better=run.votes - passed[key]) if is_whole and key in passed else run)
        if is_whole:
            passed[key] = run.votes
    runs.reverse()
    return runs
