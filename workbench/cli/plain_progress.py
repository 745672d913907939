"""Progress as plain lines, one for each finished case: for logs, pipes, screen readers and `--plain`."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self, TextIO

from workbench.cli.streams import write_line
from workbench.events.events import CaseFinished, CaseRef, Event, JudgeWaits, Noticed, RunFinished
from workbench.results.plain_lines import case_line, notice_line, wait_line
from workbench.run.dask.files import MachineState
from workbench.store.details import read_details
from workbench.store.store import Store


class Progress(Protocol):
    """A progress display that follows the store while it is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def message(self, line: str) -> None:
        """Show a message, such as the effect of Ctrl-C. `line` is safe text."""

    def show_machines(self, machines: Callable[[], Sequence[MachineState]]) -> None:
        """Show how busy the machines are that `machines` returns, if the display is redrawn."""

    async def keep_fresh(self) -> None:
        """Redraw what changes with time, until cancelled."""


class PlainProgress:
    """Progress on two streams, one for results and one for messages. Nothing is redrawn.

    `done_again` returns whether another run will repeat the cases that this run did not reach. They then get no
    CANCELLED line.
    """

    def __init__(
        self, store: Store, results: TextIO, messages: TextIO, done_again: Callable[[], bool] = lambda: False
    ) -> None:
        self._store = store
        self._done_again = done_again
        self._cancelled: set[CaseRef] = set()
        """Cancelled cases of this run that already have their line."""
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
        """Write a message to its stream."""
        write_line(self._messages, line)

    def show_machines(self, machines: Callable[[], Sequence[MachineState]]) -> None:
        """Do nothing: lines of their own tell about machines."""

    async def keep_fresh(self) -> None:
        """Do nothing: plain lines do not change with time."""

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
        write_line(self._results, case_line(read_details(self._store.current_record(ref))))
        if cancelled:
            self._cancelled.add(ref)

    def _lines_of_the_rest(self) -> None:
        """Write the lines of cases that end only because the run ends."""
        for record in () if self._done_again() else self._store.current_records():
            if record.state == "cancelled" and record.ref not in self._cancelled:
                self._line_of(record.ref, cancelled=True)
        self._cancelled.clear()


class QuietProgress(PlainProgress):
    """A display without progress: only warnings, errors and messages such as the effect of Ctrl-C."""

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Noticed) and event.level != "info":
            self.message(notice_line(event))
