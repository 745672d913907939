"""Earlier runs: their verdicts when the workbench opens, and how each case came out in them."""

import asyncio
from typing import TYPE_CHECKING

from workbench.collecting import collector_paused
from workbench.text import one_line
from workbench.ui.controllers.staleness import Staleness
from workbench.ui.controllers.view import Controller, Stoppable, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workbench.events import CaseRef
    from workbench.history.case_rows import PastRun, PastRuns
    from workbench.ui.history.recall import Recalled

_EARLIER = 20
"""Runs of which a case tells what they said of it."""
_RESTS = 0.15
"""Seconds that the cursor rests before they are read."""


class Earlier(Controller):
    """Verdicts of earlier runs, read in threads beside everything else."""

    def __init__(self, view: View, staleness: Staleness) -> None:
        super().__init__(view)
        self._staleness = staleness
        self.verdicts_shown = asyncio.Event()
        """Set as soon as the verdicts of earlier sessions are on the screen: what is less urgent waits for them."""
        self._due: Stoppable | None = None
        self._runs: PastRuns | None = None

    # Earlier sessions

    def recall(self) -> None:
        """Show the newest kept verdicts as soon as they are read. Nothing waits for that."""
        self.session.loading = "results"
        self.view.show_facts()
        self.view.work(self._recall(), "recall")

    async def _recall(self) -> None:
        try:
            await self._read_verdicts()
        except Exception as error:
            # What is kept may be damaged in any way; the screen goes on without it.
            self.view.notify(one_line(f"earlier runs cannot be read: {error!r}", limit=400), severity="warning")
        finally:
            self.session.loading = ""
            self.verdicts_shown.set()
            self.view.show_state()
            self.view.show_facts()

    async def _read_verdicts(self) -> None:
        """Show the verdicts of one run after the other, and then which of them are stale."""
        session, workspace = self.session, self.session.workspace
        if workspace is None:
            return
        parts: list[Recalled] = []

        def read() -> "Iterator[Recalled]":
            from workbench.ui.history.recall import recall

            return recall(session.state_dir, workspace, session.store.detail_cache)

        with collector_paused():
            reading = await asyncio.to_thread(read)
            while (part := await asyncio.to_thread(next, reading, None)) is not None:
                parts.append(part)
                session.recall(part)
                self._show_verdicts()
        session.loading = "changes"
        self._show_verdicts()
        self.verdicts_shown.set()
        await asyncio.to_thread(_import_panes)
        await self._staleness.begin(part.latest for part in parts)
        self._show_verdicts()

    def _show_verdicts(self) -> None:
        self.view.tree_view.arrange_again()
        self.view.tree_view.show_verdicts()
        self.view.show_state()
        self.view.show_row()
        self.view.show_facts()

    # Earlier runs of a case

    def after_news(self, ended: bool) -> None:
        """Follow what runs now. `ended`: a run ended with the news."""
        if ended:
            self.want()

    def want(self) -> None:
        """Show what earlier runs said of the case under the cursor, once the cursor rests."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        row = self.view.rows.cursor
        record = self.session.record(row) if row is not None and row.case >= 0 else None
        if record is not None and record.finished:
            ref = record.ref
            self._due = self.view.set_timer(_RESTS, lambda: self.view.work(self._read_earlier(ref), "earlier"))

    async def _read_earlier(self, ref: "CaseRef") -> None:
        state = self.session.state_dir

        def read() -> "tuple[PastRun, ...]":
            from workbench.history.case_rows import PastRuns

            if self._runs is None:
                self._runs = PastRuns(state)
            return self._runs.of((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id), _EARLIER)

        earlier = await asyncio.to_thread(read)
        self.view.right.show_past_runs(ref, earlier)


def _import_panes() -> None:
    """Import what shows a case, in a thread. Else the first case would wait for it."""
    import workbench.ui.detail.pane  # noqa: F401
