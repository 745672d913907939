"""The driver of a watch, which starts the stale cases after each save and publishes news for front ends."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from workbench.agents.workspace import Workspace
from workbench.events.events import CaseRef, Event, Noticed
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.files.walk import relative_to
from workbench.freshness.watcher import Saved
from workbench.project.cost_estimate import Estimate
from workbench.project.last_verdicts import fresh_cases
from workbench.project.running import Followed, Running
from workbench.project.targets import Targets
from workbench.project.watching import Start, Watched, Watching, watch_over
from workbench.run.plan.plan import Plan
from workbench.text.safe_text import one_line

_CLOSING = 1.0
"""Maximum number of seconds that a save waits for a run to be closed after its last event."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Stale cases that cost more than the limit. They wait for `Watch.allow`. `total` is the number of all cases."""

    estimate: Estimate
    total: int


News: TypeAlias = Event | Saved | Start | Waiting
"""The news of a watch: saves, notices, starts and waiting jobs. `RunningWatch` also publishes the events of its runs,
as the store gets them.
"""


class Runner(Watched, Protocol):
    """A project with runs, for a watch that runs its cases itself (`workbench.project.project.Project`)."""

    tasks: set[asyncio.Task[None]]

    def run(self, plan: Plan, publish: Callable[[Event], None] | None = None) -> Running:
        """Prepare a run of the plan."""
        ...


class Watch(Followed[News]):
    """A watch that handles saves until `stop`. A subclass runs the stale cases.

    The events of all runs must pass through `Watching.admit` before they reach the store. `run_ended` must be called
    after each run, including those of the user.
    """

    def __init__(
        self, project: Watched, watching: Watching, take: Callable[[News], None], tasks: set[asyncio.Task[None]]
    ) -> None:
        super().__init__(take, tasks)
        self.watching = watching
        self.ended = False
        self._project = project
        self._watcher = watching.watcher
        self._published_cost: Estimate | None = None
        """The published cost that must be confirmed, or None."""
        changes, root = self._watcher.changes, self._watcher.snapshot.workspace.root
        changes.on_polling = lambda: self._publish(Noticed("info", f"polling for changes: {changes.polling}"))
        changes.on_gone = lambda: self._publish(
            Noticed("warning", f"{root} no longer exists; waiting for it")
            if changes.gone
            else Noticed("info", f"{root} exists again")
        )

    @property
    def busy(self) -> bool:
        """Whether a run is running or requested."""
        raise NotImplementedError

    def start_plan(self, make: Callable[[], Plan]) -> None:
        """Start the run of the plan that `make` returns. If `make` refuses, that counts as a run that ended at once."""
        raise NotImplementedError

    def supersede(self, refs: Sequence[CaseRef]) -> None:
        """Kill these executions, and start no others of their run."""
        raise NotImplementedError

    def read_files(self) -> None:
        """Read the files that the last verdicts depend on. Only later changes are saves. Call it in a thread."""
        self._project.load_touched(self._watcher.snapshot.workspace)
        self._watcher.update_files()

    async def _prepare(self) -> None:
        """Prepare the watch before the first save. A subclass can override this."""

    async def _do(self) -> None:
        try:
            await self._prepare()
            async for saved in self._watcher.saves():
                await self.watching.announced.wait()
                if self.ended:
                    return
                self._take_save(await self._narrowed(saved))
        except Exception as error:
            self._fail(error)
        finally:
            self._watcher.changes.close()

    async def _narrowed(self, saved: Saved) -> Saved:
        """Return a save without the cases that did not read the changed files of their agent.

        Their last verdicts tell which files they read. While cases run, these verdicts are outdated, so all cases of
        the agent count.
        """
        unsure = saved.impact.by_file_of_agent
        if not unsure:
            return saved
        with suppress(TimeoutError):
            # All verdicts of a run that is being closed are known.
            await asyncio.wait_for(self.watching.closed.wait(), _CLOSING)
        if self.busy:
            return saved
        workspace = saved.snapshot.workspace
        fresh = await asyncio.to_thread(fresh_cases, unsure, workspace, self._project.state_dir(workspace.root))
        return saved if self.busy else replace(saved, impact=saved.impact.without(fresh))

    def stop(self) -> None:
        """Stop handling saves and starting runs."""
        self.ended = True
        self.watching.closed.set()
        self._watcher.changes.close()
        self.watching.announced.set()

    def allow(self) -> None:
        """Start the job that waits because of its cost."""
        self.watching.jobs.allowed = True
        self._start_job(self.watching.next(self.busy))

    def run_ended(self) -> None:
        """Watch the files that the ended run read, and start the next job."""
        self.watching.closed.set()
        if not self.ended:
            task = asyncio.create_task(self._update_files())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._start_job(self.watching.next(self.busy))

    def _take_save(self, saved: Saved) -> None:
        if saved.environments:
            self._project.renew()
        obsolete = [] if saved.trouble else self.watching.take(saved)
        if obsolete:
            self.supersede(obsolete)
        start = self.watching.next(self.busy)  # Before the save is published: listeners then see what waits.
        self._tell(saved)
        for notice in self.watching.notices(saved):
            self._publish(notice)
        self._start_job(start)

    def _start_job(self, start: Start | None) -> None:
        """Start a job, or else publish a new cost that waits for confirmation."""
        waiting = self.watching.jobs.waiting
        if start is not None and not self.ended:
            self.watching.started(start.job)
            self._tell(start)
            self.start_plan(lambda: self.watching.plan(start.job))
        elif waiting is not None and waiting != self._published_cost:
            self._tell(Waiting(waiting, len(self._watcher.snapshot.workspace.case_names)))
        self._published_cost = waiting

    async def _update_files(self) -> None:
        try:
            await asyncio.to_thread(self._watcher.update_files)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._publish(Noticed("error", f"the watch failed: {error!r}"))
        self.stop()

    def _publish(self, event: Event) -> None:
        self._tell(event)


