"""Progress on a terminal: results as lines, and under them a block that counts and names what takes long.

Events only mark the block as changed. It is drawn a few times a second, with all lines that came meanwhile in one
write, so that a thousand quick cases cost a slow connection no more than ten.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from workbench.cli.streams import can_show, silence, spelled_for, write_line
from workbench.events import CaseFinished, Event, JudgeWaits, Noticed
from workbench.rendering.faces import COUNTED, FACES
from workbench.rendering.plain_lines import case_line, label, notice_line, wait_line
from workbench.rendering.plain_summary import SummaryLine
from workbench.store import CaseState, Store
from workbench.text import one_line

_INTERVAL = 0.125
"""Seconds between two drawings, at least."""
_ALL_NAMED = 40
"""Up to so many cases each result is a line; of more, only those without a pass are."""
_RUNNING_NAMED = 3
_COLOURS: dict[CaseState, str] = {
    "passed": "green",
    "failed": "red",
    "error": "magenta",
    "not_evaluated": "yellow",
    "cancelled": "dim",
}


def print_styled(stream: TextIO, lines: Iterable[SummaryLine]) -> None:
    """Writes lines to a terminal: wrapped at its width below their own beginning, and coloured."""
    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    try:
        for line in lines:
            text = Text(spelled_for(stream, line.text), style=line.style)
            width = max(20, console.width - line.indent)
            for part in text.wrap(console, width) or [text]:
                console.print(Text(" " * line.indent).append_text(part), soft_wrap=True)
    except OSError:
        silence(stream)


class LiveProgress:
    """`results` is the terminal. Messages go there too, unless `messages` leads elsewhere."""

    def __init__(
        self, store: Store, results: TextIO, messages: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._clock = clock
        self._began = clock()
        self._stream = results
        self._elsewhere = None if messages.isatty() else messages
        self._console = Console(file=results, markup=False, highlight=False, emoji=False)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._glyphs = can_show(results, "✓✗▶")
        self._waiting: list[Text] = []
        self._changed = False
        self._second = -1
        self._unsubscribe: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._unsubscribe = self._store.subscribe(self._on_event)
        self._guarded(self._live.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unsubscribe:
            self._unsubscribe()
        self.refresh()
        self._guarded(self._live.stop)

    def message(self, line: str) -> None:
        if self._elsewhere is not None:
            write_line(self._elsewhere, line)
        else:
            self._waiting.append(Text(spelled_for(self._stream, line), style="yellow"))

    async def keep_fresh(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(_INTERVAL)

    def refresh(self) -> None:
        """Draws what has changed since the last time: new lines, counts, or the clock."""
        elapsed = self._clock() - self._began
        if not self._waiting and not self._changed and int(elapsed) == self._second:
            return
        self._changed, self._second = False, int(elapsed)
        lines, self._waiting = self._waiting, []
        self._guarded(lambda: self._draw(lines, elapsed))

    def _draw(self, lines: list[Text], elapsed: float) -> None:
        if lines:
            self._live.update(self._block(elapsed))
            # Wrapped by the terminal, not here, so that a line that is copied is one line.
            self._console.print(Text("\n").join(lines), soft_wrap=True)
        else:
            self._live.update(self._block(elapsed), refresh=True)

    def _on_event(self, event: Event) -> None:
        self._changed = True
        if isinstance(event, Noticed):
            self.message(notice_line(event))
        elif isinstance(event, JudgeWaits):
            if self._elsewhere is not None and event.seconds > 0:  # On the terminal the block counts down.
                self.message(wait_line(event))
        elif isinstance(event, CaseFinished):
            record = self._store.current_record(event.case)
            if record.state != "passed" or len(self._store.current) <= _ALL_NAMED:
                line = Text(spelled_for(self._stream, case_line(record)))
                line.stylize(f"bold {_COLOURS.get(record.state, '')}", 0, line.plain.index(" "))
                self._waiting.append(line)

    def _block(self, elapsed: float) -> Text:
        counts = self._store.counts()
        done = sum(counts[state] for state in COUNTED)
        minutes, seconds = divmod(int(elapsed), 60)
        block = Text(f"{'▶ ' if self._glyphs else ''}{done}/{counts.total()}")
        for state in COUNTED:
            if counts[state]:
                glyph = FACES[state].glyph if self._glyphs else ""
                block.append(f"  {glyph} {counts[state]} {FACES[state].word}", style=_COLOURS[state])
        block.append(f"  {minutes}:{seconds:02}")
        for line in self._paused(elapsed):
            block.append(f"\n  {spelled_for(self._stream, line)}", style="yellow")
        for line in self._running(elapsed):
            block.append(f"\n  {line}", style="dim")
        block.no_wrap = True
        block.overflow = "ellipsis" if self._glyphs else "crop"
        return block

    def _paused(self, elapsed: float) -> Iterator[str]:
        """The judges whose questions wait, with the seconds that are left."""
        for wait in self._store.waits.values():
            left = max(0.0, wait.at + wait.seconds - elapsed)
            yield f"{one_line(wait.model, limit=60)} waits {left:.0f} s  {one_line(wait.reason, limit=200)}"

    def _running(self, elapsed: float) -> Iterator[str]:
        """The cases that have been running longest, with their seconds."""
        running = [record for record in self._store.current_records() if record.state == "running"]
        running.sort(key=lambda record: record.started_at or 0.0)
        for record in running[:_RUNNING_NAMED]:
            yield f"{label(record.ref)}  {max(0.0, elapsed - (record.started_at or 0.0)):.0f} s"

    def _guarded(self, draw: Callable[[], None]) -> None:
        """Draws, and goes silent for good if the terminal is gone."""
        try:
            draw()
        except OSError:
            silence(self._stream)
