"""The watch as both front ends drive it: saves come in, runs go out, and what is stale is known in between.

No widget and no thread: the screen and the plain lines call the same methods and apply the same events.
"""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.agents.workspace import Workspace
from workbench.config import Settings
from workbench.dependencies.change import Effect
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.processes.agent_process import Touched
from workbench.engine.watch.board import Board, Estimate, Job, Limit
from workbench.engine.watch.contents import Moment
from workbench.engine.watch.impact import relative
from workbench.engine.watch.recurring import Recurring
from workbench.engine.watch.watcher import Saved, Watcher
from workbench.events import CaseFinished, CaseName, CaseRef, Event, Noticed, RepeatsDropped, RunFinished, RunStarted
from workbench.metrics.base import Scored
from workbench.prices import Prices
from workbench.project.transcripts import stored_case
from workbench.project.watch_cost import estimate
from workbench.store import CaseRecord, Store

if TYPE_CHECKING:
    from workbench.engine.plan.plan import Plan

DEPTH_WORDS: dict[Effect, str] = {
    "run": "running the agent",
    "score": "scoring what it said",
    "decide": "deciding on what is stored",
}

_JUST = 1.0
"""Seconds within which a change may still be of what has ended."""


@dataclass(frozen=True)
class Start:
    """What to start now, and what to say of it."""

    job: Job
    words: str


class Watched(Protocol):
    """The project, as far as a watch over it needs it."""

    store: Store
    settings: Settings

    def touched(self) -> dict[Path, Touched]: ...

    def renew(self) -> None: ...

    def look_back(self, workspace: Workspace) -> None: ...


def watch_over(
    project: Watched,
    workspace: Workspace,
    reopen: Callable[[], Workspace],
    options: RunOptions,
    armed: frozenset[CaseName],
    screen_files: Collection[Path] = (),
) -> "Watching":
    """Return a watch over the cases `armed`, or over all if there are none. `reopen` reads the workspace again, in a
    thread; `screen_files` are watched too, but change no verdict. Reads files: for a thread, if there is a loop."""
    settings = project.settings
    watcher = Watcher(workspace, reopen, project.touched, screen_files=screen_files)
    board = Board(armed or None, Limit(settings.watch_calls, settings.watch_money))
    return Watching(project.store, watcher, board, options, settings.prices)


