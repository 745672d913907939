"""A watch without a screen: runs targets, and after each save the cases that it can affect."""

import asyncio
from collections.abc import Callable
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
from workbench.project.watching import Start, Watched, watch_over
from workbench.text import one_line


@dataclass(frozen=True, slots=True)
class Waiting:
    """Stale cases that cost more than the limit: they wait until `Watch.allow` is called. There are `total` cases."""

    estimate: Estimate
    total: int


News: TypeAlias = Event | Saved | Start | Waiting
"""What a watch tells: events of its runs as the store has them, saves, and what it starts or would start."""


class Runner(Watched, Protocol):
    """The project, as far as a watch that runs cases needs it: `workbench.project.project.Project`."""

    tasks: set[asyncio.Task[None]]

    def run(self, plan: Plan, publish: Callable[[Event], None] | None = None) -> Running: ...

    def renew(self) -> None: ...

    def look_back(self, workspace: Workspace) -> None: ...


class Watch(Followed[News]):
    """Executes `plan`, then what saves make stale, until `stop`. Only named cases are watched if `targets` names some.

    `targets` and `workspace` are those that the plan was made of.
    """

    def __init__(
        self,
        project: Runner,
        targets: Targets,
        workspace: Workspace,
        plan: Plan,
        take: Callable[[News], None] = lambda news: None,
    ) -> None:
        super().__init__(take, project.tasks)
        self._project = project
        self._plan = plan
        selection = targets.selection()
        named = bool(selection.case_ids) or any(target.case_ids for target in selection.targets)
        armed = frozenset(entry.ref.name for entry in plan.entries if named)
        self.watching = watch_over(
            project, workspace, lambda: targets.open(self._watcher.snapshot.workspace), plan.options, armed
        )
        self._watcher = self.watching.watcher
        self.changes = self._watcher.changes
        self._task: asyncio.Task[None] | None = None
        self._current: Running | None = None
        self._wanted = asyncio.Event()
        self.ended = False
        self._told: Estimate | None = None
        """The cost that waits to be allowed, and was told."""

    @property
    def is_running(self) -> bool:
        """Whether cases are running or being scored."""
        return self._task is not None and not self._task.done()

    async def _do(self) -> None:
        watching = asyncio.create_task(self._take_saves())
        try:
            self._execute(self._plan)
            while not self.ended:
                await self._step()
        finally:
            self._watcher.close()
            if self.is_running and not self.ended:
                self.cancel(kill=True)
            await asyncio.gather(watching, *([self._task] if self._task is not None else []), return_exceptions=True)

    def stop(self) -> None:
        """Start nothing more; the watch ends when what runs has ended."""
        self.ended = True
        self._wanted.set()
        if self._current is not None:
            self._current.stop()

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """End what runs: one case, or with None all of them."""
        if self._current is not None:
            self._current.cancel(ref, kill=kill)

    def allow(self) -> None:
        """Start what waits because of its cost."""
        self.watching.board.allow()
        self._wanted.set()

    def name(self, path: Path) -> str:
        """Return a path as it is shown: relative to the root, if it is in it."""
        return one_line(relative_to(path, self._plan.root))

    async def _step(self) -> None:
        """Wait until there may be something to start, and start it."""
        await self._wanted.wait()
        self._wanted.clear()
        if self._task is not None and self._task.done():
            self._task, self._current = None, None
            await asyncio.to_thread(self._watcher.learn)
        if self._task is not None or self.ended:
            return
        start, waiting = self.watching.next(busy=False), self.watching.board.waiting
        if start is not None:
            self._tell(start)
            self._begin(start)
        elif waiting is not None and waiting != self._told:
            self._tell(Waiting(waiting, len(self._watcher.snapshot.workspace.case_names)))
        self._told = waiting

    def _begin(self, start: Start) -> None:
        self.watching.started(start.job)
        try:
            plan = self.watching.plan(start.job)
        except UsageFaultError as fault:
            self._wanted.set()  # What else is stale may still be started.
            self._publish(Noticed("error", str(fault), fault.hint))
            return
        self._execute(plan)

    def _execute(self, plan: Plan) -> None:
        run = self._current = self._project.run(plan, self._admit)

        async def whole() -> None:
            try:
                await run.execute()
            finally:
                self.watching.end_start()
                self._wanted.set()

        self._task = asyncio.create_task(whole())

    async def _take_saves(self) -> None:
        try:
            await asyncio.to_thread(self._project.look_back, self._watcher.snapshot.workspace)
            async for saved in self._watcher.saves():
                await self.watching.announced.wait()
                self._take_save(saved)
        except Exception as error:
            self._publish(Noticed("error", f"the watch failed: {error!r}"))
            self.stop()

    def _take_save(self, saved: Saved) -> None:
        if saved.environments:
            self._project.renew()
        obsolete = () if saved.trouble else self.watching.take(saved)
        if obsolete and self._current is not None:
            self._current.stop()
            for ref in obsolete:
                self._current.cancel(ref, kill=True)
        if not saved.trouble:
            self._tell(saved)
        for notice in self.watching.notices(saved, self.name):
            self._publish(notice)
        self._wanted.set()

    def _admit(self, event: Event) -> None:
        admitted = self.watching.admit(event)
        if admitted is not None:
            self._publish(admitted)

    def _publish(self, event: Event) -> None:
        self._project.store.apply(event)
        self._tell(event)
