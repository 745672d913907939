"""Construction and connections of all controllers of the main screen."""

from typing import TYPE_CHECKING

from workbench.ui.accepting.controller import Accept
from workbench.ui.chat.controller import Talk
from workbench.ui.criteria.controller import Criteria
from workbench.ui.editing.cases import Cases
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.editing.replacing import Replace
from workbench.ui.faults.controller import Faults
from workbench.ui.forking.controller import Fork
from workbench.ui.freezing.controller import Freezing
from workbench.ui.freshness.results import OtherRuns, PastResults
from workbench.ui.freshness.staleness import Follow, Staleness
from workbench.ui.freshness.watch import Watch
from workbench.ui.history.controller import History
from workbench.ui.main.general import General
from workbench.ui.main.restoring import Restoring
from workbench.ui.review.controller import Review
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.news import News
from workbench.ui.running.run import Run
from workbench.ui.running.run_thread import RunThread
from workbench.ui.screen.folder import Checks, Folder
from workbench.ui.screen.overview import Overview
from workbench.ui.table.controller import CaseTable
from workbench.ui.terminal.host import Host
from workbench.ui.triage.controller import Triage
from workbench.ui.variants.controller import Variants

if TYPE_CHECKING:
    from workbench.ui.screen.view import View


class Controllers:
    """One controller per concern. The action table refers to these attributes by name."""

    def __init__(self, view: "View", engine: Engine, host: Host) -> None:
        self.thread = thread = RunThread(lambda: view.call_later(self.news.came), engine.close)
        self.folder = Folder(view)
        self.files = Files(view, self.folder)
        self.run = Run(view, self.folder, engine, thread)
        self.news = News(view, self.run)
        self.staleness = Staleness(view)
        self.watch = Watch(view, self.folder, self.run, self.staleness, engine, host.reload_settings)
        self.past_results = PastResults(view, self.staleness)
        self.overview = Overview(view)
        self.edit = Edit(view, self.files)
        self.cases = Cases(view, self.files, self.edit)
        self.replace = Replace(view, self.files)
        self.criteria = Criteria(view, self.files, self.run)
        self.accept = Accept(view, self.files, self.edit, self.run, self.criteria)
        self.freezing = Freezing(view, self.files, self.run, engine)
        self.accept.accept_drift = self.freezing.accept_drift
        self.freezing.accept_expected = self.accept.accept_expected
        self.triage = Triage(view, self.files)
        self.files.reread_triage = self.triage.reread
        self.review = Review(view, self.files, self.edit, self.accept, self.run, self.triage, host)
        self.triage.when_read = self.review.triage_read
        self.other_runs = OtherRuns(view, self.past_results, self.staleness, engine)
        self.other_runs.when_shown = [self.watch.show_flags, lambda: self.review.after_news(False)]
        self.follow = Follow(view, self.folder, self.staleness, engine, self.triage.loaded)
        self.follow.runs_changed = self.other_runs.look
        self.talk = Talk(view, self.files, self.cases, engine, thread)
        self.fork = Fork(view, self.files, self.talk, engine, thread)
        self.talk.fork_chat = self.fork.fork_chat
        self.history = History(view, self.talk, self.fork, host)
        self.faults = Faults(view, self.run, self.history, engine, host)
        self.variants = Variants(view, self.files, self.history, engine, thread, host)
        self.criteria.try_cases = self.variants.try_cases
        self.checks = Checks(view, lambda workspace, report: thread.also(engine.import_agents(workspace, report)))
        self.restoring = Restoring(view)
        self.table = CaseTable(view, self.run, self.overview, host)
        view.tree_view.when_changed, view.tree_view.when_arranged = self.table.changed, self.table.arranged
        self.general = General(view, self.run, self.news, host)
        self.past_results.when_recalled = self.watch.show_flags
        self.folder.when_loaded = [
            self.watch.show_flags,
            self.staleness.loaded,
            self.checks.loaded,
            self.triage.loaded,
            self.review.loaded,
            self.table.loaded,
            self.freezing.loaded,
        ]
        self.watch.when_switched = [self.follow.watch_changed]
        self.staleness.when_compared = [self.follow.compared, self.freezing.loaded]
        self.folder.when_owned = [self.watch.adopt_owners]
        self.news.admit = self.watch.admit
        self.news.when_taken = [
            self.watch.after_news,
            self.staleness.after_news,
            self.past_results.after_news,
            self.overview.after_news,
            self.review.after_news,
            self.freezing.after_news,
            self.faults.after_news,
        ]

    async def open(self, *, watch: bool) -> None:
        """Read the folder for the first time, then the state of earlier sessions. With `watch`, arm the watch."""
        if not await self.folder.read_again():
            return
        await self.folder.offer_trust()
        self.past_results.expect_verdicts()
        await self.restoring.restore(run_wanted=self.run.is_wanted)
        await self.other_runs.begin()
        self.past_results.load_verdicts()
        self.run.start_if_wanted()
        if watch or self.watch.arm_when_read:
            self.watch.arm()
        await self.files.offer_interrupted()
        await self.past_results.verdicts_shown.wait()
        self.follow.begin()
        await self.run.offer_resuming()
