"""Runs that other programs make in the same state folder, followed while they are written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.store.database.database import Connection, database
from workbench.store.database.runs import ExecutionRow, RunRow, all_runs, executions_of, facts_of
from workbench.store.execution import Execution
from workbench.store.history.execution_rows import add_executions, read_facts
from workbench.store.history.latest import LatestRun
from workbench.store.history.state_dir import run_path
from workbench.store.history.stored_runs import StoredTexts, load_summary
from workbench.store.history.summary import RunBundles, Summary


@dataclass(frozen=True)
class OtherRun:
    """A run of another program, as far as it is written.

    `latest` has the verdicts that are new since the last look, or all of them once the run has ended. Repeats of a
    case come together. `stopped` means that the program ended before its run did.
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
    """The runs that appear in a state folder. `is_own` returns whether this program made a run.

    Call the methods in threads, one at a time, because they read the database.
    """

    def __init__(self, state: Path, is_own: Callable[[str], bool]) -> None:
        self._state = state
        self._is_own = is_own
        self._version = -1
        """The database's version at the last look."""
        self._known: dict[int, int] = {}
        """Run → number of its events when its end was known."""
        self._followed: dict[int, _Followed] = {}

    @property
    def active(self) -> bool:
        """Whether another program is running cases, so that its end is noticed even if it is killed."""
        return bool(self._followed)

    def begin(self) -> None:
        """Take the current runs as known, except those that are still being written."""
        self._version = database(self._state).version()
        for run in self._runs():
            if not self._is_own(run.run_id) and run.seconds is None and run.is_being_written:
                self._followed[run.id] = _Followed(self._state, run)
            else:
                self._known[run.id] = run.events

    def look(self) -> list[OtherRun]:
        """Return the runs with news since the last look."""
        version = database(self._state).version()
        if version == self._version and not self._followed:
            return []
        self._version = version
        found: list[OtherRun] = []
        runs = {run.id: run for run in self._runs()}
        for gone in [number for number in self._followed if number not in runs]:
            del self._followed[gone]
        for number, run in runs.items():
            if self._is_own(run.run_id):
                continue
            if number not in self._followed and run.events != self._known.get(number, 0):
                self._followed[number] = _Followed(self._state, run)
            followed = self._followed.get(number)
            news = None if followed is None else followed.look(run)
            if news is not None:
                found.append(news)
                if news.state != "running":
                    del self._followed[number]
                    self._known[number] = run.events
        return found

    def _runs(self) -> list[RunRow]:
        try:
            return database(self._state).read(all_runs) or []
        except OSError:
            return []


class _Followed:
    """A run that is read while another program writes it."""

    def __init__(self, state: Path, run: RunRow) -> None:
        self._state, self._seen = state, -1
        self._summary = Summary(run.run_id, bundles=RunBundles(StoredTexts(database(state), run.id)))
        self._path = run_path(state, run.run_id)
        self._has_facts = False
        self._told: set[tuple[str, str]] = set()

    def look(self, run: RunRow) -> OtherRun | None:
        """Return the news since the last look, or None."""
        if not run.is_being_written:
            return self._end(run)
        if run.events == self._seen or not run.events:
            return None
        seen, self._seen = self._seen, run.events

        def ask(connection: Connection) -> tuple[str | None, list[ExecutionRow]]:
            facts = None if self._has_facts else facts_of(connection, run.id)
            return facts, list(executions_of(connection, run.id, seen))

        try:
            facts, rows = database(self._state).read(ask) or (None, [])
            if facts is not None:
                read_facts(self._summary, facts)
                self._has_facts = True
            add_executions(self._summary, (row for row in rows if row.is_whole), self._path)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        self._summary.started, self._summary.scored_from = run.started, run.scored_from
        return self._report("running", self._decided())

    def _end(self, run: RunRow) -> OtherRun | None:
        try:
            self._summary, _ = load_summary(self._state, run.run_id)
        except OSError:
            return None
        ended = tuple(one for one in self._summary.executions.values() if one.decides_case)
        return self._report("stopped" if self._summary.seconds is None else "ended", ended)

    def _decided(self) -> tuple[Execution, ...]:
        """Return the executions of cases that were decided since the last call, in all their repeats."""
        every = self._summary.executions.values()
        open_cases = {one.ref.name for one in every if not one.finished}
        found = tuple(
            one
            for one in every
            if one.decides_case and one.ref.name not in open_cases and one.ref.name not in self._told
        )
        self._told.update(one.ref.name for one in found)
        return found

    def _report(self, state: Literal["running", "ended", "stopped"], executions: tuple[Execution, ...]) -> OtherRun:
        summary = self._summary
        total = len(summary.executions)
        return OtherRun(LatestRun(summary, self._path, executions), state, total, total - summary.unreached)
