"""Progress of a run: plain lines, one for each finished case, or on a terminal also a block with the running cases.

Events only mark the block as changed. It is drawn a few times a second together with all new lines in one write, so
that a thousand quick cases cost a slow connection no more than ten. If a machine is lost or cannot be used, the run has
a notice about it, which gets its own line.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from workbench.cli.streams import can_show, silence, spelled_for, write_line
from workbench.events.events import (
    AttemptLost,
    CaseFinished,
    CasePlaced,
    CaseRef,
    Event,
    JudgeWaits,
    Noticed,
    RunFinished,
    RunStarted,
)
from workbench.files.run_options import RunOptions
from workbench.project.project import Project
from workbench.results.cells import cut_name
from workbench.results.faces import COUNTED, FACES
from workbench.results.machines import fleet_brief, fleet_busy, fleet_line, lost_words, machine_line, place_words
from workbench.results.plain_lines import case_label, case_line, label, notice_line, wait_line
from workbench.results.plain_summary import STYLES, SummaryLine, brief_lines
from workbench.run.dask.files import MachineState
from workbench.store.details import read_details
from workbench.store.rates import STARTING_AGENTS, RemainingTime, is_waiting_for_agents, left_words
from workbench.store.store import Store
from workbench.text.safe_text import one_line

_SILENT_FOR = 7
"""Seconds without a line after which `MachineLines.beat` writes one."""


def machine_lines(
    project: Project, options: RunOptions, say: Callable[[str], None], *, sums_up: bool = True
) -> "MachineLines | None":
    """Return the writer of lines about the machines that these options use, or None if it is only this one."""
    if options.place is None or options.place.is_local:
        return None
    place, check = place_words(options.place), one_line(options.place.check)
    return MachineLines(place, lambda: project.machines(options), project.store, say, sums_up=sums_up, check=check)


class MachineLines:
    """A writer of lines about the machines of a run at `place` (safe text). Subscribe `apply` to the store.

    `say` writes a line. `machines` returns the current states. With `sums_up`, the end of a run has a line for each
    machine, and `check` if there are cases that no machine could run.
    """

    def __init__(
        self,
        place: str,
        machines: Callable[[], Sequence[MachineState]],
        store: Store,
        say: Callable[[str], None],
        *,
        sums_up: bool = True,
        check: str = "",
    ) -> None:
        self._place, self._machines, self._store, self._say = place, machines, store, say
        self._sums_up, self._check = sums_up, check
        self._told: set[str] = set()
        """Machines that were mentioned, and have not been lost since."""
        self._begun = False
        self._quiet = 0
        """Seconds since the last line."""

    def apply(self, event: Event) -> None:
        """Write the lines that an event causes."""
        if isinstance(event, CaseFinished | Noticed):
            self._quiet = 0
        match event:
            case RunStarted() if not self._begun:
                self._begun, self._quiet = True, 0
                self._say(f"running on {self._place}")
            case CasePlaced() if event.machine not in self._told:
                self._look()
            case AttemptLost():
                self._say(f"retry {label(event.case)}: {lost_words(event.lost)}")
                self._told.discard(event.lost.machine)
            case RunFinished() if self._sums_up:
                self._look()
                cases = Counter(record.machine for record in self._store.current_records())
                for state in self._machines():
                    self._say(machine_line(state, cases[state.name]))
                errors = {record.error.kind for record in self._store.current_records() if record.error is not None}
                if self._check and "attempt_lost" in errors:
                    self._say(self._check)

    def beat(self) -> None:
        """Write a line about the machines, if none was written for some time. Call it once a second."""
        self._quiet += 1
        if self._quiet >= _SILENT_FOR and self._begun:
            self._quiet = 0
            self._say(fleet_busy(self._machines()))

    def _look(self) -> None:
        states = self._machines()
        ready = [state.name for state in states if state.phase == "ready" or state.running]
        new = [name for name in ready if name not in self._told]
        self._told = set(ready)
        if new:
            self._say(fleet_line(self._place, states, new))


class Progress(ABC):
    """A progress display that follows the store while it is entered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsubscribe: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._unsubscribe = self._store.subscribe(self._on_event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unsubscribe:
            self._unsubscribe()

    @abstractmethod
    def message(self, line: str) -> None:
        """Show a message, such as the effect of Ctrl-C. `line` is safe text."""

    def show_machines(self, machines: Callable[[], Sequence[MachineState]]) -> None:  # noqa: B027
        """Show how busy the machines are that `machines` returns, if the display is redrawn."""

    async def keep_fresh(self) -> None:  # noqa: B027
        """Update clocks and counters at intervals, until cancelled."""

    @abstractmethod
    def _on_event(self, event: Event) -> None: ...


class PlainProgress(Progress):
    """Progress as plain lines on two streams, one for results and one for messages.

    If `done_again()` is true, another run will repeat the cases that this run did not reach. They then get no CANCELLED
    line.
    """

    def __init__(
        self, store: Store, results: TextIO, messages: TextIO, done_again: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(store)
        self._done_again = done_again
        self._cancelled: set[CaseRef] = set()
        """Cancelled cases of this run that already have their line."""
        self._results = results
        self._messages = messages

    def message(self, line: str) -> None:
        """Write a message to its stream."""
        write_line(self._messages, line)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, CaseFinished):
            self._line_of(event.case, cancelled=event.status == "cancelled")
        elif isinstance(event, RunFinished):
            for record in () if self._done_again() else self._store.current_records():
                if record.state == "cancelled" and record.ref not in self._cancelled:
                    self._line_of(record.ref, cancelled=True)
            self._cancelled.clear()
        elif isinstance(event, Noticed):
            self.message(notice_line(event))
        elif isinstance(event, JudgeWaits) and event.seconds > 0:
            self.message(wait_line(event))

    def _line_of(self, ref: CaseRef, *, cancelled: bool) -> None:
        write_line(self._results, case_line(read_details(self._store.current_record(ref))))
        if cancelled:
            self._cancelled.add(ref)


class QuietProgress(PlainProgress):
    """A display without progress: only warnings, errors and messages such as the effect of Ctrl-C."""

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Noticed) and event.level != "info":
            self.message(notice_line(event))


