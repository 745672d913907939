"""Verdicts from earlier sessions and from other programs, and the past runs of each case."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.results.faces import COUNTED
from workbench.text.collecting import collector_paused, exclude_existing_objects
from workbench.text.counting import counted, counted_status
from workbench.text.safe_text import one_line
from workbench.ui.freshness.staleness import NEWS_SECONDS, Staleness
from workbench.ui.freshness.watch import Watch
from workbench.ui.review.controller import Review
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.news import News
from workbench.ui.screen.controller import Controller

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.timer import Timer

    from workbench.agents.workspace import Workspace
    from workbench.events.events import CaseRef
    from workbench.results.changed_verdicts import Earlier
    from workbench.results.run_comparison import ComparedCase, Comparison
    from workbench.store.history.latest import OtherRun, PastRun
    from workbench.store.history.latest import OtherRuns as Runs
    from workbench.ui.screen.view import View
    from workbench.ui.session.recall import Recalled


_MAX_RUNS = 20
"""Maximum number of past runs shown for a case."""
_SHOWN_EVERY = 0.3
"""Seconds between two updates of the screen while runs are read."""
_CURSOR_REST = 0.15
"""Seconds for which the cursor must stay on a case before its past runs are read."""


class PastResults(Controller):
    """Loading of results of past runs, in background threads."""

    def __init__(self, view: "View", news: News, staleness: Staleness, watch: Watch) -> None:
        super().__init__(view)
        self._staleness, self._watch = staleness, watch
        self.verdicts_shown = asyncio.Event()
        """Set once verdicts of earlier sessions are on the screen, or cannot be read. Less urgent work waits for it."""
        self._due: Timer | None = None
        self._comparisons: dict[tuple[str, str], Comparison] = {}
        """Cached comparisons by (ID of the earlier run, ID of the later run)."""
        news.when_taken.append(self.after_news)

    def load_verdicts(self) -> None:
        """Read the newest stored verdicts in the background, and show them."""
        self.session.loading = "results"
        self.view.show_facts()
        self.view.work(self._load_verdicts, "recall")

    async def _load_verdicts(self) -> None:
        try:
            await self._read_verdicts()
        except Exception as error:
            # Stored runs may be damaged in any way. The screen continues without them.
            self.view.notify(one_line(f"earlier verdicts are not shown: {error!r}", limit=400), severity="warning")
        finally:
            exclude_existing_objects()
            self.session.loading = ""
            self.verdicts_shown.set()
            self.view.show_state()
            self.view.show_facts()

    async def _read_verdicts(self) -> None:
        """Read the verdicts and show them, in several steps if that takes long. Then mark stale verdicts."""
        session, workspace = self.session, self.session.workspace
        if workspace is None:
            return
        parts: list[Recalled] = []

        def read() -> "Iterator[Recalled]":
            from workbench.ui.session.recall import recall

            return recall(session.state_dir, workspace)

        with collector_paused():
            reading = await asyncio.to_thread(read)
            due = time.monotonic() + _SHOWN_EVERY
            while (part := await asyncio.to_thread(next, reading, None)) is not None:
                parts.append(part)
                session.recall(part)
                if time.monotonic() > due:
                    self.show_verdicts()
                    due = time.monotonic() + _SHOWN_EVERY
            exclude_existing_objects()
            session.loading = "changes"
            self.show_verdicts()
        self.verdicts_shown.set()
        await asyncio.to_thread(_import_panes)
        if parts:
            await self._read_previous(workspace, parts)
        await self._staleness.begin(part.latest for part in parts)
        self.show_verdicts()

    async def _read_previous(self, workspace: "Workspace", parts: "Sequence[Recalled]") -> None:
        """Find out which verdicts changed in the newest stored run, and mark them unless another run has started.

        `parts` are the runs with the newest verdicts, newest first.
        """
        from workbench.ui.session.recall import recall_previous

        session = self.session

        def read() -> "Earlier":
            return session.changed.compared_with(recall_previous(session.state_dir, workspace, parts))

        with collector_paused():
            earlier = await asyncio.to_thread(read)
        if session.store.run.run_id == parts[0].run.run_id and not session.store.activity.busy:
            session.changed.recall(earlier)
            self._watch.show_flags()

    def show_verdicts(self) -> None:
        """Sort the cases again after verdicts were loaded, and show them."""
        self.view.tree_view.arrange_again()
        self.view.tree_view.show_verdicts()
        self.view.show_state()
        self.view.show_row()
        self.view.show_facts()

    def after_news(self, ended: bool) -> None:
        """Update the past runs if a run has `ended`."""
        if ended:
            self._comparisons.clear()
            self.cursor_moved()

    def cursor_moved(self) -> None:
        """Show the past runs of the case under the cursor, once the cursor stays on it."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        row = self.view.rows.cursor
        record = self.session.record(row) if row is not None and row.case >= 0 else None
        if record is not None and record.finished:
            read = partial(self._read_past_runs, record.ref)
            self._due = self.view.set_timer(_CURSOR_REST, lambda: self.view.work(read, "earlier"))

    async def _read_past_runs(self, ref: "CaseRef") -> None:
        state, record = self.session.state_dir, self.session.store.records.get(ref)
        before = self.session.changed.before(record) if record is not None else None

        def read() -> "tuple[tuple[PastRun, ...], ComparedCase | None]":
            from workbench.results.run_comparison import ComparedCase
            from workbench.store.history.latest import past_runs

            try:
                past = past_runs(state, ref, _MAX_RUNS)
            except OSError as error:
                return (), ComparedCase(trouble=f"{error.filename}: {error.strerror or error}")
            if record is None or before is None:
                return past, None
            return past, self._compared(before.run_id, record.run_id, ref)

        self.view.right.show_past_runs(ref, *await asyncio.to_thread(read))
        self.view.show_state()  # `E` opens the line that changed, and the footer names it.

    def _compared(self, before: str, after: str, ref: "CaseRef") -> "ComparedCase":
        """Return the comparison of a case in two runs. Call it in a thread, because it reads both runs."""
        from workbench.files.run_options import UsageFaultError
        from workbench.results.run_comparison import ComparedCase, compare
        from workbench.store.history.reading import open_summary

        state = self.session.state_dir
        try:
            if (before, after) not in self._comparisons:
                one, other = (open_summary(run, state, state)[0] for run in (before, after))
                self._comparisons[before, after] = compare(one, other, state)
        except UsageFaultError as error:
            return ComparedCase(trouble=str(error))
        found = self._comparisons[before, after]
        case = next((case for case in found.cases if case.ref == ref), None)
        return ComparedCase(case, tuple(file for file in found.files if file.agent == ref.agent))


