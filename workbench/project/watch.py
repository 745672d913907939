"""The driver of a watch: takes in each save, and starts what it makes stale. Surfaces consume its news."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from workbench.agents.walk import relative_to
from workbench.agents.workspace import Workspace
from workbench.engine.plan.plan import Plan
from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.watch.board import Estimate
from workbench.engine.watch.watcher import Saved
from workbench.events import CaseRef, Event, Noticed
from workbench.project.running import Followed, Running
from workbench.project.targets import Targets
from workbench.project.watching import Start, Watched, Watching, watch_over
from workbench.text import one_line


@dataclass(frozen=True, slots=True)
class Waiting:
    """Stale cases that cost more than the limit: they wait until `Watch.allow` is called. There are `total` cases."""

    estimate: Estimate
    total: int


News: TypeAlias = Event | Saved | Start | Waiting
"""What a watch tells: saves, notices, and what it starts or would start. One that runs its cases itself also tells
the events of its runs, as the store has them."""


class Runner(Watched, Protocol):
    """The project, as far as a watch that runs its cases itself needs it: `workbench.project.project.Project`."""

    tasks: set[asyncio.Task[None]]

    def run(self, plan: Plan, publish: Callable[[Event], None] | None = None) -> Running: ...


class Runs(Protocol):
    """The place where the runs of a watch happen. It hands their events to `Watching.admit` before the store takes
    them, and calls `Watch.run_ended` after each run, also after those that the user started."""

    @property
    def busy(self) -> bool:
        """Whether a run is going on or asked for."""

    def start_plan(self, make: Callable[[], Plan]) -> None:
        """Start the run whose plan `make` returns. A plan that is refused ends at once, too."""

    def supersede(self, refs: Sequence[CaseRef]) -> None:
        """Kill these executions, and start no others of their run."""


async def _nothing() -> None:
    """Wait for nothing."""


class Watch(Followed[News]):
    """Takes in saves until `stop`, and has `runs` do what they make stale. `prepare` is awaited before the first save
    is taken in."""

    def __init__(
        self,
        project: Watched,
        watching: Watching,
        runs: Runs,
        take: Callable[[News], None],
        tasks: set[asyncio.Task[None]],
        prepare: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        super().__init__(take, tasks)
        self.watching = watching
        self.ended = False
        self._project = project
        self._runs = runs
        self._prepare = prepare
        self._watcher = watching.watcher
        self._told: Estimate | None = None
        """The cost that waits to be allowed, and was told."""
        changes, root = self._watcher.changes, self._watcher.snapshot.workspace.root
        changes.on_polling = lambda: self._publish(Noticed("info", f"polling for changes: {changes.polling}"))
        changes.on_gone = lambda: self._publish(
            Noticed("warning", f"{root} is not there any more; the watch waits for it")
            if changes.gone
            else Noticed("info", f"{root} is there again")
        )

    async def _do(self) -> None:
        try:
            await asyncio.to_thread(self._project.look_back, self._watcher.snapshot.workspace)
            await self._prepare()
            async for saved in self._watcher.saves():
                await self.watching.announced.wait()
                if self.ended:
                    return
                self._take_save(saved)
        except Exception as error:
            self._fail(error)
        finally:
            self._watcher.close()

    def stop(self) -> None:
        """Take in no more saves, and start nothing more."""
        self.ended = True
        self._watcher.close()
        self.watching.announced.set()

    def allow(self) -> None:
        """Start what waits because of its cost."""
        self.watching.board.allow()
        self._go_on(self.watching.next(self._runs.busy))

    def run_ended(self) -> None:
        """Take note that a run has ended: learn which files it read, and start what waits for its end."""
        if not self.ended:
            task = asyncio.create_task(self._learn())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._go_on(self.watching.next(self._runs.busy))

    def _take_save(self, saved: Saved) -> None:
        if saved.environments:
            self._project.renew()
        obsolete = [] if saved.trouble else self.watching.take(saved)
        if obsolete:
            self._runs.supersede(obsolete)
        start = self.watching.next(self._runs.busy)  # Who is told of the save sees what waits.
        self._tell(saved)
        for notice in self.watching.notices(saved):
            self._publish(notice)
        self._go_on(start)

    def _go_on(self, start: Start | None) -> None:
        waiting = self.watching.board.waiting
        if start is not None and not self.ended:
            self.watching.started(start.job)
            self._tell(start)
            self._runs.start_plan(lambda: self.watching.plan(start.job))
        elif waiting is not None and waiting != self._told:
            self._tell(Waiting(waiting, len(self._watcher.snapshot.workspace.case_names)))
        self._told = waiting

    async def _learn(self) -> None:
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
    """Executes `plan`, then what saves make stale, all in the event loop of the watch, until `stop`.

    Only named cases are watched if `targets` names some. `targets` and `workspace` are those that the plan was made of.
    """

    def __init__(
        self,
        project: Runner,
        targets: Targets,
        workspace: Workspace,
        plan: Plan,
        take: Callable[[News], None] = lambda news: None,
    ) -> None:
        selection = targets.selection()
        named = bool(selection.case_ids) or any(target.case_ids for target in selection.targets)
        armed = frozenset(entry.ref.name for entry in plan.entries if named)
        watching = watch_over(
            project, workspace, lambda: targets.open(self._watcher.snapshot.workspace), plan.options, armed
        )
        super().__init__(project, watching, self, take, project.tasks)
        self._runner = project
        self._plan = plan
        self._task: asyncio.Task[None] | None = None
        self._current: Running | None = None

    @property
    def busy(self) -> bool:
        """Whether cases are running or being scored."""
        return self._task is not None

    def stop(self) -> None:
        """Start nothing more; the watch ends when what runs has ended."""
        super().stop()
        if self._current is not None:
            self._current.stop()

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """End what runs: one case, or with None all of them."""
        if self._current is not None:
            self._current.cancel(ref, kill=kill)

    def name(self, path: Path) -> str:
        """Return a path as it is shown: relative to the root, if it is in it."""
        return one_line(relative_to(path, self._plan.root))

    def start_plan(self, make: Callable[[], Plan]) -> None:
        """Start the run whose plan `make` returns. A plan that is refused ends at once, too."""
        try:
            self._execute(make())
        except UsageFaultError as fault:
            self._publish(Noticed("error", str(fault), fault.hint))
            asyncio.get_running_loop().call_soon(self.run_ended)

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
            await asyncio.gather(*([self._task] if self._task is not None else []), return_exceptions=True)

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
