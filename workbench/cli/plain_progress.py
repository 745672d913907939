"""Progress as plain lines: one for each case as it ends. For logs, pipes, screen readers and `--plain`."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TextIO

from workbench.cli.lines import case_line, notice_line, wait_line
from workbench.cli.streams import write_line
from workbench.events import CaseFinished, Event, JudgeWaits, Noticed
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
    """Results go to one stream, messages to another; nothing is redrawn."""

    def __init__(self, store: Store, results: TextIO, messages: TextIO) -> None:
        self._store = store
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
            write_line(self._results, case_line(self._store.records[event.case]))
        elif isinstance(event, Noticed):
            self.message(notice_line(event))
        elif isinstance(event, JudgeWaits) and event.seconds > 0:
            self.message(wait_line(event))
