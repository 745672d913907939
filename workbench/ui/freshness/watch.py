"""The watch: turn it on and off, start runs after saves, and step through changed verdicts."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from workbench.events.events import Noticed
from workbench.results.changed_verdicts import Change
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.freshness.staleness import Staleness
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.news import News
from workbench.ui.running.run import Run
from workbench.ui.screen.controller import Controller, show_notice
from workbench.ui.screen.folder import Folder
from workbench.ui.terminal.host import Host

if TYPE_CHECKING:
    from workbench.freshness.watcher import Saved
    from workbench.project.watch import News as WatchNews
    from workbench.project.watch import Watch as ProjectWatch
    from workbench.store.execution import Execution
    from workbench.ui.freshness.screen_watch import ScreenWatch
    from workbench.ui.screen.view import View


class Watch(Controller):
    """The actions of the watch of all cases, or of the cases that were marked when the watch was turned on."""

    def __init__(
        self, view: "View", folder: Folder, run: Run, news: News, staleness: Staleness, engine: Engine, host: Host
    ) -> None:
        super().__init__(view)
        self._folder, self._run, self._news, self._staleness = folder, run, news, staleness
        self._engine, self._host = engine, host
        self.arm_when_read = False
        """Whether the user turned the watch on before the folder was read."""
        self._arming = False
        """Whether a watch is being prepared in a thread."""
        self._watch: ProjectWatch | None = None
        """The running watch, or None if it is off or being prepared."""
        folder.when_loaded.append(self.show_flags)
        folder.when_owned.append(self.adopt_owners)
        news.when_taken.append(self.after_news)

    def adopt_owners(self) -> None:
        """Pass the agents that the user chose for evalsets to the watch."""
        watching, workspace = self.session.watching, self.session.workspace
        if watching is not None and workspace is not None:
            watching.watcher.adopt_owners(workspace)

    def watch(self) -> None:
        """Turn the watch on or off. If a costly rerun waits for the user, start it instead."""
        if not self._is_wanted:
            self.arm()
        elif self._watch is not None and self._watch.watching.jobs.waiting is not None:
            self._watch.allow()
        else:
            self.disarm()

    def watch_off(self) -> None:
        """Turn the watch off."""
        if self._is_wanted:
            self.disarm()
        else:
            self.view.say("the watch is already off")

    @property
    def _is_wanted(self) -> bool:
        return self.session.watching is not None or self._arming or self.arm_when_read

    def watched(self) -> None:
        """List the watched files, and why each is watched."""
        watching = self.session.watching
        items: list[Item] = []
        if watching is not None:
            root = str(watching.watcher.snapshot.workspace.root) + "/"
            for agent, files in watching.watcher.watched().items():
                items.append(Item(one_line(agent, limit=80), heading=True))
                items += [
                    Item(one_line(str(path).removeprefix(root)), hint=one_line(why), help=one_line(f"{path}: {why}"))
                    for path, why in files
                ]
            if watching.watcher.changes.polling:
                items.insert(0, Item(f"polling: {one_line(watching.watcher.changes.polling)}", heading=True))
            if watching.jobs.armed is not None:
                items.insert(0, Item(f"only {counted(len(watching.jobs.armed), 'case')} (marked)", heading=True))
        nothing = "no files are watched" if watching else "The watch is off. Press esc, then w to turn it on."
        pick = partial(self.view.pick, "watched files, and why", items, nothing=nothing)
        self.view.work(pick, "ask", exclusive=False)

    def arm(self) -> None:
        """Turn the watch on, for the marked cases or for all cases. If the folder is not read yet, wait for it."""
        if self.session.workspace is None:
            self.arm_when_read = True
            self.view.say("the watch starts once the folder is read")
            return
        self._arming, self.arm_when_read = True, False
        marked = set(self.view.rows.marks)
        self.view.work(partial(self._drive, marked), "watch")
        self._run.thread.also(self._engine.warm())
        self.view.say("the watch is starting")

    def disarm(self) -> None:
        """Turn the watch off."""
        watch, self._watch, self.session.watching = self._watch, None, None
        self._arming = self.arm_when_read = False
        if watch is not None:
            watch.stop()
        self.session.last_watch_effect = ""
        self.show_flags()
        self.view.show_facts()
        self.view.say("the watch is off")
        self._switched()

    async def _drive(self, marked: "set[tuple[int, int]]") -> None:
        """Create a watch and run it until it is turned off or fails."""
        watch = await asyncio.to_thread(self._make, marked)
        if not self._arming:
            return
        self._arming = False
        self.adopt(watch)
        # Not shown earlier, because a save while the files are read makes verdicts stale but starts no run.
        watched = counted(len(marked), "case") if marked else "all cases"
        self.view.say(f"watching {watched}: a save reruns the cases that it affects")
        await watch.execute()
        if watch.ended and self._watch is watch:
            self.disarm()

    def _make(self, marked: "set[tuple[int, int]]") -> "ScreenWatch":
        from workbench.ui.freshness.screen_watch import ScreenWatch

        project, watching = self._engine.watch(marked, self._host.setting_files())
        watch = ScreenWatch(project, watching, self._run, self.take, self._prepare)
        watch.read_files()
        return watch

    def adopt(self, watch: "ProjectWatch") -> None:
        """Make this the current watch, and show its state on the screen."""
        self._watch, self.session.watching = watch, watch.watching
        self.view.show_facts()
        self._switched()

    def _switched(self) -> None:
        """Let the follower choose its folders again, because the watch follows files itself."""
        if self.session.follower is not None:
            self.session.follower.changes.refresh_folders()

    async def _prepare(self) -> None:
        """Mark stale verdicts before the watch starts."""
        await self._staleness.compared()
        self.show_flags()
        self.view.show_facts()

    def take(self, news: "WatchNews") -> None:
        """Show a save, the start of a run, or a notice of the watch."""
        from workbench.freshness.watcher import Saved
        from workbench.project.watching import Start

        if isinstance(news, Saved):
            self._saved(news)
        elif isinstance(news, Start):
            self.session.last_watch_effect = news.job.depth
        elif isinstance(news, Noticed):
            show_notice(self.view, news)
        self.view.show_facts()

    def _saved(self, saved: "Saved") -> None:
        if saved.impact.screen_only:
            self._host.reload_settings()
        self.session.read_error = saved.trouble
        if saved.trouble:
            return
        if saved.snapshot.workspace is not self.session.workspace:
            self._folder.load(saved.snapshot.workspace)
        if saved.impact.depths and not self._run.busy:
            # During a run, its changes stay listed beside the coming ones, because nobody has seen them yet.
            self._news.same_save = False
        self._staleness.compare()

    def after_news(self, ended: bool) -> None:
        """Update the marks after events of a run. If the run has `ended`, let the watch start the next one."""
        if ended:
            if self._watch is not None:
                self._watch.run_ended()
                self.view.show_facts()
            self.show_flags()
        elif self._news.finished:
            self._show_new_flags()

    def _show_new_flags(self) -> None:
        """Mark the cases that have just ended with a changed verdict."""
        changed, verdicts = self.session.changed, self.session.verdicts
        flips = {
            place: changed.is_regression(ref)
            for ref in self._news.finished
            if changed.is_changed(ref) and (place := verdicts.place(*ref.name)) is not None
        }
        if flips:
            verdicts.mark_flips({**verdicts.flips, **flips})
            self.view.tree_view.show_verdicts()

    def show_flags(self) -> None:
        """Mark all cases whose verdict changed."""
        session = self.session
        verdicts = session.verdicts
        turned = {
            pair: session.changed.is_regression(ref)
            for ref in session.changed.refs()
            if (pair := verdicts.place(ref.evalset_file, ref.eval_id)) is not None
        }
        verdicts.mark_flips(turned)
        self.view.tree_view.show_verdicts()
        self.view.refresh_row(set())  # The overview counts them.

    def change_of(self, record: "Execution | None") -> Change | None:
        """Return how a case's verdict changed, or None if it did not or if there is no verdict."""
        session = self.session
        before = None if record is None else session.changed.before(record)
        if record is None or before is None or not record.has_verdict:
            return None
        return Change(before, session.changed.rates(record), session.changed.flaky(record))

    def changed(self, step: int) -> None:
        """Go to the next (1) or previous (-1) case whose verdict changed, and open its pane History."""
        verdicts = self.session.verdicts
        found = (verdicts.place(ref.evalset_file, ref.eval_id) for ref in self.session.changed.refs())
        pairs = list(dict.fromkeys(pair for pair in found if pair is not None))
        if not pairs:
            self.view.say(self.session.why_nothing_found("no verdict has changed"))
            return
        row = self.view.rows.cursor
        here = (row.evalset, row.case) if row is not None and row.case >= 0 else None
        place = pairs.index(here) + step if here in pairs else (0 if step > 0 else -1)
        evalset, case = pairs[place % len(pairs)]
        self.view.reveal(evalset, case)
        self.view.right.open_pane("History")
        if not 0 <= place < len(pairs) and len(pairs) > 1 and here in pairs:
            self.view.say("wrapped around")
