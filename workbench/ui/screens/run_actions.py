"""Running, cancelling, and taking in what happens: never more often than the line to the terminal bears."""

import time
from collections.abc import Callable, Sequence

from textual.message import Message
from textual.timer import Timer

from workbench.counting import counted
from workbench.events import CaseRef, Event, Noticed, RepeatsDropped, RunFinished, RunStarted
from workbench.text import one_line, plain
from workbench.ui.draft import Draft
from workbench.ui.pace import Pace
from workbench.ui.run_thread import Build, Ended, News, Refused, RunThread
from workbench.ui.screens.folder_actions import FolderActions
from workbench.ui.times import ONCE, Times

Targets = Sequence[tuple[int, int]]
_NOTICES_SHOWN = 2
_LINES_OF_BAR = 3
"""What the bar costs on the way to the terminal, in rows of the tree."""


class RunActions(FolderActions):
    """One run at a time."""

    pace: Pace
    runs: RunThread
    _preparing = False
    """A run was asked for, and what it needs is being read."""
    _due: Timer | None = None
    _ticker: Timer

    class NewsCame(Message):
        """There is something to take in."""

    def build(self, targets: Targets, times: Times) -> Build:
        """How these cases are run, so often: the engine's part."""
        raise NotImplementedError

    def build_rescoring(self, targets: Targets, *, fresh: bool) -> Build:
        """How the transcripts of these cases are scored again; `fresh`: judges are asked anew."""
        raise NotImplementedError

    def on_mount(self) -> None:
        super().on_mount()
        self._ticker = self.set_interval(1.0, self._tick, pause=True)

    # Keys

    def action_run(self) -> None:
        self.start(self.tree_view.model.targets())

    def action_rerun(self) -> None:
        targets = self.session.problems()
        if targets and not self.session.awaits_verdicts:
            self.start(targets)
        else:
            self.say(self.session.nothing_found("nothing failed"))

    def action_repeat(self) -> None:
        from workbench.ui.screens.repeat import RepeatScreen

        targets = self.tree_view.model.targets()

        def repeat(times: Times | None) -> None:
            if times is not None:
                self.start(targets, times)

        if self._can_start(targets):
            self.app.push_screen(RepeatScreen(f"run {cases(len(targets))} how many times?"), repeat)

    def action_score(self) -> None:
        self.start(self.tree_view.model.targets(), how=lambda targets: self.build_rescoring(targets, fresh=False))

    def action_score_afresh(self) -> None:
        self.start(self.tree_view.model.targets(), how=lambda targets: self.build_rescoring(targets, fresh=True))

    def action_options(self) -> None:
        from workbench.ui.screens.options import OptionsScreen

        targets, workspace = self.tree_view.model.targets(), self.session.workspace
        if workspace is None or not targets:
            self.say("no cases here")
            return

        def chosen(ending: str | None) -> None:
            self.show_facts()
            if ending == "run":
                self.start(targets)
            elif ending == "saved":
                self.action_reload()

        entries = [self.session.entry(evalset) for evalset in sorted({evalset for evalset, _ in targets})]
        screen = OptionsScreen(
            entries, self.session.draft, len(targets), workspace.root, self.keys, lambda: self.session.saver
        )
        self.app.push_screen(screen, chosen)

    def action_cancel(self) -> None:
        refs = self.session.active(self.tree_view.model.targets())
        self._cancel(refs, refs, cases(len(refs)))

    def action_cancel_all(self) -> None:
        self._cancel(None, self.session.store.current if self.session.running else [], "the run")

    # Starting

    def start(self, targets: Targets, times: Times = ONCE, how: Callable[[Targets], Build] | None = None) -> None:
        """Runs these cases so often, or does with them what `how` builds; reads the folder again if a file
        has changed, and asks for an agent where one is missing."""
        if self._can_start(targets):
            self.session.starting = self._preparing = True
            self.show_facts()
            self.run_worker(self._start(targets, how or (lambda found: self.build(found, times))), group="start")

    async def _start(self, targets: Targets, how: Callable[[Targets], Build]) -> None:
        model = self.tree_view.model
        names = model.names()
        ready = not self.session.outdated() or await self.read_again()
        if ready:
            await self.give_agents(model.found_again(names, targets))
            targets = model.found_again(names, targets)
        self._preparing = False
        if ready and targets:
            self.session.draft_in_use = self.session.draft.copy()
            self.runs.start(how(targets))
        else:
            self.session.starting = False
            self.show_facts()

    def _can_start(self, targets: Targets) -> bool:
        if self.session.running or self.session.starting:
            self.say("a run is going on: cancel it, or wait for its end", warning=True)
        elif not targets:
            self.say("no cases here" if self.session.workspace else "still reading")
        else:
            return True
        return False

    def _cancel(self, refs: list[CaseRef] | None, meant: list[CaseRef], what: str) -> None:
        asked = self.session.asked_to_cancel
        meant = [ref for ref in meant if not self.session.store.records[ref].finished]
        if not self.session.running or not meant:
            self.say("nothing is running here")
            return
        kill = asked.issuperset(meant)
        asked.update(meant)
        self.runs.cancel(refs, kill=kill)
        self.say(f"{'killing' if kill else 'cancelling'} {what}")

    # What happens

    def on_run_actions_news_came(self) -> None:
        decided = self.runs.decided
        wait = self.pace.wait(time.monotonic(), decided=decided)
        if self._due is not None and decided:
            self._due.stop()
            self._due = None
        if self._due is None:
            if wait > 0:
                self._due = self.set_timer(wait, self.flush)
            else:
                self.flush()

    def flush(self) -> None:
        """Takes in all that has happened and paints what that changed."""
        self._due = None
        touched: set[CaseRef] = set()
        notices: list[Noticed] = []
        news = self.runs.take()
        for item in news:
            self._apply(item, touched, notices)
        verdicts = self.session.verdicts
        changed, verdicts.changed = verdicts.changed, set()
        if any(isinstance(item, RunStarted | RepeatsDropped) for item in news):
            self.tree_view.repeats_changed()
        lines = self.tree_view.verdicts_changed(changed) + self.refresh_row(touched)
        lines += _LINES_OF_BAR * self.show_facts()
        self.after_news(any(isinstance(item, Ended) for item in news))
        if any(isinstance(item, RunFinished) for item in news):
            self.tree_view.arrange_again()
        self._show_notices(notices)
        self.pace.painted(time.monotonic(), lines)

    def admit(self, event: Event) -> Event | None:
        """The event as the store is to have it; None: not at all."""
        return event

    def after_news(self, ended: bool) -> None:
        """News were taken in; `ended`: with them a run ended."""

    def _apply(self, item: News, touched: set[CaseRef], notices: list[Noticed]) -> None:
        session = self.session
        match item:
            case Refused():
                session.draft_in_use = Draft()
                notices.append(Noticed("error", item.message, item.hint))
            case Ended():
                # The next one may have been asked for before this one's thread was free.
                session.starting = self._preparing or item.number != self.runs.started
                if session.running:
                    finished = RunFinished(session.elapsed(), interrupted=True)
                    session.store.apply(self.admit(finished) or finished)
                self._ticker.pause()
            case _:
                event = self.admit(item)
                if event is None:
                    return
                session.store.apply(event)
                if isinstance(item, RunStarted):
                    session.starting = False
                    self._ticker.resume()
                elif isinstance(item, Noticed):
                    notices.append(item)
                elif (ref := getattr(item, "case", None)) is not None:
                    touched.add(ref)

    def _show_notices(self, notices: list[Noticed]) -> None:
        """The first of them as toasts; all of a run are in the palette's notices."""
        loud = [notice for notice in notices if notice.level != "info"]
        for notice in loud[:_NOTICES_SHOWN]:
            text = plain(notice.message, limit=600)
            hint = f"\n{one_line(notice.hint)}" if notice.hint else ""
            self.notify(
                text + hint, severity="error" if notice.level == "error" else "warning", timeout=10, markup=False
            )
        if (more := len(loud) - _NOTICES_SHOWN) > 0:
            self.say(f"{counted(more, 'more notice')}: in the palette", warning=True)

    def _tick(self) -> None:
        self.show_facts()
        self.tree_view.tick()


def cases(number: int) -> str:
    """`1 case`, `2,000 cases`."""
    return counted(number, "case")
