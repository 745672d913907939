"""Runs of other programs in the same project: their verdicts appear, and a run in progress is named in the bar."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.results.faces import COUNTED
from workbench.text.counting import counted, counted_status
from workbench.text.safe_text import one_line
from workbench.ui.freshness.follow import NEWS_SECONDS
from workbench.ui.freshness.past_results import PastResults
from workbench.ui.freshness.staleness import Staleness
from workbench.ui.running.engine_run import Engine
from workbench.ui.session.view import Controller, Stoppable, View

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.store.history.other_runs import OtherRun
    from workbench.store.history.other_runs import OtherRuns as Runs
    from workbench.ui.session.recall import Recalled

_BETWEEN = 1.0
"""Seconds between two looks at a run that another program is making."""


class OtherRuns(Controller):
    """Verdicts that other programs store. They wait while the user edits something, or while a run is active here."""

    def __init__(self, view: View, past_results: PastResults, staleness: Staleness, engine: Engine) -> None:
        super().__init__(view)
        self._past_results, self._staleness, self._engine = past_results, staleness, engine
        self.when_shown: list[Callable[[], None]] = []
        """Called after new verdicts were put on the screen."""
        self._runs: Runs | None = None
        self._looking = False
        self._again = False
        self._due: Stoppable | None = None
        self._waiting: list[OtherRun] = []
        self._begun: set[str] = set()
        """Runs whose first verdicts are shown."""

    async def begin(self) -> None:
        """Take the runs as known that are on disk now."""

        def begin() -> "Runs":
            # Imported here, so that the first keys need not wait for it.
            from workbench.store.history.other_runs import OtherRuns as Runs

            runs = Runs(self.session.state_dir, self._engine.made_run)
            runs.begin()
            return runs

        runs = self._runs = await asyncio.to_thread(begin)
        if runs.active:
            self.look()

    def look(self) -> None:
        """Look for news of runs now, or after the current look."""
        self._again = True
        if self._runs is not None and not self._looking:
            self._looking = True
            self.view.work(self._look(self._runs), "follow runs", exclusive=False)

    async def _look(self, runs: "Runs") -> None:
        try:
            while self._again:
                self._again = False
                self._waiting += await asyncio.to_thread(runs.look)
            await self._show()
        except Exception as error:
            # Runs of others may be damaged in any way. The screen continues without them.
            self.view.notify(one_line(f"runs of others cannot be read: {error!r}", limit=400), severity="warning")
        finally:
            self._looking = False
        if (runs.active or self._waiting) and self._due is None:
            self._due = self.view.set_timer(_BETWEEN, self._look_again)

    def _look_again(self) -> None:
        self._due = None
        self.look()

    async def _show(self) -> None:
        """Show the news that waits, unless it would disturb."""
        workspace = self.session.workspace
        busy = self.session.store.activity.busy or self.session.is_loading
        if not self._waiting or workspace is None or busy or self.view.occupied:
            return
        news, self._waiting = self._waiting, []
        found = await asyncio.to_thread(self._recall, news, workspace)
        if self.session.workspace is not workspace or self.session.store.activity.busy:
            self._waiting = news + self._waiting
            return
        for run, recalled in found:
            going_on = run.state == "running"
            self.session.elsewhere = (run.done, run.total) if going_on else None
            if recalled is not None:
                self.session.adopt(recalled, ended=not going_on, continues=run.run_id in self._begun)
                self._begun.add(run.run_id)
            if not going_on:
                self.view.say(run_text(run), seconds=NEWS_SECONDS)
        if any(recalled is not None for _, recalled in found):
            for notify in self.when_shown:
                notify()
            self._past_results.show_adopted()
        if any(run.state != "running" for run, _ in found):
            self._staleness.stored()
        self.view.show_facts()

    def _recall(self, news: "Sequence[OtherRun]", workspace: "Workspace") -> "list[tuple[OtherRun, Recalled | None]]":
        """Return the runs that concern the workspace, with their new verdicts. Runs in a thread."""
        from workbench.ui.session.recall import recall_run

        files = {entry.relative for entry in workspace.evalsets}
        mine = [run for run in news if any(ref.evalset_file in files for ref in run.latest.summary.executions)]
        return [(run, recall_run(run.latest, workspace)) for run in mine]


def run_text(run: "OtherRun") -> str:
    """Return `run of 12 cases in another terminal: 10 passed, 2 failed`. Safe text."""
    counts = run.latest.summary.counts()
    counts["cancelled"] -= run.total - run.done if run.state == "stopped" else 0
    told = ", ".join(counted_status(status, counts[status]) for status in COUNTED if counts.get(status))
    what = "scored again" if run.latest.summary.scored_from else "run"
    if run.state == "stopped":
        return f"run in another terminal stopped after {run.done:,} of {counted(run.total, 'case')}: {told or 'none'}"
    if what == "run":
        return f"run of {counted(run.total, 'case')} in another terminal: {told}"
    return f"{counted(run.total, 'case')} scored again in another terminal: {told}"
