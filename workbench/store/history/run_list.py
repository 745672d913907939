"""The list of all runs, newest first, with comparisons of runs and the deletion of old ones.

The list has our runs, runs of `adk eval`, `adk web` and `agents-cli eval grade`, and runs that cannot be read. Past
runs of the same cases are compared with one vote per case. Limits never remove the baseline, a run in progress, or a
run whose transcripts a remaining run has scored again.
"""

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from workbench.files.file_access import unreadable_text
from workbench.files.run_options import UsageFaultError
from workbench.files.settings import Limits
from workbench.store.database.database import Connection, database, run_path
from workbench.store.database.runs import (
    RunRow,
    all_runs,
    facts_of,
    shrink,
)
from workbench.store.database.runs import delete_runs as delete_stored_runs
from workbench.store.database.runs import find_run as run_by_id
from workbench.store.database.salvage import damaged_files
from workbench.store.database.values import drop_contents, get_value, set_value
from workbench.store.history.other_programs import foreign_runs
from workbench.store.history.reading import load_summary, read_summary
from workbench.store.history.run_names import BASELINE, ages, not_shown, started_at
from workbench.store.history.summary import ListedRun, listed_run
from workbench.store.rates import Case, are_enough, case_votes
from workbench.text.counting import counted

MOST = 60
"""Maximum number of runs shown. The newest ones are shown."""
_MAX_EXECUTIONS = 100_000
"""Maximum number of executions to read. A summary of 10,000 takes about 0.1 s."""
_MAX_RUNS = 20
"""Number of past runs whose summaries are read for a comparison, the newest first."""
ReadVotes: TypeAlias = Callable[[ListedRun], dict[Case, float]]
"""A function that returns the votes of a listed run, or {} if the run cannot be read."""


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
    """Return the workbench's own runs, newest first."""
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
        key = (run.adk, run.agents, run.decided)
        is_whole = run.total > 0 and run.ended and not (run.interrupted or run.injected or run.fork)
        runs.append(replace(run, better=run.votes - passed[key]) if is_whole and key in passed else run)
        if is_whole:
            passed[key] = run.votes
    runs.reverse()
    return runs


@dataclass(frozen=True, slots=True)
class RunRate:
    """Pass rate of one run.

    `passed` counts how many of the `total` cases passed. A case with repeats counts as the share that passed. `started`
    is UTC in ISO 8601.
    """

    run_id: str
    started: str
    passed: float
    total: int

    @property
    def rate(self) -> float:
        """Share of the cases that passed, from 0 to 1, or 0 if there are none."""
        return self.passed / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Trend:
    """Pass rates of the same cases over several runs, the oldest first.

    `wanted` is the number of requested cases. Each rate covers the requested cases that all these runs decided.
    `left_out` counts runs that decided too few of them.
    """

    rates: tuple[RunRate, ...] = ()
    wanted: int = 0
    left_out: int = 0

    @property
    def is_comparable(self) -> bool:
        """Whether there are at least two runs to compare."""
        return len(self.rates) > 1

    @property
    def cases(self) -> int:
        """Number of cases in each rate."""
        return self.rates[0].total if self.rates else 0


def votes_of_run(entry: ListedRun) -> dict[Case, float]:
    """Return the vote of each case that a run decided, {} if its summary cannot be read."""
    try:
        return case_votes(read_summary(entry.file)[0].executions.values())
    except (UsageFaultError, OSError, ValueError):
        return {}


def pass_rates(
    state: Path, wanted: Collection[Case], *, until: str = "", most: int = MOST, read: ReadVotes = votes_of_run
) -> Trend:
    """Return the trend of these cases over the newest runs, up to the run that started at `until`.

    Start at the newest run and skip each one that leaves fewer than half of the wanted cases in common: a rerun of 3
    cases says nothing about 60. Also skip interrupted and unreadable runs. Reads summaries, so call it in a thread.
    """
    shared, files = set(wanted), {case[0] for case in wanted}
    found: list[tuple[ListedRun, dict[Case, float]]] = []
    left_out = executions = 0
    for entry in list_runs(state).runs:
        if len(found) == most or executions > _MAX_EXECUTIONS:
            break
        whole = entry.seconds is not None and not entry.interrupted
        if not whole or (until and entry.started > until) or files.isdisjoint(entry.files):
            continue
        executions += entry.total
        votes = read(entry)
        both = shared & votes.keys()
        if are_enough(both, wanted):
            shared = both
            found.append((entry, votes))
        else:
            left_out += bool(votes.keys() & set(wanted))
    rates = (
        RunRate(entry.run_id, entry.started, sum(votes[case] for case in shared), len(shared))
        for entry, votes in reversed(found)
    )
    return Trend(tuple(rates), len(wanted), left_out)


def runs_by_question(
    run: ListedRun, others: Sequence[ListedRun], pinned: str | None, today: date
) -> list[tuple[str, ListedRun]]:
    """Return the past runs that answer common questions, each with its question, such as `since yesterday`.

    A run of today has changed since yesterday if it differs from the last comparable run of an earlier day. It has
    changed since the last commit if it differs from the last comparable run of the same commit without other changes.
    `pinned` is the baseline. Reads summaries, so call it in a thread.
    """
    baseline = next((other for other in others if other.run_id == pinned and not other.adk), None)
    earlier = [other for other in others if (day := _day(other)) is not None and day < today]
    committed = [other for other in others if run.commit and other.commit == run.commit and not other.dirty]
    found = [
        ("against the baseline", baseline),
        ("since the run before", last_comparable(run, others)),
        ("since yesterday", last_comparable(run, earlier) if _day(run) == today else None),
        ("since the last commit", last_comparable(run, committed)),
    ]
    return [(question, other) for question, other in found if other is not None]


