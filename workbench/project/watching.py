"""The state of a watch: its stale cases, and the jobs that follow from saves.

It needs no widget and no thread. The screen and `run --watch` call the same methods and apply the same events.
"""

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from workbench.agents.workspace import Workspace
from workbench.criteria.base import Scored
from workbench.events.events import (
    CaseFinished,
    CaseName,
    CaseRef,
    Event,
    Noticed,
    RepeatsDropped,
    RunFinished,
    RunStarted,
)
from workbench.files.prices import Prices
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.files.settings import Settings
from workbench.files.walk import relative_to
from workbench.freshness.agent_inputs import Touched
from workbench.freshness.watcher import Recurring, Saved, Watcher
from workbench.project.cost_estimate import Estimate, Limit, estimate
from workbench.project.watch_queue import Job, JobQueue, run_plan, scoring_plan
from workbench.run.plan.plan import Plan
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.store.inputs import Effect
from workbench.store.store import Store
from workbench.store.transcripts import may_be_complete, stored_case

_DEPTH_WORDS: dict[Effect, str] = {
    "run": "running the agent",
    "score": "scoring the transcripts",
    "decide": "comparing stored scores",
}
_LONGEST_NOTICE = 5.0
"""Maximum age in seconds of a file that counts as just written. An older one was moved here or unpacked."""
_JUST = 1.0
"""Seconds after the end of a run during which a file change may still come from that run."""


@dataclass(frozen=True)
class Start:
    """A job to start now, with a text for the user."""

    job: Job
    text: str


class Watched(Protocol):
    """The part of a project that a watch needs."""

    store: Store
    settings: Settings

    def touched(self) -> dict[Path, Touched]:
        """Return the files that agents used, grouped by agent folder."""
        ...

    def state_dir(self, root: Path) -> Path:
        """Return the state folder of the project at a root."""
        ...

    def renew(self) -> None:
        """Restart the agents' processes before the next run."""
        ...

    def load_touched(self, workspace: Workspace) -> None:
        """Load the files that agents used in the runs of the last verdicts."""
        ...


def watch_over(
    project: Watched,
    workspace: Workspace,
    reopen: Callable[[], Workspace],
    options: Callable[[], RunOptions],
    armed: frozenset[CaseName],
    screen_files: Collection[Path] = (),
) -> "Watching":
    """Return a watch over the cases `armed`, or over all cases if there are none.

    `reopen` reads the workspace again, in a thread. `options` returns the options of the next run. `screen_files` are
    watched too, but change no verdict. Call this in a thread if there is an event loop, because it reads files.
    """
    settings = project.settings
    watcher = Watcher(workspace, reopen, project.touched, screen_files=screen_files, options=options)
    jobs = JobQueue(armed or None, Limit(settings.watch_calls, settings.watch_money))
    return Watching(project.store, watcher, jobs, options, settings.prices)


