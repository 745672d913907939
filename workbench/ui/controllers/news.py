"""News of the run's thread: taken into the store and shown at a pace that the terminal bears."""

import time
from collections.abc import Callable

from workbench.counting import counted
from workbench.events import CaseRef, Event, Noticed, RepeatsDropped, RunFinished, RunStarted
from workbench.ui.controllers.run import Run
from workbench.ui.controllers.view import Controller, Stoppable, View, show_notice
from workbench.ui.pace import Pace
from workbench.ui.run_thread import Ended, Refused
from workbench.ui.run_thread import News as Item

_NOTICES_SHOWN = 2
_LINES_OF_BAR = 3
"""What the bar costs on the way to the terminal, in rows of the tree."""


class News(Controller):
    """The way of events into the store. `admit` returns an event as the store is to have it, or None. `when_taken`
    is called after news were taken in, with whether a run ended."""

    def __init__(self, view: View, run: Run) -> None:
        super().__init__(view)
        self._run = run
        self.pace = Pace()
        self.admit: Callable[[Event], Event | None] = lambda event: event
        self.when_taken: list[Callable[[bool], None]] = []
        self.ticker: Stoppable | None = None
        """Shows the seconds while a run is going on."""
        self._due: Stoppable | None = None

    def came(self) -> None:
        """Take in the news now, or as soon as the line is free. A verdict does not wait."""
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
        """Take in all that has happened and paint what that changed."""
        self._due = None
        touched: set[CaseRef] = set()
        notices: list[Noticed] = []
        news = self._run.thread.take()
        for item in news:
            self._apply(item, touched, notices)
        if any(isinstance(item, RunStarted | RepeatsDropped) for item in news):
            self.view.tree_view.repeats_changed()
        lines = self.view.tree_view.show_verdicts() + self.view.refresh_row(touched)
        lines += _LINES_OF_BAR * self.view.show_facts()
        for tell in self.when_taken:
            tell(any(isinstance(item, Ended) for item in news))
        if any(isinstance(item, RunFinished) for item in news):
            self.view.tree_view.arrange_again()
        self._show_notices(notices)
        self.pace.painted(time.monotonic(), lines)

    def _apply(self, item: Item, touched: set[CaseRef], notices: list[Noticed]) -> None:
        store = self.session.store
        match item:
            case Refused():
                self._run.refused()
                notices.append(Noticed("error", item.message, item.hint))
            case Ended():
                store.drop_request(item.number)
                if store.activity.running:
                    finished = RunFinished(self.session.elapsed(), interrupted=True)
                    store.apply(self.admit(finished) or finished)
                if self.ticker is not None:
                    self.ticker.stop()
                    self.ticker = None
            case _:
                event = self.admit(item)
                if event is None:
                    return
                store.apply(event)
                if isinstance(item, RunStarted):
                    self.ticker = self.ticker or self.view.set_interval(1.0, self.view.tick)
                elif isinstance(item, Noticed):
                    notices.append(item)
                elif (ref := getattr(item, "case", None)) is not None:
                    touched.add(ref)

    def _show_notices(self, notices: list[Noticed]) -> None:
        """Show the first notices. The palette has all notices of a run."""
        loud = [notice for notice in notices if notice.level != "info"]
        for notice in loud[:_NOTICES_SHOWN]:
            show_notice(self.view, notice)
        if (more := len(loud) - _NOTICES_SHOWN) > 0:
            self.view.say(f"{counted(more, 'more notice')}: in the palette", warning=True)
