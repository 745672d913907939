"""What earlier runs say: the newest verdicts when the workbench opens, and how each case came out before."""

import asyncio
from typing import TYPE_CHECKING

from workbench.collecting import collector_paused
from workbench.text import one_line
from workbench.ui.screens.watch_actions import WatchActions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.timer import Timer

    from workbench.events import CaseRef
    from workbench.history.case_rows import EarlierRun, EarlierRuns
    from workbench.project.staleness import Changes, Name
    from workbench.ui.history.recall import Recalled

_EARLIER = 20
"""Runs of which a case tells what they said of it."""
_RESTS = 0.15
"""Seconds that the cursor rests before they are read."""


class RecallActions(WatchActions):
    """Reads in threads, beside everything else."""

    # Earlier sessions

    verdicts_shown: asyncio.Event
    """Set as soon as the verdicts of earlier sessions are on the screen: what is less urgent waits for them."""

    def recall(self) -> None:
        """Shows the newest verdicts that are kept, as soon as they are read; nothing waits for that."""
        self.session.loading = "results"
        self.verdicts_shown = asyncio.Event()
        self.show_facts()
        self.run_worker(self._recall(), group="recall", exclusive=True)

    async def _recall(self) -> None:
        try:
            await self._read_verdicts()
        except Exception as error:
            # What is kept may be damaged in any way; the screen goes on without it.
            self.notify(
                one_line(f"earlier runs cannot be read: {error!r}", limit=400), severity="warning", markup=False
            )
        finally:
            self.session.loading = ""
            self.verdicts_shown.set()
            self.cases.show_nothing()
            self.show_facts()

    async def _read_verdicts(self) -> None:
        """Shows the verdicts of one run after the other, and then which of them are stale."""
        session, workspace = self.session, self.session.workspace
        if workspace is None:
            return
        parts: list[Recalled] = []

        def read() -> "Iterator[Recalled]":
            from workbench.ui.history.recall import recall

            return recall(session.state_dir, workspace, session.store.shelf)

        def compare() -> "dict[Name, Changes]":
            from workbench.project.staleness import stale_cases

            return stale_cases([part.latest for part in parts], workspace)

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
        session.take_stale(await asyncio.to_thread(compare))
        self._stale = len(session.stale)
        self.show_flags()
        self._show_verdicts()

    def _show_verdicts(self) -> None:
        verdicts = self.session.verdicts
        changed, verdicts.changed = verdicts.changed, set()
        self.tree_view.arrange_again()
        self.tree_view.verdicts_changed(changed)
        self.cases.show_nothing()
        self.cases.show_state()
        self.show_row()
        self.show_facts()

    # Earlier runs of a case

    _due_earlier: "Timer | None" = None
    _stale = 0
    _earlier_runs: "EarlierRuns | None" = None

    def show_row(self) -> None:
        super().show_row()
        self._want_earlier()

    def after_news(self, ended: bool) -> None:
        super().after_news(ended)
        if len(self.session.stale) != self._stale:
            # What runs is no longer of an earlier session.
            self._stale = len(self.session.stale)
            self.show_flags()
        if ended:
            self._want_earlier()

    def _want_earlier(self) -> None:
        """Has it told what earlier runs said of the case, once the cursor rests."""
        if self._due_earlier is not None:
            self._due_earlier.stop()
            self._due_earlier = None
        row = self.tree_view.row
        record = self.session.record(row) if row is not None and row.case >= 0 else None
        if record is not None and record.finished:
            ref = record.ref
            self._due_earlier = self.set_timer(_RESTS, lambda: self._tell_earlier(ref))

    def _tell_earlier(self, ref: "CaseRef") -> None:
        self.run_worker(self._read_earlier(ref), group="earlier", exclusive=True)

    async def _read_earlier(self, ref: "CaseRef") -> None:
        state = self.session.state_dir

        def read() -> "tuple[EarlierRun, ...]":
            from workbench.history.case_rows import EarlierRuns

            if self._earlier_runs is None:
                self._earlier_runs = EarlierRuns(state)
            return self._earlier_runs.of((ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id), _EARLIER)

        earlier = await asyncio.to_thread(read)
        if self.right.shows_case:
            self.right.detail.show_earlier(ref, earlier)


def _import_panes() -> None:
    """Import what shows a case, in a thread: else the first case would wait for it."""
    import workbench.ui.detail.pane  # noqa: F401
