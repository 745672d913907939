"""Stored verdicts: the newest one of each case, all verdicts of one case, and verdicts of runs in progress.

Runs that other programs make in the same state folder are followed while they are written.
"""

import contextlib
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from workbench.events.events import CaseName, CaseRef
from workbench.store.database.database import Connection, database, run_path
from workbench.store.database.runs import (
    ExecutionRow,
    RunRow,
    all_runs,
    executions_of,
    executions_of_case,
    facts_of,
    run_starts,
    runs_with_cases,
)
from workbench.store.execution import Execution
from workbench.store.history.execution_rows import add_executions, read_facts, resumed_of
from workbench.store.history.reading import StoredTexts, load_summary
from workbench.store.history.run_names import ages
from workbench.store.history.summary import RunBundles, Summary

_MAX_RUNS = 100
"""Number of newest runs searched for verdicts. Older verdicts are found in the history only."""
_FEW = 50
"""Maximum number of cases for which a query finds the runs that have them. For more, all runs are searched."""


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
    """Yield the runs with the newest verdicts of `cases`, newest first. At most `most` runs are searched.

    `cases` maps evalset paths relative to the root to case IDs. With `before`, only runs older than the run with this
    ID count. Runs are read one by one, until every case has a verdict. Unreadable runs are skipped. A case without a
    verdict in a run is searched in older runs, unless its verdict may have been lost. What a resumed run decided
    afterwards is as new as the resume.
    """
    wanted = {file: set(ids) or {""} for file, ids in cases.items()}
    missing = {(file, eval_id) for file, ids in wanted.items() for eval_id in ids}
    candidates = _candidates(state, wanted, missing, before)[:most]
    found = _search(state, candidates, wanted, missing)
    yield from found if len(candidates) == len({run_id for run_id, _ in candidates}) else _joined(found)


def _joined(parts: Iterable[LatestRun]) -> Iterable[LatestRun]:
    """Join the parts of each run. Other runs were made between those of a resumed run."""
    runs: dict[Path, LatestRun] = {}
    for part in parts:
        known = runs.get(part.file)
        runs[part.file] = part if known is None else replace(known, executions=known.executions + part.executions)
    return runs.values()


def _search(
    state: Path, candidates: Iterable[tuple[str, str]], wanted: Mapping[str, set[str]], missing: set[CaseName]
) -> Iterator[LatestRun]:
    seen: set[CaseName] = set()
    for run_id, since in candidates:
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
            if name not in lost
            and (ended := [one for one in every if one.decides_case])
            and any(one.resumed >= since for one in ended)
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
        OSError: The database cannot be read.
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
    resumed = {run: max(map(resumed_of, of_case)) for run, of_case in of_run.items()}
    newest = sorted(of_run, key=lambda run: age(starts[run][0], resumed[run]), reverse=True)
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
    """Return the options of the newest run that ran agents and decided a case, or {}.

    `latest` are runs that were read already.
    """
    read = {run.summary.run_id: run.summary for run in latest}
    for run, _ in _newest(state)[:_MAX_RUNS]:
        try:
            summary = read[run.run_id] if run.run_id in read else load_summary(state, run.run_id)[0]
        except (OSError, ValueError):
            continue
        if not summary.scored_from and any(one.decides_case for one in summary.executions.values()):
            return summary.options
    return {}


def _candidates(state: Path, files: Collection[str], cases: Collection[CaseName], before: str) -> list[tuple[str, str]]:
    """Return the runs that may have one of these cases, newest first; with `before`, only older ones.

    Each has its ID and "". A resumed run comes first with the time of the resume, and again at the place of its start,
    if another one lies between.
    """
    newest = _newest(state)
    if before:
        place = next((place for place, (run, _) in enumerate(newest) if run.run_id == before), len(newest))
        newest = [entry for entry in newest[place + 1 :] if entry[0].run_id != before]
    having: Collection[int] | None = None
    if len(cases) <= _FEW:
        try:
            having = database(state).read(lambda connection: runs_with_cases(connection, cases)) or set()
        except OSError:
            having = ()
    found = [
        (run.run_id, since)
        for run, since in newest
        if _has_file(run, files) and (having is None or run.id in having or not run.is_whole or not run.executions)
    ]
    return [list(group)[-1] for _, group in itertools.groupby(found, itemgetter(0))]


def _newest(state: Path) -> list[tuple[RunRow, str]]:
    """Return all runs with "", and resumed ones also with the time of each resume, newest first."""
    try:
        found = database(state).read(all_runs) or []
    except OSError:
        return []
    age = ages()
    entries = [(run, since) for run in found for since in ("", *resumes(state, run))]
    return sorted(entries, key=lambda entry: age(entry[0].run_id, entry[1]), reverse=True)


def resumes(state: Path, run: RunRow) -> Collection[str]:
    """Return when a run was resumed, or () if nothing of it can be read."""
    text = run.listed if run.is_whole else None
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        if text is None and run.events:  # It has not ended, or its row is damaged.
            text = database(state).read(lambda connection: facts_of(connection, run.id))
            if text is None:
                return set(load_summary(state, run.run_id)[0].resumed)
        if text and '"resumed":["' in text:
            return set(json.loads(text)["resumed"])
    return ()


