"""Construction of all controllers of the main screen."""

from typing import TYPE_CHECKING

from workbench.ui.accepting.controller import Accept
from workbench.ui.chat.controller import Keep, Talk
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
    """The controllers of the main screen, one per concern. The action table refers to these attributes by name."""

    def __init__(self, view: "View", engine: Engine, host: Host) -> None:
        # A controller gets those that it needs, and subscribes to the folder and to news of runs. They are called in
        # this order, so those that mark cases come before those that show them.
        self.thread = thread = RunThread(engine.close)
        self.folder = folder = Folder(view)
        self.files = files = Files(view, folder)
        self.run = run = Run(view, folder, engine, thread)
        self.news = news = News(view, run)
        self.staleness = Staleness(view, folder, news)
        self.watch = Watch(view, folder, run, news, self.staleness, engine, host)
        self.past_results = PastResults(view, news, self.staleness, self.watch)
        self.checks = Checks(
            view, folder, lambda workspace, report: thread.also(engine.import_agents(workspace, report))
        )
        self.triage = Triage(view, files)
        self.overview = Overview(view, news.when_taken)
        self.edit = Edit(view, files)
        self.cases = Cases(view, files, self.edit)
        self.replace = Replace(view, files)
        self.keep = Keep(view, files, self.cases)
        self.fork = Fork(view, self.keep, engine, thread)
        self.talk = Talk(view, self.keep, engine, thread, self.fork.fork_chat)
        self.variants = Variants(view, files, engine, thread, host)
        self.criteria = Criteria(view, files, run, self.variants)
        self.accept = Accept(view, files, self.edit, run, self.criteria)
        self.review = Review(view, news, files, self.edit, self.accept, run, self.triage, host)
        self.freezing = Freezing(view, news, files, run, engine)
        self.faults = Faults(view, news, files, run, engine, host)
        self.history = History(view, files, self.keep, self.fork, self.faults, host)
        self.table = CaseTable(view, folder, run, host)
        self.other_runs = OtherRuns(view, self.past_results, self.staleness, self.watch, self.review, engine)
        self.follow = Follow(
            view, folder, self.staleness, engine, look_for_runs=self.other_runs.look, read_triage=self.triage.loaded
        )
        self.restoring = Restoring(view)
        self.general = General(view, run, news, host)

    async def open(self, *, watch: bool) -> None:
        """Read the folder, then restore the cursor and the verdicts of earlier sessions.

        After that, start a run that was requested meanwhile, turn on the watch if wanted, and offer to continue edits
        and runs that were interrupted. If the folder cannot be read, do none of this.
        """
        if not await self.folder.read_again():
            return
        await self.folder.offer_trust()
        self.folder.session.loading = "results"  # Otherwise, the screen would say that no case has run.
        await self.restoring.restore(run_wanted=self.run.wanted_when_read)
        await self.other_runs.begin()
        self.past_results.load_verdicts()
        self.run.start_if_wanted()
        if watch or self.watch.arm_when_read:
            self.watch.arm()
        await self.files.offer_interrupted()
        await self.past_results.verdicts_shown.wait()
        self.follow.begin()
        await self.run.offer_resuming()