_INTERVAL = 0.125
"""Seconds between two drawings."""
_ALL_NAMED = 40
"""Maximum number of cases for which every result gets a line. In larger runs, passed cases get no line."""
_RUNNING_NAMED = 3
_COMPARED_NAMES = 1000
"""Maximum number of names that stay distinct when they are cut."""


def print_styled(stream: TextIO, lines: Iterable[SummaryLine]) -> None:
    """Write lines to a terminal, coloured and wrapped at its width with their indent."""
    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    try:
        for line in lines:
            for part in _wrapped(console, stream, line):
                console.print(part, soft_wrap=True)
    except OSError:
        silence(stream)


def _wrapped(console: Console, stream: TextIO, line: SummaryLine) -> Iterator[Text]:
    """Yield the lines of a terminal that show `line`. A name that is too long is cut, not wrapped."""
    width = max(20, console.width - line.indent)
    shown = line.text if " " in line.text else cut_name(line.text, width)
    text = Text(spelled_for(stream, shown), style=line.style)
    for start, end, style in line.spans:
        text.stylize(style, start, end)
    for part in text.wrap(console, width) or [text]:
        yield Text(" " * line.indent).append_text(part)


class LiveProgress(Progress):
    """A progress display on the terminal `results`.

    Messages go there as well, unless `messages` is not a terminal. `names_cases` writes a line for each case that did
    not pass, and in small runs for all.
    """

    def __init__(
        self,
        store: Store,
        results: TextIO,
        messages: TextIO,
        clock: Callable[[], float] = time.monotonic,
        *,
        names_cases: bool = True,
    ) -> None:
        super().__init__(store)
        self._names_cases = names_cases
        self._clock = clock
        self._began = clock()
        self._stream = results
        self._elsewhere = None if messages.isatty() else messages
        self._console = Console(file=results, markup=False, highlight=False, emoji=False)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._glyphs = can_show(results, "✓✗▶")
        self._waiting: list[SummaryLine] = []
        self._told: dict[tuple[str, ...], str] = {}
        """Reasons that were shown, and the first case that has them."""
        self._names: list[str] = []
        self._changed = False
        self._second = -1
        self._remaining = RemainingTime(clock)
        self._machines: Callable[[], Sequence[MachineState]] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._guarded(self._live.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.refresh()
        self._guarded(self._live.stop)

    def message(self, line: str) -> None:
        """Show a message above the block, or write it to the messages stream."""
        if self._elsewhere is not None:
            write_line(self._elsewhere, line)
        else:
            self._waiting.append(SummaryLine(line, style="yellow"))

    def show_machines(self, machines: Callable[[], Sequence[MachineState]]) -> None:
        """Show how busy these machines are, beside the counts."""
        self._machines = machines

    async def keep_fresh(self) -> None:
        """Redraw at intervals until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(_INTERVAL)

    def refresh(self) -> None:
        """Draw new lines, counts and the clock if one of them changed."""
        elapsed = self._clock() - self._began
        if not self._waiting and not self._changed and int(elapsed) == self._second:
            return
        self._changed, self._second = False, int(elapsed)
        lines, self._waiting = self._waiting, []
        self._guarded(lambda: self._draw(lines, elapsed))

    def _draw(self, lines: list[SummaryLine], elapsed: float) -> None:
        if lines:
            self._live.update(self._block(elapsed))
            shown = [part for line in lines for part in _wrapped(self._console, self._stream, line)]
            self._console.print(Text("\n").join(shown), soft_wrap=True)
        else:
            self._live.update(self._block(elapsed), refresh=True)

    def _on_event(self, event: Event) -> None:
        self._changed = True
        self._remaining.apply(event)
        if isinstance(event, RunStarted):
            self._began = self._clock()  # The times in events count from here.
            self._names = [one_line(planned.case.eval_id) for planned in event.cases[:_COMPARED_NAMES]]
        elif isinstance(event, Noticed):
            self.message(notice_line(event))
        elif isinstance(event, JudgeWaits):
            # On the terminal the block counts down instead.
            if self._elsewhere is not None and event.seconds > 0:
                self.message(wait_line(event))
        elif isinstance(event, CaseFinished) and self._names_cases:
            record = read_details(self._store.current_record(event.case))
            # The summary names cancelled cases, with those that never started.
            if record.state != "cancelled" and (record.state != "passed" or len(self._store.current) <= _ALL_NAMED):
                width = self._console.width
                self._waiting += brief_lines(record, self._store.run.root, width, self._told, self._names)

    def _block(self, elapsed: float) -> Text:
        counts = self._store.counts()
        done = sum(counts[state] for state in COUNTED)
        minutes, seconds = divmod(int(elapsed), 60)
        starts = not self._store.run.scored_from and is_waiting_for_agents(counts["running"], counts["queued"])
        so_far = f"{done}/{counts.total()}" if self._store.run.run_id else "starting"
        block = Text(f"{'▶ ' if self._glyphs else ''}{so_far}")
        if starts:
            block.append(f" {STARTING_AGENTS}")
        for state in COUNTED:
            if counts[state]:
                glyph = FACES[state].glyph if self._glyphs else ""
                block.append(f"  {glyph} {counts[state]} {FACES[state].word}", style=STYLES[state])
        block.append(f"  {minutes}:{seconds:02}")
        if (left := left_words(self._remaining.seconds())[0]) and not starts:
            block.append(f"  {left}")
        if self._machines is not None and (busy := fleet_brief(self._machines())[0]):
            block.append(f"  {busy}", style="cyan")
        for line in self._paused(elapsed):
            block.append(f"\n  {spelled_for(self._stream, line)}", style="yellow")
        for line in self._running(elapsed):
            block.append(f"\n  {line}", style="dim")
        block.no_wrap = True
        block.overflow = "ellipsis" if self._glyphs else "crop"
        return block

    def _paused(self, elapsed: float) -> Iterator[str]:
        """Yield a line for each judge that has to wait, with the remaining seconds."""
        for wait in self._store.waits.values():
            left = max(0.0, wait.at + wait.seconds - elapsed)
            yield f"{one_line(wait.model, limit=60)} waits {left:.0f} s  {one_line(wait.reason, limit=200)}"

    def _running(self, elapsed: float) -> Iterator[str]:
        """Yield lines for the cases that have run longest, with their seconds."""
        running = [record for record in self._store.current_records() if record.state == "running"]
        running.sort(key=lambda record: record.started_at or 0.0)
        for record in running[:_RUNNING_NAMED]:
            yield f"{case_label(record)}  {max(0.0, elapsed - (record.started_at or 0.0)):.0f} s"

    def _guarded(self, draw: Callable[[], None]) -> None:
        """Draw, and stop all output if the terminal is gone."""
        try:
            draw()
        except OSError:
            silence(self._stream)
