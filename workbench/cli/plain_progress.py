"""Progress as plain lines: one for each case as it ends. For logs, pipes, screen readers and `--plain`."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TextIO

from workbench.cli.streams import write_line
from workbench.events import CaseFinished, CaseRef, Event, JudgeWaits, Noticed, RunFinished
from workbench.rendering.plain_lines import case_line, notice_line, wait_line
from workbench.store import Store


class Progress(Protocol):
    """What a run needs of a progress display. It shows while it is entered, and follows the store by itself."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def message(self, line: str) -> None:
        """Shows a line that is no result, such as what Ctrl-C has done; `line` is safe text."""

    async def keep_fresh(self) -> None:
        """Redraws what changes with time, until it is cancelled."""


class PlainProgress:
    """Results go to one stream, messages to another; nothing is redrawn. `done_again` says whether what a run did not
    get to is not cancelled, but left to another run."""

    def __init__(
        self, store: Store, results: TextIO, messages: TextIO, done_again: Callable[[], bool] = lambda: False
    ) -> None:
        self._store = store
        self._done_again = done_again
        self._cancelled: set[CaseRef] = set()
        """The cancelled cases of this run that have their line."""
        self._results = results
        self._messages = messages
        self._unsubscribe: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._unsubscribe = self._store.subscribe(self._on_event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unsubscribe:
            self._unsubscribe()

    def message(self, line: str) -> None:
        write_line(self._messages, line)

    async def keep_fresh(self) -> None:
        """Nothing here changes with time."""

    def _on_event(self, event: Event) -> None:
        if isinstance(event, CaseFinished):
            self._line_of(event.case, cancelled=event.status == "cancelled")
        elif isinstance(event, RunFinished):
            self._lines_of_the_rest()
        elif isinstance(event, Noticed):
            self.message(notice_line(event))
        elif isinstance(event, JudgeWaits) and event.seconds > 0:
            self.message(wait_line(event))

    def _line_of(self, ref: CaseRef, *, cancelled: bool) -> None:
        write_line(self._results, case_line(self._store.current_record(ref)))
        if cancelled:
            self._cancelled.add(ref)

    def _lines_of_the_rest(self) -> None:
        """Write the lines of cases that end only because their run does."""
        for record in () if self._done_again() else self._store.current_records():
            if record.state == "cancelled" and record.ref not in self._cancelled:
                self._line_of(record.ref, cancelled=True)
        self._cancelled.clear()