class Watching:
    """`store` is what the front end reads; events of a watched run go through `admit` on their way there."""

    def __init__(
        self, store: Store, watcher: Watcher, board: Board, options: RunOptions, prices: Prices | None = None
    ) -> None:
        self.store = store
        self.watcher = watcher
        self.board = board
        self.moments: dict[CaseRef, Moment] = {}
        """The files as they were when a case's newest verdict was asked for."""
        self._options = options
        self._prices = prices or Prices()
        self._obsolete: set[CaseRef] = set()
        self._stopped = False
        self._moment: Moment = watcher.contents.moment
        self._left: dict[CaseName, int] = {}
        self._recurring = Recurring()
        self._ended = -math.inf
        self.ignored: list[str] = []
        """Files that are not watched any more since the last save, because they change whenever their agent runs."""
        self.announced = asyncio.Event()
        """Unset between the start of a run and the moment at which its executions are known: a save has to wait for
        that, or it could not tell which of them it makes obsolete."""
        self.announced.set()
        self.restored: set[CaseRef] = set()
        """Executions whose earlier record holds again, because nothing came of the newer one. Whoever shows them
        empties this."""

    # Saves

    def take(self, saved: Saved) -> list[CaseRef]:
        """Take in a save. Return the executions that it made obsolete: they are to be cancelled, and no others of
        their run started."""
        self._ignore_what_recurs(saved)
        obsolete = self.board.take(saved)
        active = [record.ref for record in self.store.current_records() if not record.finished]
        refs = [ref for ref in active if ref.name in obsolete]
        self._obsolete.update(refs)
        self._stopped = self._stopped or bool(refs)
        self._restore(refs)
        return refs

    def _ignore_what_recurs(self, saved: Saved) -> None:
        running = bool(self.board.under_way) or time.monotonic() - self._ended < _JUST
        found = self._recurring.take(saved.changed - saved.impact.idle, running=running)
        self.watcher.ignored |= found
        self.ignored = sorted(relative(path, self.watcher.snapshot.workspace) for path in found)

    def notices(self, saved: Saved) -> list[Noticed]:
        """Return what the user must know about a save that was taken."""
        stay = "The last verdicts stay, as stale" if saved.impact.depths else "The last verdicts stay"
        if saved.trouble:
            gone = self.watcher.changes.gone  # That is told already.
            return [] if gone else [Noticed("error", f"cannot be read: {saved.trouble}", stay)]
        found = [
            Noticed("warning", f"{ignored} changes whenever the agent runs: it is not watched any more")
            for ignored in self.ignored
        ]
        for fault in saved.faults:
            place = relative(fault.path, saved.snapshot.workspace) + (f":{fault.line}" if fault.line else "")
            found.append(Noticed("error", f"{place}: {fault.message}", stay))
        return found

    def next(self, busy: bool) -> Start | None:
        """What to start now; None if there is nothing to be started, or something is going on (`busy`)."""
        if busy:
            return None
        self.end_start()
        self.board.ended()
        self._skip_what_was_never_run()
        job = self.board.next_job(self._failing, self.estimate)
        if job is None:
            return None
        total_cases = len(self.watcher.snapshot.workspace.case_names)
        words = f"{self.estimate(job.keys, job.depth).words(total_cases)}: {DEPTH_WORDS[job.depth]}"
        if job.depth == "decide":
            words = f"{len(job.keys):,} of {total_cases:,} stale: {DEPTH_WORDS[job.depth]}"
        return Start(job, words)

    def started(self, job: Job) -> None:
        """Take note that the front end starts a job; the store says so too."""
        self._moment = self.watcher.contents.moment
        self.store.request_run(job.depth)
        self.announced.clear()
        self.board.started(job.keys, job.depth)

    def end_start(self) -> None:
        """What was started does not announce itself any more: if it did not yet, it was refused, or broke off before it
        began. To start it again at once would be to do so for ever."""
        if not self.announced.is_set():
            self.board.hold()
            self.store.drop_request()
            self.announced.set()

    def estimate(self, keys: Collection[CaseName], depth: Effect) -> Estimate:
        """What doing these cases costs, from what they cost when they ran last; of cases that never ran, what others
        did."""
        most = self._options.runs
        records = [record for record in self._records(keys) if record.has_verdict and record.ref.repeat <= most]
        known = {record.ref.name for record in records}
        times = len(records) / len(known) if known else float(most)
        if not records:
            records = [record for record in self.store.records.values() if record.has_verdict]
        configs = {entry.relative: entry.criteria.config for entry in self.watcher.snapshot.workspace.evalsets}
        return estimate(len(keys), records, depth, self._prices, times, lambda ref: configs.get(ref.evalset_file))

    def plan(self, job: Job) -> "Plan":
        """Return the plan of a job.

        Raises:
            UsageFaultError: a config is wrong, or nothing of it is there any more.
        """
        from workbench.engine.watch.jobs import run_plan, scoring_plan

        workspace = self.watcher.snapshot.workspace
        if job.depth == "run":
            return run_plan(workspace, job.keys, self._options)
        records = self._records(job.keys)
        stored = [stored_case(record) for record in records]
        verdicts = {record.ref: list(_scored(record)) for record in records}
        used = ", ".join(dict.fromkeys(record.run_id for record in records))
        return scoring_plan(workspace, stored, verdicts, used, self._options, self.board.changes)

    # Events

    def admit(self, event: Event) -> Event | None:
        """The event as the store is to have it: none of an execution that a save made obsolete, and a run that was cut
        short for a newer one was not interrupted by anybody."""
        if isinstance(event, RunStarted):
            self.announced.set()
            self._obsolete.clear()
            self._stopped = False
            self._left = {}
            for planned in event.cases:
                key = planned.case.name
                self._left[key] = self._left.get(key, 0) + 1
            if not self.board.under_way:
                # A run that the user started: it makes its cases as fresh as one of ours.
                self._moment = self.watcher.contents.moment
                depth: Effect = "score" if event.scored_from else "run"
                self.board.fresh(dict.fromkeys(self._left, depth))
        elif isinstance(event, RunFinished):
            self._ended = time.monotonic()
            if not self._stopped:
                # Somebody ended it, or it failed.
                self.board.hold()
            self.board.ended()
            if self._stopped:
                # What a save superseded was not cancelled by anybody, and is done again.
                self._restore(record.ref for record in self.store.current_records() if not record.finished)
            return replace(event, interrupted=event.interrupted and not self._stopped)
        elif isinstance(event, RepeatsDropped):
            # The end that made them needless comes after them.
            for dropped in event.cases:
                self._left[dropped.name] = self._left.get(dropped.name, 1) - 1
        elif isinstance(event, CaseFinished):
            return self._finished(event)
        ref = getattr(event, "case", None)
        return None if ref in self._obsolete else event

    def _finished(self, event: CaseFinished) -> Event | None:
        if event.case in self._obsolete:
            return None
        key = event.case.name
        self._left[key] = self._left.get(key, 1) - 1
        cancelled = event.status == "cancelled"
        if cancelled:
            self.board.hold([key])
        if self._left[key] == 0 and not cancelled and self.board.decided(key):
            self.moments[event.case] = self._moment
        return event

    def _restore(self, refs: Iterable[CaseRef]) -> None:
        """The last verdicts stay where no newer ones came."""
        self.restored.update(self.store.reinstate(refs))

    @property
    def superseded(self) -> bool:
        """Whether a save ended the newest run before it had come to its end."""
        return self._stopped

    # Which cases

    def depends_on(self, ref: CaseRef) -> dict[Path, str]:
        """The files that a case's verdict depends on as far as that is known, with their names."""
        workspace = self.watcher.snapshot.workspace
        entry = next((entry for entry in workspace.evalsets if entry.relative == ref.evalset_file), None)
        files = self.watcher.files_of(entry) if entry is not None else []
        return {path: relative(path, workspace) for path in files}

    def earlier_moments(self, stale: Collection[CaseName]) -> dict[CaseRef, Moment]:
        """Return the files with which verdicts from before the watch were made: those of now, unless they are stale.
        Reads files: for a thread."""
        self.watcher.update_files()
        moment = self.watcher.contents.moment
        return {
            ref: moment
            for ref, record in list(self.store.records.items())
            if record.has_verdict and ref.name not in stale
        }

    def _skip_what_was_never_run(self) -> None:
        """A transcript that is not there cannot be scored again: such a case has no verdict that could be stale."""
        scored = [key for key, depth in self.board.depths.items() if depth != "run"]
        known = {record.ref.name for record in self._records(scored) if stored_case(record).why_incomplete() is None}
        self.board.drop(key for key in scored if key not in known)

    def _failing(self, key: CaseName) -> bool:
        return any(record.state in ("failed", "error") for record in self._records([key]))

    def _records(self, keys: Iterable[CaseName]) -> list[CaseRecord]:
        if self._index_of != len(self.store.records):
            self._index = {}
            for ref in self.store.records:
                self._index.setdefault(ref.name, []).append(ref)
            self._index_of = len(self.store.records)
        refs = (ref for key in keys for ref in self._index.get(key, ()) if self.store.has_current_owner(ref))
        return [self.store.records[ref] for ref in refs]

    _index_of = -1
    _index: dict[CaseName, list[CaseRef]]


def _scored(record: CaseRecord) -> Sequence[Scored]:
    return [
        Scored(result, tuple(turn.metrics[name] for turn in record.turns if name in turn.metrics))
        for name, result in record.metrics.items()
    ]