def _day(run: ListedRun) -> date | None:
    try:
        return datetime.fromisoformat(run.started).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None


def last_comparable(run: ListedRun, others: Sequence[ListedRun]) -> ListedRun | None:
    """Return the newest past run that decided at least half of the cases of `run`.

    Fall back to the newest past run that decided any of them, else return None. Searches 20 past runs and reads their
    summaries, so call it in a thread.
    """
    wanted = votes_of_run(run).keys()
    past = [other for other in others if other.path != run.path and other.started <= run.started]
    fallback: ListedRun | None = None
    for other in past[:_MAX_RUNS]:
        shared = wanted & votes_of_run(other).keys()
        if are_enough(shared, wanted):
            return other
        if shared and fallback is None:
            fallback = other
    return fallback


_SPARE = 20
"""The limit may be exceeded by one part in 20 before anything is deleted."""
_MEGABYTE = 1024 * 1024
_DAY = len("2026-11-21")
_RECENT = 3600.0
"""Contents used in the last hour stay: a run in progress may not have named them yet."""


def pin(state: Path, run_id: str) -> None:
    """Make a run the baseline, in place of any other.

    Raises:
        OSError: the database cannot be written, or another workbench has deleted the run.
    """

    def change(connection: Connection) -> None:
        if run_by_id(connection, run_id) is None:
            raise FileNotFoundError(2, "no such run", str(run_path(state, run_id)))
        set_value(connection, BASELINE, run_id)

    database(state).write(change)


def unpin(state: Path) -> None:
    """Clear the baseline. Raises OSError."""
    if database(state).exists:
        database(state).write(lambda connection: set_value(connection, BASELINE, None))


def delete_runs(state: Path, run_ids: Iterable[str]) -> list[str]:
    """Delete runs that are not being written, and file contents that no other run uses. Return the deleted IDs.

    Raises:
        OSError: the database cannot be written. Nothing was deleted.
    """
    wanted = list(run_ids)
    return _delete(state, lambda connection: wanted) if wanted else []


def deletable_runs(state: Path, keep: int) -> list[str]:
    """Return the IDs of runs beyond the newest `keep` that may be deleted."""

    def ask(connection: Connection) -> list[str]:
        runs = _newest_first(connection)
        return _deletable(connection, runs[:keep], runs[keep:])

    return database(state).read(ask) or []


def tidy(state: Path, limits: Limits) -> list[str]:
    """Delete the oldest runs beyond `limits`, and return their IDs.

    The limits can be slightly exceeded, because otherwise every run would lead to deletions. Call it in a thread.

    Raises:
        OSError: the database cannot be read or written.
    """
    if not database(state).read(lambda connection: _exceeds(_newest_first(connection), limits)):
        return []

    def choose(connection: Connection) -> list[str]:
        runs = _newest_first(connection)
        return _deletable(connection, *_split(runs, limits)) if _exceeds(runs, limits) else []

    return _delete(state, choose)


def _exceeds(runs: Sequence[RunRow], limits: Limits) -> bool:
    most = limits.megabytes * _MEGABYTE
    if limits.runs and len(runs) > limits.runs + limits.runs // _SPARE:
        return True
    if most and sum(run.bytes for run in runs) > most + most // _SPARE:
        return True
    return bool(limits.days and runs and min(run.run_id for run in runs)[:_DAY] < _day_before(limits.days + 1))


def _split(runs: Sequence[RunRow], limits: Limits) -> tuple[list[RunRow], list[RunRow]]:
    """Return the runs within the limits and those beyond. The newest run always stays."""
    stay: list[RunRow] = []
    go: list[RunRow] = []
    size, oldest = 0, _day_before(limits.days) if limits.days else ""
    for run in runs:
        size += run.bytes if limits.megabytes else 0
        beyond = (
            (limits.runs and len(stay) >= limits.runs)
            or (limits.megabytes and size > limits.megabytes * _MEGABYTE)
            or run.run_id[:_DAY] < oldest
        )
        (go if beyond and stay else stay).append(run)
    return stay, go


def _deletable(connection: Connection, stay: Sequence[RunRow], go: Sequence[RunRow]) -> list[str]:
    needed = {name for run in stay for name in run.scored_from.split(", ")} | {get_value(connection, BASELINE)}
    return [run.run_id for run in go if run.run_id not in needed and not run.is_being_written]


def _newest_first(connection: Connection) -> list[RunRow]:
    age = ages()
    return sorted(all_runs(connection), key=lambda run: age(run.run_id, run.started), reverse=True)


def _delete(state: Path, choose: Callable[[Connection], Iterable[str]]) -> list[str]:
    """Delete the runs that `choose` returns in one transaction, and free their space. Return the deleted IDs.

    Another workbench may have deleted some of them.
    """

    def change(connection: Connection) -> list[str]:
        chosen = {run.id: run.run_id for name in choose(connection) if (run := run_by_id(connection, name)) is not None}
        gone = delete_stored_runs(connection, chosen)
        if gone:
            _drop_unused(connection)
        return [chosen[number] for number in gone]

    deleted = database(state).write(change)
    if deleted:
        database(state).write(shrink)
    return deleted


def _drop_unused(connection: Connection) -> None:
    """Delete file contents that no run uses. If it is unknown what a damaged run uses, nothing is deleted."""
    used: set[str] = set()
    for run in all_runs(connection):
        facts = facts_of(connection, run.id)
        try:
            sources = json.loads(facts or "")["sources"]
        except (ValueError, KeyError, TypeError):
            if run.events:
                return
            continue
        for files in sources.values() if isinstance(sources, dict) else ():
            used.update(digest for digest in files.values() if isinstance(digest, str))
    drop_contents(connection, used, time.time() - _RECENT)


def _day_before(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"