def _has_file(run: RunRow, files: Collection[str]) -> bool:
    """Return whether a run may have a case of one of these evalsets. A damaged run may have any case."""
    if run.listed is None or not run.is_whole:
        return True
    try:
        return not set(json.loads(run.listed)["files"]).isdisjoint(files)
    except (ValueError, KeyError, TypeError):
        return True


@dataclass(frozen=True)
class OtherRun:
    """A run of another program, as far as it is stored.

    `latest` has the verdicts since the last call of `look`, or all verdicts once the run has ended. It has all repeats
    of a case or none. `stopped` means that the program ended before its run did. `total` and `done` count executions.
    """

    latest: LatestRun
    state: Literal["running", "ended", "stopped"]
    total: int
    done: int

    @property
    def run_id(self) -> str:
        """The ID of the run."""
        return self.latest.summary.run_id


class OtherRuns:
    """The runs that appear in a state folder, except our own (`is_own`). Call the methods in threads, one at a time."""

    def __init__(self, state: Path, is_own: Callable[[str], bool]) -> None:
        self._state = state
        self._is_own = is_own
        self._version = -1
        """The database's version at the last call of `look`."""
        self._known: dict[int, int] = {}
        """Number of events of each run when it was last read. A run is read again when it has more."""
        self._followed: dict[int, _Followed] = {}
        self._has_begun = False

    @property
    def active(self) -> bool:
        """Whether another program is running cases. `look` must then be called regularly, to notice if it is killed."""
        return bool(self._followed)

    def begin(self) -> None:
        """Ignore the current runs, except those that are still being written.

        If the database cannot be read, the next call of `look` does this.
        """
        version = database(self._state).version()
        runs = self._runs()
        if runs is None:
            return
        self._version, self._has_begun = version, True
        for run in runs:
            if not self._is_own(run.run_id) and run.seconds is None and run.is_being_written:
                self._followed[run.id] = _Followed(self._state, run)
            else:
                self._known[run.id] = run.events

    def look(self) -> list[OtherRun]:
        """Return the runs that changed since the last call, or [] if the database cannot be read now."""
        if not self._has_begun:
            self.begin()
            return []
        version = database(self._state).version()
        if version == self._version and not self._followed:
            return []
        stored = self._runs()
        if stored is None:
            return []
        self._version = version
        found: list[OtherRun] = []
        runs = {run.id: run for run in stored}
        for gone in [number for number in self._followed if number not in runs]:
            del self._followed[gone]
        for number, run in runs.items():
            if self._is_own(run.run_id):
                continue
            if number not in self._followed and run.events != self._known.get(number, 0):
                self._followed[number] = _Followed(self._state, run)
            if number in self._followed and (news := self._followed[number].look(run)) is not None:
                found.append(news)
                if news.state != "running":
                    del self._followed[number]
                    self._known[number] = run.events
        return found

    def _runs(self) -> list[RunRow] | None:
        """Return all runs, or None if they cannot be read."""
        try:
            return database(self._state).read(all_runs) or []
        except OSError:
            return None


class _Followed:
    """A run that is read while another program writes it."""

    def __init__(self, state: Path, run: RunRow) -> None:
        self._state, self._seen = state, -1
        self._summary = Summary(run.run_id, bundles=RunBundles(StoredTexts(database(state), run.id)))
        self._path = run_path(state, run.run_id)
        self._told: set[CaseName] = set()
        """The cases whose verdicts were returned."""

    def look(self, run: RunRow) -> OtherRun | None:
        """Return the run with its verdicts, while it is written only those since the last call.

        Return None if nothing has changed, or if the run cannot be read now.
        """
        goes_on = run.is_being_written
        if goes_on and run.events in (0, self._seen):
            return None
        try:
            if goes_on:
                self._update(run)
            else:
                self._summary, _ = load_summary(self._state, run.run_id)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        summary, every = self._summary, self._summary.executions.values()
        # A case is returned once, when all of its repeats have ended.
        left_out = self._told | {one.ref.name for one in every if not one.finished} if goes_on else set()
        found = tuple(one for one in every if one.decides_case and one.ref.name not in left_out)
        self._told.update(one.ref.name for one in found)
        ended: Literal["ended", "stopped"] = "stopped" if summary.seconds is None else "ended"
        latest = LatestRun(summary, self._path, found)
        return OtherRun(latest, "running" if goes_on else ended, len(every), len(every) - summary.unreached)

    def _update(self, run: RunRow) -> None:
        """Read the rows that have changed since the last call. The summary of a long run takes too long."""
        if run.executions < len(self._summary.executions):  # Repeats were dropped, and so were their rows.
            self._summary.executions, self._seen = {}, -1

        def ask(connection: Connection) -> tuple[str | None, list[ExecutionRow]]:
            return facts_of(connection, run.id), list(executions_of(connection, run.id, self._seen))

        facts, rows = database(self._state).read(ask) or (None, [])
        self._seen = run.events
        self._summary.started, self._summary.scored_from = run.started, run.scored_from
        read_facts(self._summary, facts or "{}")
        add_executions(self._summary, (row for row in rows if row.is_whole), self._path)
