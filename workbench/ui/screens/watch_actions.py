"""The watch on the screen: arming it, what a save leads to, and walking what changed."""

import asyncio
from typing import TYPE_CHECKING

from workbench.events import CaseFinished, Event, RunStarted
from workbench.rendering.changed import Change, file_changes
from workbench.text import one_line
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.run_actions import RunActions, cases
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.engine.watch.board import Job
    from workbench.engine.watch.watcher import Saved
    from workbench.project.watching import Watching
    from workbench.store import CaseRecord
    from workbench.ui.run_thread import Build

_DEPTHS = {"run": "running the agent", "score": "scoring again", "decide": "deciding again"}
_DONE = {"running the agent": "ran the agent", "scoring again": "scored again", "deciding again": "decided again"}
_CHANGE_PANE = "Change"


class WatchActions(RunActions):
    """One watch at a time, over all cases or those that were marked when it was armed."""

    arm_when_read = False
    """Whether the watch was asked for before there was a folder to watch."""
    _goes_on = False
    """Whether what is started belongs to the same save as what ran last."""

    def make_watching(self, marked: "set[tuple[int, int]]") -> "Watching":
        """A watch over the workspace as it is now: the engine's part."""
        raise NotImplementedError

    def build_watched(self, watching: "Watching", job: "Job") -> "Build":
        """How a job of the watch is done: the engine's part."""
        raise NotImplementedError

    def look_again(self) -> None:
        """Takes in what the files of themes and keys say now."""

    def warm_up(self) -> None:
        """Has the engine's children started, so that the first save does not wait for them."""

    def load(self, workspace: "Workspace") -> None:
        super().load(workspace)
        self.show_flags()

    def owners_chosen(self) -> None:
        watching, workspace = self.session.watching, self.session.workspace
        if watching is not None and workspace is not None:
            watching.watcher.adopt_owners(workspace)

    # Keys

    def action_watch(self) -> None:
        watching = self.session.watching
        if watching is None:
            self.arm()
        elif watching.board.waiting is not None:
            watching.board.allow()
            self.go_on()
        else:
            self.disarm()

    def action_watch_off(self) -> None:
        if self.session.watching is None:
            self.say("the watch is off")
        else:
            self.disarm()

    def action_watched(self) -> None:
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
            if watching.board.armed is not None:
                items.insert(0, Item(f"only {cases(len(watching.board.armed))}, those marked", heading=True))
        title = "watched, and why" if watching else "the watch is off: w arms it"
        self.app.push_screen(PickScreen(title, searching(items), nothing="nothing is watched"))

    def action_next_changed(self) -> None:
        self._to_changed(1)

    def action_previous_changed(self) -> None:
        self._to_changed(-1)

    # Arming

    def arm(self) -> None:
        """Watches the marked cases, or all."""
        if self.session.workspace is None:
            self.arm_when_read = True
            self.say("the watch begins when the folder is read")
            return
        marked = set(self.tree_view.model.marks)
        self.run_worker(self._watch(marked), group="watch", exclusive=True)
        self.warm_up()
        self.say(f"watching {cases(len(marked)) if marked else 'all cases'}: a save runs what it can affect")

    def disarm(self) -> None:
        """Watches nothing."""
        watching, self.session.watching = self.session.watching, None
        if watching is not None:
            watching.watcher.close()
            watching.announced.set()
        self.session.last_watch = ""
        self.show_flags()
        self.show_facts()
        self.say("the watch is off")

    async def _watch(self, marked: "set[tuple[int, int]]") -> None:
        watching = self.session.watching = await asyncio.to_thread(self.make_watching, marked)
        watching.watcher.changes.on_polling = lambda: self._says_polling(watching)
        watching.watcher.changes.on_gone = lambda: self._says_gone(gone=watching.watcher.changes.gone)
        self.show_facts()
        current = await asyncio.to_thread(watching.earlier_moments)
        self.session.changed.moment_of |= current
        self.session.stale |= watching.overtaken(current, self.session.own_runs)
        self.show_flags()
        self.show_facts()
        try:
            async for saved in watching.watcher.saves():
                await watching.announced.wait()
                if self.session.watching is not watching:
                    return
                self._saved(watching, saved)
        except Exception as error:
            # The screen goes on without it.
            self.notify(one_line(f"the watch ended: {error!r}"), severity="error", timeout=10, markup=False)
            if self.session.watching is watching:
                self.disarm()
        finally:
            watching.watcher.close()

    def _says_gone(self, *, gone: bool) -> None:
        if gone:
            told = "The folder is not there any more: the watch waits for it"
            self.notify(told, severity="warning", timeout=10, markup=False)
        else:
            self.notify("The folder is there again", markup=False)

    def _says_polling(self, watching: "Watching") -> None:
        self.notify(f"The watch looks again and again: {one_line(watching.watcher.changes.polling)}", markup=False)
        self.show_facts()

    # What happens

    def _saved(self, watching: "Watching", saved: "Saved") -> None:
        stay = "The last verdicts stay, as stale" if saved.impact.depths else "The last verdicts stay"
        for fault in saved.faults:
            place = self._below_root(str(fault.path)) + (f":{fault.line}" if fault.line else "")
            self.notify(f"{one_line(f'{place}: {fault.message}')}\n{stay}", severity="error", timeout=10, markup=False)
        if saved.impact.screen_only:
            self.look_again()
        if saved.trouble:
            self.session.trouble = saved.trouble
            self.show_facts()
            return
        self.session.trouble = ""
        obsolete = watching.take(saved)
        for name in watching.ignored:
            said = f"{one_line(name)} changes whenever the agent runs: it is not watched any more"
            self.notify(said, severity="warning", timeout=10, markup=False)
        if saved.snapshot.workspace is not self.session.workspace:
            self.load(saved.snapshot.workspace)
        if obsolete:
            self.runs.cancel(obsolete, kill=True, stop=True)
        if saved.impact.depths and not (self.session.running or self.session.starting):
            # Else what the present round changed was not seen yet: it stays listed beside what comes.
            self._goes_on = False
        if saved.environments:
            self.renew()
        self.go_on()

    def renew(self) -> None:
        """Has the engine's children started anew before the next run."""

    def go_on(self) -> None:
        """Starts what is to be done next, if anything is."""
        watching = self.session.watching
        if watching is None:
            return
        start = watching.next(self.session.running or self.session.starting)
        if start is not None:
            self.session.last_watch = _DEPTHS[start.job.depth]
            watching.started(start.job)
            self.session.starting = True
            self.runs.start(self.build_watched(watching, start.job))
        self.show_flags()
        self.show_facts()

    def admit(self, event: Event) -> Event | None:
        watching = self.session.watching
        of_watch = watching is not None and bool(watching.board.under_way)
        admitted = event if watching is None else watching.admit(event)
        if admitted is not None:
            self.session.changed.about_to(admitted, goes_on=self._goes_on and of_watch)
            if isinstance(admitted, RunStarted):
                self._goes_on = watching is not None
            elif watching is not None and isinstance(admitted, CaseFinished) and admitted.case in watching.moments:
                self.session.changed.moment_of[admitted.case] = watching.moments[admitted.case]
        return admitted

    def after_news(self, ended: bool) -> None:
        watching = self.session.watching
        if watching is not None:
            if not self.session.starting:
                watching.end_start()
            for ref in watching.restored:
                self.session.verdicts.look_again(ref)
            watching.restored.clear()
            if not (self.session.running or self.session.starting):
                self.session.last_watch = _DONE.get(self.session.last_watch, self.session.last_watch)
                self.show_facts()
            if ended:
                self.run_worker(asyncio.to_thread(watching.watcher.learn), group="learn")
                self.go_on()
        if ended:
            self.show_flags()

    def show_flags(self) -> None:
        """Brings the marks of stale and changed cases up to date."""
        session = self.session
        verdicts, watching = session.verdicts, session.watching
        names = session.stale | (watching.stale() if watching else {})
        stale = {pair: changes for name, changes in names.items() if (pair := verdicts.place(*name)) is not None}
        turned = {
            pair: session.changed.is_regression(ref)
            for ref in session.changed.refs()
            if (pair := verdicts.place(ref.evalset_file, ref.eval_id)) is not None
        }
        verdicts.flag(stale, turned)
        changed, verdicts.changed = verdicts.changed, set()
        self.tree_view.verdicts_changed(changed)

    # What changed

    def change_of(self, record: "CaseRecord | None") -> Change | None:
        """What the case was before its newest verdict; None if that was no other."""
        session = self.session
        before = None if record is None else session.changed.before(record)
        if record is None or before is None or not record.has_verdict:
            return None
        watching = session.watching
        rates, flaky = session.changed.rates(record), session.changed.flaky(record)
        if watching is None:
            return Change(before, rates=rates, flaky=flaky)
        then, now = session.changed.moments(record.ref)
        names = watching.depends_on(record.ref)
        return Change(before, file_changes(then, now, names, watching.watcher.contents.text), rates, flaky)

    def _to_changed(self, step: int) -> None:
        verdicts = self.session.verdicts
        found = (verdicts.place(ref.evalset_file, ref.eval_id) for ref in self.session.changed.refs())
        pairs = list(dict.fromkeys(pair for pair in found if pair is not None))
        if not pairs:
            self.say(self.session.nothing_found("no verdict has changed"))
            return
        row = self.tree_view.row
        here = (row.evalset, row.case) if row is not None and row.case >= 0 else None
        place = pairs.index(here) + step if here in pairs else (0 if step > 0 else -1)
        evalset, case = pairs[place % len(pairs)]
        self.tree_view.go_to(Row("case", self.tree_view.model.outline.group_of[evalset], evalset, case))
        if self.right.shows_case and _CHANGE_PANE in self.right.detail.pane_titles:
            self.right.detail.show_pane(self.right.detail.pane_titles.index(_CHANGE_PANE) + 1)
        if not 0 <= place < len(pairs) and len(pairs) > 1 and here in pairs:
            self.say("from the other end again")

    def _below_root(self, path: str) -> str:
        workspace = self.session.workspace
        return path.removeprefix(f"{workspace.root}/") if workspace is not None else path