class Watching:
    """The state of a watch. Events of a watched run pass through `admit` on their way to the front end's `store`."""

    def __init__(
        self,
        store: Store,
        watcher: Watcher,
        jobs: JobQueue,
        options: Callable[[], RunOptions] = RunOptions,
        prices: Prices | None = None,
    ) -> None:
        self.store = store
        self.watcher = watcher
        self.jobs = jobs
        self._options = options
        self._prices = prices or Prices()
        self._obsolete: set[CaseRef] = set()
        self.superseded = False
        """Whether a save stopped the newest run."""
        self._left = Counter[CaseName]()
        """The number of executions of each case that have not ended."""
        self._recurring = Recurring()
        self._ended = -math.inf
        self._saved = 0.0
        """Time of the save whose cases run now or ran last."""
        self._of_save = False
        """Whether the newest run belongs to a save."""
        self.latency: float | None = None
        """Seconds from the last save to the end of its run, or None until that run has ended."""
        self.ignored: list[str] = []
        """Files that are ignored from the last save on, because they change whenever their agent runs."""
        self.announced = asyncio.Event()
        """Unset while a run is requested and its executions are not known yet. A save waits until it is set, to know
        which executions it makes obsolete.
        """
        self.announced.set()
        self.closed = asyncio.Event()
        """Unset from the last event of a run until its front end has closed it."""
        self.closed.set()
        self.restored: set[CaseRef] = set()
        """Executions whose previous record is valid again. The front end empties this after showing them."""

    def take(self, saved: Saved) -> list[CaseRef]:
        """Queue the cases that a save makes stale, and return the unfinished executions that it makes obsolete.

        The caller must cancel those executions and start no others of their run.
        """
        running = bool(self.jobs.under_way) or time.monotonic() - self._ended < _JUST
        found = self._recurring.take(saved.changed - saved.impact.idle, running=running)
        self.watcher.ignored |= found
        self.ignored = sorted(relative_to(path, self.watcher.snapshot.workspace.root) for path in found)
        if saved.impact.depths:
            self._saved, self.latency = _time_of(saved), None
        obsolete = self.jobs.take(saved)
        active = [record.ref for record in self.store.current_records() if not record.finished]
        refs = [ref for ref in active if ref.name in obsolete]
        self._obsolete.update(refs)
        self.superseded = self.superseded or bool(refs)
        self.restored.update(self.store.reinstate(refs))
        return refs

    def notices(self, saved: Saved) -> list[Noticed]:
        """Return notices about a save: why the project cannot be read, faults in files, and newly ignored files.

        Call it after `take`.
        """
        stay = "The last verdicts stay, as stale" if saved.impact.depths else "The last verdicts stay"
        if saved.trouble:
            if self.watcher.changes.gone:
                return []  # `Watch` has reported that.
            return [Noticed("error", f"the project cannot be read: {saved.trouble}", stay)]
        why = "changes whenever the agent runs, so it is ignored from now on"
        found = [Noticed("warning", f"{ignored} {why}") for ignored in self.ignored]
        for fault in saved.faults:
            place = relative_to(fault.path, saved.snapshot.workspace.root) + (f":{fault.line}" if fault.line else "")
            found.append(Noticed("error", f"{place}: {fault.message}", stay))
        return found

    def next(self, busy: bool) -> Start | None:
        """Return the next job, or None if there is none, its cost must be confirmed, or a run is `busy`.

        Unless `busy`, first give up a requested run that never began, and record that nothing is running.
        """
        if busy:
            return None
        if not self.announced.is_set():
            # The started run was refused or failed. It starts again only after another save, not in an endless loop.
            self.jobs.hold()
            self.store.drop_request()
            self.announced.set()
        self.jobs.ended()
        self._skip_what_was_never_run()
        failing = {record.ref.name for record in self._records(self.jobs.depths) if record.state in ("failed", "error")}
        job = self.jobs.next_job(failing.__contains__, self.estimate)
        if job is None:
            return None
        total_cases = len(self.watcher.snapshot.workspace.case_names)
        return Start(job, f"{self.estimate(job.keys, job.depth).text(total_cases)}: {_DEPTH_WORDS[job.depth]}")

    def started(self, job: Job) -> None:
        """Record that the front end starts a job, also in the store."""
        self.store.request_run(job.depth)
        self.announced.clear()
        self.jobs.started(job.keys, job.depth)

    def estimate(self, keys: Collection[CaseName], depth: Effect) -> Estimate:
        """Return the estimated cost of these cases from their last run, or from other cases if they never ran."""
        most = self._options().runs
        records = [record for record in self._records(keys) if record.has_verdict and record.ref.repeat <= most]
        known = {record.ref.name for record in records}
        times = len(records) / len(known) if known else float(most)
        if not records:
            records = [record for record in self.store.records.values() if record.has_verdict]
        configs = {entry.relative: entry.criteria.config for entry in self.watcher.snapshot.workspace.evalsets}
        return estimate(len(keys), records, depth, self._prices, times, lambda ref: configs.get(ref.evalset_file))

    def plan(self, job: Job) -> Plan:
        """Return the plan of a job, without the cases that turn out to have no complete transcript to score.

        Call it in a thread if there is a screen, because it reads transcripts.

        Raises:
            UsageFaultError: a config is wrong, or no case is left.
        """
        workspace = self.watcher.snapshot.workspace
        if job.depth == "run":
            return run_plan(workspace, job.keys, self._options())
        read = [(record, stored_case(record)) for record in map(read_details, self._records(job.keys))]
        whole = {case.ref.name for _, case in read if case.why_incomplete() is None}
        if not whole:
            raise UsageFaultError("no stale case has a complete transcript to score", "Run these cases again")
        records = [record for record, case in read if case.ref.name in whole]
        stored = [case for _, case in read if case.ref.name in whole]
        verdicts = {
            record.ref: [Scored(result, tuple(record.in_turns(name))) for name, result in record.metrics.items()]
            for record in records
        }
        used = ", ".join(dict.fromkeys(record.run_id for record in records))
        return scoring_plan(workspace, stored, verdicts, used, self._options(), self.jobs.changes)

    def admit(self, event: Event) -> Event | None:
        """Update the watch with an event of a run. Return it for the store, or None if its execution is obsolete.

        A run that was superseded by a save does not count as interrupted.
        """
        if isinstance(event, RunStarted):
            self.announced.set()
            self._obsolete.clear()
            self.superseded = False
            self._left = Counter(planned.case.name for planned in event.cases)
            self._of_save = bool(self.jobs.under_way)
            for key in self.jobs.under_way.keys() - self._left.keys() if event.scored_from else ():
                # `plan` found no transcript of this case, so it has no verdict that could be stale.
                del self.jobs.under_way[key]
                self.jobs.drop(key)
            if not self._of_save:
                # A run of the user makes its cases fresh too.
                self.jobs.started(self._left, "score" if event.scored_from else "run")
        elif isinstance(event, RunFinished):
            return self._run_finished(event)
        elif isinstance(event, RepeatsDropped):
            # The `CaseFinished` that made them unnecessary follows.
            self._left.subtract(dropped.name for dropped in event.cases)
        elif isinstance(event, CaseFinished):
            return self._finished(event)
        return None if getattr(event, "case", None) in self._obsolete else event

    def _run_finished(self, event: RunFinished) -> RunFinished:
        self._ended = time.monotonic()
        self.closed.clear()
        if self._of_save and not self.superseded and not event.interrupted:
            self.latency = self._ended - self._saved
        if self.superseded:
            self.jobs.put_back(key for key, left in self._left.items() if left > 0)
        else:
            # The user ended the run, or it failed.
            self.jobs.hold()
        self.jobs.ended()
        if self.superseded:
            # Superseded cases were not cancelled by the user and will run again.
            unfinished = (record.ref for record in self.store.current_records() if not record.finished)
            self.restored.update(self.store.reinstate(unfinished))
        return replace(event, interrupted=event.interrupted and not self.superseded)

    def _finished(self, event: CaseFinished) -> Event | None:
        if event.case in self._obsolete:
            return None
        key = event.case.name
        self._left[key] -= 1
        if event.status == "cancelled":
            self.jobs.hold([key])
        elif not self._left[key]:
            self.jobs.decided(key)
        return event

    def _skip_what_was_never_run(self) -> None:
        """Remove cases without a transcript from scoring jobs. They have no verdict that could be stale."""
        # This reads no transcripts, because it is called in the event loop. `plan` does.
        scored = [key for key, depth in self.jobs.depths.items() if depth != "run"]
        known = {record.ref.name for record in self._records(scored) if may_be_complete(record)}
        for key in scored:
            if key not in known:
                self.jobs.drop(key)

    def _records(self, keys: Iterable[CaseName]) -> list[Execution]:
        """Return the executions of the latest verdicts of these cases, in the order of `keys`."""
        found = {key: list[Execution]() for key in keys}
        for record in self.store.latest_verdicts(found):
            found[record.ref.name].append(record)
        return [record for records in found.values() for record in records]


def _time_of(saved: Saved) -> float:
    """Return when files were saved, on the monotonic clock. Files older than `_LONGEST_NOTICE` count as new."""
    ages = [0.0]
    for path in saved.changed:
        with contextlib.suppress(OSError):
            ages.append(time.time() - path.stat().st_mtime)
    return time.monotonic() - max(age for age in ages if 0 <= age < _LONGEST_NOTICE)
