"""Events from the run's thread. They are applied to the store, and shown at a pace that the terminal can follow."""

import asyncio
import textwrap
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from workbench.events.events import CaseFinished, CaseRef, Event, Noticed, RepeatsDropped, RunFinished, RunStarted
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.running.run import Run
from workbench.ui.running.run_thread import Ended, Refused
from workbench.ui.running.run_thread import News as Item
from workbench.ui.screen.controller import Controller, show_notice
from workbench.ui.terminal.terminal import Pace

if TYPE_CHECKING:
    from textual.timer import Timer

    from workbench.run.dask.files import Sending
    from workbench.ui.screen.view import View

_ERRORS_SHOWN = 2
_SHORT = 58
"""Maximum length of a notice that is shown in full, in characters, which fits in every terminal."""
_SECONDS = 6.0
"""Seconds for which a warning replaces the keys."""
_WIDTH, _FAR = 66, " " * 11
"""Width of the text about what leaves this machine, and the indent of its continuation lines."""
_LINES_OF_BAR = 3
"""Cost of painting the bar, counted in rows of the tree."""


class News(Controller):
    """The queue of events between the run's thread and the store."""

    def __init__(self, view: "View", run: Run) -> None:
        super().__init__(view)
        self._run = run
        self.pace = Pace()
        self.when_taken: list[Callable[[bool], None]] = []
        """Called after events were applied. The argument says whether a run has ended."""
        self.finished: set[CaseRef] = set()
        """Executions that ended with the latest events."""
        self.same_save = False
        """Whether the next run was started by the same save of a file as the last one."""
        self.ticker: Timer | None = None
        """The timer that updates running times during a run."""
        self._due: Timer | None = None
        run.thread.when_news.append(lambda: view.call_later(self.came))

    def came(self) -> None:
        """Apply waiting events, now or once the terminal has painted the last ones. Verdicts wait less."""
        decided = self._run.thread.decided
        wait = self.pace.wait(time.monotonic(), decided=decided)
        if self._due is not None and decided:
            self._due.stop()
            self._due = None
        if self._due is None:
            if wait > 0:
                self._due = self.view.set_timer(wait, self.flush)
            else:
                self.flush()

    def flush(self) -> None:
        """Apply all waiting events and paint the changes."""
        self._due = None
        self.finished.clear()
        touched: set[CaseRef] = set()
        notices: list[Noticed] = []
        news = self._run.thread.take()
        for item in news:
            self._apply(item, touched, notices)
        if (watching := self.session.watching) is not None:
            for ref in watching.restored:
                self.session.verdicts.refresh(ref)
            watching.restored.clear()
        if any(isinstance(item, RunStarted | RepeatsDropped) for item in news):
            self.view.tree_view.repeats_changed()
        lines = self.view.tree_view.show_verdicts() + self.view.refresh_row(touched)
        lines += _LINES_OF_BAR * self.view.show_facts()
        # A run that has started since is not over, although the one before it ended with the same events.
        last = next((item for item in reversed(news) if isinstance(item, Ended | RunStarted)), None)
        for notify in self.when_taken:
            notify(isinstance(last, Ended))
        if any(isinstance(item, RunFinished) for item in news):
            self.view.tree_view.arrange_again()
        self._show_notices(notices)
        self.pace.painted(time.monotonic(), lines)

    def _tick(self) -> None:
        self.session.machines = self._run.thread.machines()
        self.view.tick()

    def painted(self, lines: int) -> None:
        """Record that lines were painted without new events."""
        self.pace.painted(time.monotonic(), lines)

    def _apply(self, item: Item, touched: set[CaseRef], notices: list[Noticed]) -> None:
        store = self.session.store
        match item:
            case Refused():
                self._run.refused()
                if item.asks is None:
                    notices.append(Noticed("error", item.message, item.hint))
                else:
                    self.view.work(partial(self._confirm, item.asks), "ask", exclusive=False)
            case Ended():
                store.drop_request(item.number)
                if store.activity.running:
                    finished = RunFinished(self.session.elapsed(), interrupted=True)
                    store.apply(self._admit(finished) or finished)
                if self.ticker is not None:
                    self.ticker.stop()
                    self.ticker = None
            case _:
                event = self._admit(item)
                if event is None:
                    return
                store.apply(event)
                if isinstance(item, RunStarted):
                    self.ticker = self.ticker or self.view.set_interval(1.0, self._tick)
                elif isinstance(item, Noticed):
                    notices.append(item)
                elif (ref := getattr(item, "case", None)) is not None:
                    touched.add(ref)

    def _admit(self, event: Event) -> Event | None:
        """Record an event, and return it for the store. Return None if a newer run of the watch makes it obsolete."""
        watching = self.session.watching
        of_watch = watching is not None and bool(watching.jobs.under_way)
        admitted = event if watching is None else watching.admit(event)
        if isinstance(admitted, CaseFinished):
            self.finished.add(admitted.case)
        if admitted is not None:
            self.session.changed.before_event(admitted, continues=self.same_save and of_watch)
            if isinstance(admitted, RunStarted):
                self.same_save = watching is not None
        return admitted

    async def _confirm(self, sending: "Sending") -> None:
        """Ask whether the project may run on other machines, and store a confirmation. Nothing is started."""
        from workbench.results.machines import sending_lines
        from workbench.run.dask.files import confirm
        from workbench.ui.dialogs.items import Item as Answer

        answers = [Answer("no", False), Answer("run there", True)]
        # As rows, so that all of it can be read in a small terminal.
        facts = [
            part for line in sending_lines(sending) for part in textwrap.wrap(line, _WIDTH, subsequent_indent=_FAR)
        ]
        if await self.view.pick("this leaves your machine", [*answers, *map(Answer, facts)], placeholder=""):
            await asyncio.to_thread(confirm, sending)
            self.view.say("confirmed: r runs there")

    def _show_notices(self, notices: list[Noticed]) -> None:
        """Show up to two errors over the screen, and the first other error or warning on its last line.

        The palette lists all notices of a run.
        """
        errors = [notice for notice in notices if notice.level == "error"]
        for notice in errors[:_ERRORS_SHOWN]:
            show_notice(self.view, notice)
        rest = [*errors[_ERRORS_SHOWN:], *(notice for notice in notices if notice.level == "warning")]
        if rest:
            so_far = sum(notice.level != "info" for notice in self.session.store.notices)
            self.view.say(notice_line(rest[0], so_far), warning=True, seconds=_SECONDS)


def notice_line(notice: Noticed, count: int) -> str:
    """Return a notice as one line of safe text.

    If there are more (`count` in all), or if the text is long, point to the palette.
    """
    text = one_line(". ".join(part.removesuffix(".") for part in (notice.message, notice.hint) if part))
    if count == 1 and len(text) <= _SHORT:
        return text
    return f"{counted(count, 'notice')} in the palette (:): {text}"