def _import_panes() -> None:
    """Import these modules ahead of the first key that needs them. Called in a thread."""
    import workbench.ui.detail.pane
    import workbench.ui.review.screen
    import workbench.ui.table.screen
    import workbench.ui.table.sources  # noqa: F401


_BETWEEN = 1.0
"""Seconds between two checks of a run that another program is making."""


class OtherRuns(Controller):
    """Verdicts stored by other programs, shown once the user edits nothing and no run is active here."""

    def __init__(
        self,
        view: "View",
        past_results: PastResults,
        staleness: Staleness,
        watch: Watch,
        review: Review,
        engine: Engine,
    ) -> None:
        super().__init__(view)
        self._past_results, self._staleness, self._watch = past_results, staleness, watch
        self._review, self._engine = review, engine
        self._runs: Runs | None = None
        self._looking = False
        self._again = False
        self._due: Timer | None = None
        self._waiting: list[OtherRun] = []
        self._begun: set[str] = set()
        """IDs of runs whose first verdicts have been shown."""
        self._warned = ""
        """The last warning. A check each second would repeat it."""

    async def begin(self) -> None:
        """Start to look for new runs, and for results of runs in progress. Runs that have ended are not new."""

        def begin() -> "Runs":
            # Imported here, so that the first keys need not wait for it.
            from workbench.store.history.latest import OtherRuns as Runs

            runs = Runs(self.session.state_dir, self._engine.made_run)
            runs.begin()
            return runs

        runs = self._runs = await asyncio.to_thread(begin)
        if runs.active:
            self.look()

    def look(self) -> None:
        """Check for new results of runs, now or after the check in progress."""
        self._again = True
        if self._runs is not None and not self._looking:
            self._looking = True
            self.view.work(partial(self._look, self._runs), "follow runs", exclusive=False)

    async def _look(self, runs: "Runs") -> None:
        try:
            while self._again:
                self._again = False
                self._waiting += await asyncio.to_thread(runs.look)
            await self._show()
        except Exception as error:
            # Runs of others may be damaged in any way. The screen continues without them.
            message = one_line(f"runs of other programs are not shown: {error!r}", limit=400)
            if message != self._warned:
                self._warned = message
                self.view.notify(message, severity="warning")
        finally:
            self._looking = False
        if (runs.active or self._waiting) and self._due is None:
            self._due = self.view.set_timer(_BETWEEN, self._look_again)

    def _look_again(self) -> None:
        self._due = None
        self.look()

    async def _show(self) -> None:
        """Show the waiting results, unless that would disturb the user."""
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
            self._watch.show_flags()
            self._review.after_news(False)
            self._past_results.show_verdicts()
            self._past_results.cursor_moved()
        if any(run.state != "running" for run, _ in found):
            self._staleness.stored()
        self.view.show_facts()

    def _recall(self, news: "Sequence[OtherRun]", workspace: "Workspace") -> "list[tuple[OtherRun, Recalled | None]]":
        """Return the runs with cases of this workspace, each with its new verdicts or None. Call it in a thread."""
        from workbench.ui.session.recall import recall_run

        files = {entry.relative for entry in workspace.evalsets}
        mine = [run for run in news if any(ref.evalset_file in files for ref in run.latest.summary.executions)]
        return [(run, recall_run(run.latest, workspace)) for run in mine]


def run_text(run: "OtherRun") -> str:
    """Return a run as safe text, such as `run of 12 cases in another terminal: 10 passed, 2 failed`."""
    counts = run.latest.summary.counts()
    counts["cancelled"] -= run.total - run.done if run.state == "stopped" else 0
    told = ", ".join(counted_status(status, counts[status]) for status in COUNTED if counts.get(status))
    cases = counted(run.total, "case")
    if run.state == "stopped":
        return f"run in another terminal stopped after {run.done:,} of {cases}: {told or 'no verdicts'}"
    if run.latest.summary.scored_from:
        return f"{cases} scored again in another terminal: {told}"
    return f"run of {cases} in another terminal: {told}"
