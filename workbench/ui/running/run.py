"""Actions on the session's run: start, score again, resume, cancel. There is one run at a time."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from workbench.events.events import CaseRef, Event, RunFinished, RunStarted
from workbench.files.prices import Prices
from workbench.store.rates import STARTING_AGENTS
from workbench.text.counting import counted
from workbench.ui.dialogs.items import Item
from workbench.ui.running.engine_run import Engine, RepeatOptions
from workbench.ui.running.run_thread import Build, RunThread, cancel_words
from workbench.ui.screen.controller import Controller
from workbench.ui.screen.folder import Folder
from workbench.ui.session.next_run import Draft

if TYPE_CHECKING:
    from workbench.run.plan.plan import Plan
    from workbench.store.inputs import Effect
    from workbench.ui.screen.view import View

Targets: TypeAlias = Sequence[tuple[int, int]]
"""Cases as pairs of indexes, (evalset, case)."""
MANY_CASES = 100
"""Number of cases above which the user has to confirm a run."""
MUCH_MONEY = 1.0
"""Known cost above which the user has to confirm a run, in the currency of the price table."""
_OFFER_SECONDS = 10.0
"""Seconds for which the offer to resume a run replaces the keys."""


@dataclass(frozen=True)
class Request:
    """A run of these cases, each `times` times, or the run that `build` returns for them. `scoring` runs no agent."""

    targets: Targets
    build: Callable[[Targets], Build] | None = None
    scoring: bool = False
    times: int = 1

    @property
    def label(self) -> str:
        """The text in the bar until the run starts."""
        return "scoring again" if self.scoring else STARTING_AGENTS


class Run(Controller):
    """The actions that start and cancel runs.

    They act on the cases that `view.targets` returns: usually the marked ones, else those of the current row. Runs have
    their own thread, and `News` receives their events.
    """

    def __init__(self, view: "View", folder: Folder, engine: Engine, thread: RunThread) -> None:
        super().__init__(view)
        self.thread = thread
        self._folder, self._engine = folder, engine
        self._draft_in_use = Draft()
        """The unsaved criteria used by the run that is starting."""
        self.wanted_when_read = False
        """Whether the user pressed `r` before the folder was read."""
        self.session.store.subscribe(self._take)

    def run(self) -> None:
        """Run the cases. If the folder is still being read, do it afterwards."""
        session = self.session
        if session.reading or (session.workspace is None and not session.read_error):
            self.wanted_when_read = True
            self.view.say("the run starts once the folder is read")
        else:
            self.run_cases(self.view.targets("run"))

    def start_if_wanted(self) -> None:
        """Start the run that was requested before the folder was read."""
        if self.wanted_when_read:
            self.wanted_when_read = False
            self.run()

    def rerun(self) -> None:
        """Rerun the cases that failed or ended in an error."""
        targets = self.view.targets("rerun")
        if targets and not self.session.is_loading:
            self.run_cases(targets)
        else:
            self.view.say(self.session.why_nothing_found("nothing failed here"))

    def run_cases(self, targets: Targets) -> None:
        """Run these cases."""
        self.start(Request(targets))

    def repeat(self) -> None:
        """Ask how often to run the cases, and start the run."""
        self.repeat_cases(self.view.targets("repeat"))

    def repeat_cases(self, targets: Targets) -> None:
        """Ask how often to run these cases, and start the run."""
        from workbench.ui.running.dialogs import RepeatScreen

        names = self.view.rows.names()

        def repeat(times: RepeatOptions | None) -> None:
            if times is not None:
                now = self.view.rows.current_pairs(names, targets)
                # The dialog has said how many cases there are.
                self.start(Request(now, partial(self._engine.build, times=times), times=times.runs), most=len(targets))

        if self.can_start(targets):
            self.view.push(RepeatScreen(f"repeat {counted(len(targets), 'case')}"), repeat)

    def score(self) -> None:
        """Score the cases again without running the agent."""
        self._score("score", self._engine.rescore)

    def score_afresh(self) -> None:
        """Score the cases again without cached judge answers."""
        self._score("score_afresh", partial(self._engine.rescore, fresh=True))

    def _score(self, action: str, build: Callable[[Targets], Build]) -> None:
        targets = self.view.targets(action)
        if targets or self.busy:
            self.start(Request(targets, build, scoring=True))
        else:
            self.view.say(self.session.why_nothing_found("nothing here has run"))

    def cancel(self) -> None:
        """Cancel the marked or current cases, or kill them the second time."""
        self.cancel_cases(self.view.targets("cancel"))

    def cancel_cases(self, targets: Targets) -> None:
        """Cancel these cases, or kill them the second time."""
        refs = self.session.unfinished(targets)
        self._cancel(refs, refs, counted(len(refs), "case"))

    def cancel_all(self) -> None:
        """Cancel the run, or kill it the second time."""
        store = self.session.store
        self._cancel(None, store.current if store.activity.running else [], "the run")

    def resume(self) -> None:
        """Resume the newest run if it was interrupted."""
        if self.workspace() is not None and self.can_start():
            self.session.starting = STARTING_AGENTS
            self.session.store.request_run()
            self.session.store.hand_over(self.thread.start(self._engine.resume()))
            self.view.show_facts()

    async def offer_resuming(self) -> None:
        """If the newest run can be resumed, show how. The user decides whether to resume it."""
        description = await asyncio.to_thread(self._engine.resumable)
        if description and not self.session.store.activity.running:
            _, _, results = description.partition(": ")
            self.view.say(f"“resume run” (:) continues the last run: {results}", seconds=_OFFER_SECONDS)

    def score_by_new_references(self, targets: Targets) -> None:
        """Score the transcripts of these cases against the expectations in their current files."""
        build = partial(self._engine.rescore, references_of_now=True)
        self.start(Request(targets, build, scoring=True), confirmed=True)

    def machines(self) -> None:
        """Show the machines of the newest run."""
        from workbench.ui.running.dialogs import MachinesScreen

        self.view.push(MachinesScreen(self.thread.machines))

    def start(self, request: Request, *, most: int = MANY_CASES, confirmed: bool = False) -> None:
        """Start a run. If it has more than `most` cases or a high known cost and is not `confirmed`, ask first.

        If a file has changed, the folder is read again. If an evalset has no agent, the user is asked for one.
        """
        if not self.can_start(request.targets):
            return
        if confirmed or (len(request.targets) <= most and not self.session.prices):
            self._request(request)
        else:
            self.view.work(partial(self._confirm, request, most), "confirm", exclusive=False)

    async def _confirm(self, request: Request, most: int) -> None:
        """Start the run. If it has many cases or a high known cost, ask first."""
        names, count = self.view.rows.names(), len(request.targets)
        amount, cost = await asyncio.to_thread(self._cost, request)
        if count > most or amount > MUCH_MONEY:
            what = f"{'score' if request.scoring else 'run'} {counted(count, 'case')}"
            what += f" {counted(request.times, 'time')}" if request.times > 1 else ""
            items = [Item(what, True, help=cost), Item("go back", False)]
            if not await self.view.pick(f"{what}?", items, placeholder=""):
                return
            request = replace(request, targets=self.view.rows.current_pairs(names, request.targets))
            if not self.can_start(request.targets):
                return
        self._request(request)

    def _cost(self, request: Request) -> tuple[float, str]:
        """Return the cost of a run (0.0 if unknown), and a text on it, estimated from past runs. Reads files."""
        from workbench.project.cost_estimate import estimate

        targets, times = request.targets, request.times
        records = [record for pair in targets for record in self.session.verdicts.records(*pair) if record.has_verdict]
        records = records or [record for record in list(self.session.store.records.values()) if record.has_verdict]
        draft, prices = self.session.draft, self.session.prices or Prices()
        configs = {entry.relative: draft.apply(entry.criteria).config for entry in self.session.opened.evalsets}
        depth: Effect = "score" if request.scoring else "run"
        found = estimate(len(targets), records, depth, prices, times, lambda ref: configs.get(ref.evalset_file))
        return found.amount or 0.0, found.cost_words

    def _request(self, request: Request) -> None:
        self.session.starting = request.label
        self.session.store.request_run()
        self.view.show_facts()
        self.view.work(partial(self._start, request), "start", exclusive=False)

    @property
    def busy(self) -> bool:
        """Whether a run is active or requested."""
        return self.session.store.activity.busy

    def start_plan(self, make: "Callable[[], Plan]") -> None:
        """Start the run whose plan `make` returns. The watch has already requested it in the store."""
        self.session.store.hand_over(self.thread.start(self._engine.planned(make)))

    async def _start(self, request: Request) -> None:
        rows, targets, build = self.view.rows, request.targets, request.build or self._engine.build
        names = rows.names()
        ready = not self.session.outdated() or await self._folder.read_again()
        if ready:
            await self._folder.give_agents(rows.current_pairs(names, targets))
            targets = rows.current_pairs(names, targets)
        if ready and targets:
            self._draft_in_use = self.session.draft.copy()
            self.session.store.hand_over(self.thread.start(build(targets)))
        else:
            self.session.store.drop_request()
            self.view.show_facts()

    def can_start(self, targets: Targets | None = None) -> bool:
        """Return whether a run can start. If not, show why. Without `targets`, only check that no run is active."""
        if self.session.store.activity.busy:
            self.view.say("a run is active: x cancels it", warning=True)
            return False
        if targets is not None and not targets:
            if self.workspace() is not None:
                self.view.say("no cases here")
            return False
        return True

    def _cancel(self, refs: list[CaseRef] | None, affected: list[CaseRef], what: str) -> None:
        affected = [ref for ref in affected if not self.session.store.records[ref].finished]
        if not self.session.store.activity.running or not affected:
            self.view.say("nothing is running here")
            return
        kill = self.session.cancelling.issuperset(affected)
        self.session.cancelling.update(affected)
        self.thread.cancel(refs, kill=kill)
        self.view.show_facts()
        self.view.say(cancel_words(what, kill=kill))

    def refused(self) -> None:
        """Keep the unsaved criteria for the next run, because this run did not start."""
        self._draft_in_use = Draft()

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self.session.draft.drop_used(self._draft_in_use)
            self._draft_in_use = Draft()
        if isinstance(event, RunStarted | RunFinished):
            self.session.cancelling.clear()
