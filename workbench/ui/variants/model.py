"""The state of a try on the screen: its copies, its run, and the results so far."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench.events.events import CaseRef, Event, Noticed, RunFinished, RunStarted
from workbench.files.prices import Prices, money, total
from workbench.project.cost_estimate import Estimate
from workbench.project.variants.report import CaseChange, TryReport, report, title_words
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.store import Store
from workbench.text.counting import counted
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.run import MUCH_MONEY
from workbench.ui.running.run_thread import Publish, Refused, Runnable, RunThread, SideRun
from workbench.ui.session.run_labels import seconds

if TYPE_CHECKING:
    from workbench.project.variants.trial import Trial

Stage: TypeAlias = Literal["preparing", "asking", "running", "over", "refused"]
"""`preparing`: copies are being made. `asking`: the user has to confirm the cost. `refused`: the try cannot run."""
MANY_EXECUTIONS = 100
"""Number of executions above which the user has to confirm a try."""


class TryRun(SideRun):
    """The work of a try in the thread of runs: make the copies, run, and wait until the user leaves.

    The copies, which `make` makes, are removed when the user leaves the screen, or when the program ends. If the try
    has many executions or a high known cost, its run waits for `allow`. `state` is the state folder.
    """

    def __init__(
        self,
        runs: RunThread,
        engine: Engine,
        make: Callable[[], "Awaitable[Trial]"],
        prices: Prices | None,
        state: Path,
        wake: Callable[[], None],
    ) -> None:
        self.trial: Trial | None = None
        """The try, or None until its copies are made."""
        self.estimate: Estimate | None = None
        self.asks = False
        """Whether the run waits for the user to confirm its cost."""
        self.closed = threading.Event()
        """Set once the copies are removed, or if there never were any."""
        self._engine, self._make, self._prices, self._state = engine, make, prices, state
        self._allowed, self._left = asyncio.Event(), asyncio.Event()
        super().__init__(runs, self._prepared, wake)

    def allow(self) -> None:
        """Start the run after the user has confirmed its cost."""
        self.asks = False
        self._runs.call(self._allowed.set)

    def leave(self) -> None:
        """Cancel the run unless it has ended, and then remove the copies."""
        if self.closed.is_set():
            return
        if not self.over:
            self.cancel()

        def now() -> None:
            self._allowed.set()
            self._left.set()

        self._runs.call(now)

    async def _prepared(self, publish: Publish) -> Runnable:
        trial = self.trial = await self._made()
        self.estimate = await asyncio.to_thread(trial.estimate, self._state, self._prices or Prices())
        self.asks = len(trial.plan.entries) > MANY_EXECUTIONS or (self.estimate.amount or 0.0) > MUCH_MONEY
        self._wake()
        if self.asks:
            await self._allowed.wait()
        return self._engine.run_trial(trial, publish, self._prices)

    async def _made(self) -> "Trial":
        making = asyncio.ensure_future(self._make())
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            # The thread that copies cannot be interrupted. What it has made is removed after it.
            with contextlib.suppress(Exception):
                self.trial = await making
            raise

    async def _execute(self) -> None:
        try:
            await super()._execute()
            await self._left.wait()
        finally:
            # Also if the thread of runs is closed, which cancels this.
            if self.trial is not None:
                await asyncio.to_thread(self.trial.close)
            self.closed.set()


class Try:
    """The state of a try. `begin` starts it, and gets the function to call on new events.

    `update`, `pairs` and `details` can be slow with many cases, so call them in a thread.
    """

    def __init__(self, begin: Callable[[Callable[[], None]], TryRun], prices: Prices | None) -> None:
        self._begin = begin
        self.prices = prices or Prices()
        self.link: TryRun | None = None
        self.found: TryReport | None = None
        """The results at the last update, or None if the copies were not made yet."""
        self.refused: Refused | None = None
        """The reason why the try cannot run, or None."""
        self.warning: Noticed | None = None
        """The first warning of the run."""
        self.cancelled = False
        """Whether the user has cancelled the run."""
        self._store = Store()
        self._lock = threading.Lock()
        self._began: float | None = None
        self._seconds: float | None = None
        self._over = False
        """Whether the run had ended at the last update."""

    def start(self, wake: Callable[[], None]) -> None:
        """Start to make the copies, and then the run. `wake` is called from another thread on new events."""
        self.link = self._begin(wake)

    @property
    def trial(self) -> "Trial | None":
        """The try, or None until its copies are made."""
        return self.link.trial if self.link is not None else None

    @property
    def stage(self) -> Stage:
        """The current stage of the try."""
        link = self.link
        if self.refused is not None:
            return "refused"
        if link is None or link.estimate is None:
            return "preparing"
        if link.asks:
            return "asking"
        return "over" if self._over else "running"

    @property
    def going(self) -> bool:
        """Whether copies are being made or executions may still run."""
        return self.stage in ("preparing", "running")

    def cancel(self) -> bool:
        """Cancel the run, or kill it the second time. Return whether it was killed."""
        assert self.link is not None
        self.cancelled = True
        return self.link.cancel()

    def leave(self) -> None:
        """Cancel the run unless it has ended, and then remove the copies."""
        if self.link is not None:
            self.link.leave()

    def update(self) -> float:
        """Apply new events of the run, and compute the results so far. Return the seconds that this took."""
        begun = time.monotonic()
        with self._lock:
            over = self.link is not None and self.link.over  # No news comes after that.
            for event in self.link.take() if self.link is not None else ():
                self._take(event)
            self._over = over
            if self.trial is not None:
                self.found = report(self.trial.layout, self._store.current_records(), dict(self.trial.costs))
        return time.monotonic() - begun

    def _take(self, event: Event | Refused) -> None:
        if isinstance(event, Refused):
            self.refused = event
            return
        self._store.apply(event)
        if isinstance(event, RunStarted):
            self._began = time.monotonic()
            if self.trial is not None and (writer := self.trial.store.writers.get(event.run_id)) is not None:
                # Details of executions that have ended can then leave memory.
                self._store.writers[event.run_id] = writer
        elif isinstance(event, RunFinished):
            self._seconds = event.duration_seconds
        elif isinstance(event, Noticed) and event.level != "info" and self.warning is None:
            self.warning = event

    def progress(self) -> str:
        """Return progress, time and cost of the try, such as `210 of 360, 1:12   $0.92`.

        The text is "" while the user has to confirm the cost, and after a refusal.
        """
        if self.stage == "preparing":
            return "copying the project"
        if self.stage in ("asking", "refused") or self.found is None:
            return ""
        ended, planned = sum(one.ended for one in self.found.variants), self.planned
        words = "starting agents" if self._began is None else f"{ended:,} of {planned:,}"
        if self.stage == "over":
            stopped = self.trial is not None and self.trial.stopped
            words = "cancelled" if self.cancelled else "stopped" if stopped else "done"
        cost = total(one.cost for one in self.found.variants) if self.prices else None
        spent = "" if not cost else money(cost, self.prices.currency)
        return "   ".join(filter(None, (", ".join(filter(None, (words, seconds(self.elapsed())))), spent)))

    def elapsed(self) -> float | None:
        """Return the duration of the run so far, in seconds, or None before it starts."""
        if self._began is None or self._seconds is not None:
            return self._seconds
        return time.monotonic() - self._began

    @property
    def planned(self) -> int:
        """The number of planned executions of all variants."""
        return len(self.trial.plan.entries) if self.trial is not None else 0

    @property
    def judged(self) -> int:
        """The number of executions with a verdict."""
        return sum(one.judged for one in self.found.variants) if self.found is not None else 0

    def pairs(self, variant: int, case: CaseRef) -> list[tuple[Execution | None, Execution | None]]:
        """Return the finished executions of a case, as pairs of (first variant, this variant). One may be None.

        If the case got better or worse, one execution of the first pair passed and the other did not. The list is empty
        until the try has results.
        """
        trial = self.trial
        if trial is None or self.found is None:
            return []
        with self._lock:
            records = list(self._store.current_records())
            before, after = (
                [one for one in trial.executions(records, side, case) if one.finished] for side in (0, variant)
            )
        change = next((one for one in self.found.variants[variant].cases if one.case == case), None)
        return paired(before, after, change)

    def details(self, pair: tuple[Execution | None, Execution | None]) -> tuple[CaseRecord | None, CaseRecord | None]:
        """Return a pair of executions with their transcripts. Reads files."""
        with self._lock:
            before, after = (None if one is None else read_details(one) for one in pair)
        return before, after


def paired(
    before: Sequence[Execution], after: Sequence[Execution], change: CaseChange | None
) -> list[tuple[Execution | None, Execution | None]]:
    """Return executions in pairs, with None where one side has fewer.

    Pairs that show how the case got better or worse come first.
    """
    if change is not None and change.direction in ("better", "worse"):
        passes_first = change.direction == "worse"
        before = sorted(before, key=lambda one: (one.state == "passed") is not passes_first)
        after = sorted(after, key=lambda one: (one.state == "passed") is passes_first)
    return list(zip_longest(before, after))


def question(link: TryRun, trial: "Trial") -> str:
    """Return the size and cost of a try: `2 variants × 60 cases × 3 runs = 360 executions, about $0.60`."""
    executions = counted(len(trial.plan.entries), "execution")
    cost = link.estimate.cost_words if link.estimate is not None else ""
    return f"{title_words(*trial.layout.size)} = {executions}" + (f", {cost}" if cost else "")