class RunningWatch(Watch):
    """A watch that runs `plan`, and then stale cases after each save, until `stop`.

    If `targets` selects cases, only those of the plan are watched. The plan was made from `targets`, `workspace` and
    `options`. Later runs have these options, too, with the project's current setting of `frozen`.
    """

    def __init__(
        self,
        project: Runner,
        targets: Targets,
        workspace: Workspace,
        plan: Plan,
        options: RunOptions,
        take: Callable[[News], None] = lambda news: None,
    ) -> None:
        selection = targets.selection()
        selects = selection.is_filtered or targets.last_failed or any(target.case_ids for target in selection.targets)
        armed = frozenset(entry.ref.name for entry in plan.entries if selects)
        watching = watch_over(
            project, workspace, lambda: targets.open(self._watcher.snapshot.workspace), lambda: options, armed
        )
        super().__init__(project, watching, take, project.tasks)
        self._runner = project
        self._plan = plan
        self._task: asyncio.Task[None] | None = None
        self._current: Running | None = None

    @property
    def busy(self) -> bool:
        """Whether a run has started and not ended."""
        return self._task is not None

    def stop(self) -> None:
        """Start nothing more. The watch ends when the current run has ended."""
        super().stop()
        if self._current is not None:
            self._current.stop()

    async def _prepare(self) -> None:
        await asyncio.to_thread(self.read_files)

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """Cancel one case, or all cases if `ref` is None. With `kill`, end them at once. Without a run, do nothing."""
        if self._current is not None:
            self._current.cancel(ref, kill=kill)

    def name(self, path: Path) -> str:
        """Return a path for display, relative to the root if it is inside."""
        return one_line(relative_to(path, self._plan.root))

    def start_plan(self, make: Callable[[], Plan]) -> None:
        """Call `make` in a thread, and run its plan in this event loop. If `make` refuses, publish why."""
        self._task = asyncio.create_task(self._make_and_execute(make))

    def supersede(self, refs: Sequence[CaseRef]) -> None:
        """Kill these executions, and start no others of their run."""
        if self._current is not None:
            self._current.stop()
            for ref in refs:
                self._current.cancel(ref, kill=True)

    async def _do(self) -> None:
        try:
            self._execute(self._plan)
            await super()._do()
        finally:
            if self.busy and not self.ended:
                self.cancel(kill=True)
            self.ended = True  # A plan that is being made is not run.
            if self._task is not None:
                await asyncio.gather(self._task, return_exceptions=True)

    async def _make_and_execute(self, make: Callable[[], Plan]) -> None:
        try:
            plan = await asyncio.to_thread(make)
            if not self.ended:
                self._execute(plan)
        except UsageFaultError as fault:
            self._publish(Noticed("error", str(fault), fault.hint))
        except Exception as error:
            self._fail(error)
        finally:
            if self._current is None:
                self._task = None
                self.run_ended()

    def _execute(self, plan: Plan) -> None:
        run = self._current = self._runner.run(plan, self._admit)

        async def whole() -> None:
            try:
                await run.execute()
            except Exception as error:
                self._publish(Noticed("error", f"the run failed: {error!r}"))
            finally:
                self._task = self._current = None
                self.run_ended()

        self._task = asyncio.create_task(whole())

    def _admit(self, event: Event) -> None:
        admitted = self.watching.admit(event)
        if admitted is not None:
            self._publish(admitted)

    def _publish(self, event: Event) -> None:
        self._project.store.apply(event)
        super()._publish(event)
