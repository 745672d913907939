"""The watch of the screen. Its cases run in the same thread as all other runs of the screen."""

from collections.abc import Awaitable, Callable, Sequence

from workbench.events.events import CaseRef
from workbench.project.watch import News, Watch
from workbench.project.watching import Watched, Watching
from workbench.run.plan.plan import Plan
from workbench.ui.running.run import Run


class ScreenWatch(Watch):
    """A watch that starts its cases with `run`. `prepare` is awaited before the first save is handled."""

    def __init__(
        self,
        project: Watched,
        watching: Watching,
        run: Run,
        take: Callable[[News], None],
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(project, watching, take, set())
        self._run = run
        self._before_saves = prepare

    @property
    def busy(self) -> bool:
        """Whether a run is active or requested, by the watch or by the user."""
        return self._run.busy

    def start_plan(self, make: Callable[[], Plan]) -> None:
        """Start a run in the run's thread. `make` returns its plan."""
        self._run.start_plan(make)

    def supersede(self, refs: Sequence[CaseRef]) -> None:
        """Kill these executions, and start no others of their run."""
        self._run.thread.cancel(list(refs), kill=True, stop=True)

    async def _prepare(self) -> None:
        await self._before_saves()
