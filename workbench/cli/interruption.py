"""What Ctrl-C and the other ways of asking a program to stop do to a run."""

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from workbench.cli.streams import let_go_of_streams
from workbench.events import CaseRef

_BLOCKED = 2.0
"""Seconds without a turn after which the event loop is taken to be blocked by a write."""


class Stoppable(Protocol):
    """A run, as far as it can be ended early."""

    def stop(self) -> None:
        """Starts no more cases; those that run go on."""

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        """Ends one case, or with None all of them: first asked, with `kill` at once."""


class Interruption:
    """While it is entered, signals end `run` step by step instead of ending the program.

    Ctrl-C once: no new cases, those running finish or are cut at their time-out. Twice: they are killed. SIGTERM and
    SIGHUP (a terminal that is gone) leave less time: those running are asked to end, the second time killed. In every
    case the run comes to its end, so that what was scored is reported. `say` is told what was done, in a sentence.

    The handlers are Python's, not the event loop's: the loop does not get its turn while it writes to a terminal that
    takes nothing any more. Such a terminal is let go of; at the second signal also a pipe.
    """

    def __init__(self, run: Stoppable, say: Callable[[str], None]) -> None:
        self._run = run
        self._say = say
        self._before: dict[signal.Signals, Any] = {}
        self._came = 0
        self._over = False
        self._turn: asyncio.TimerHandle | None = None
        self.count = 0
        """How many signals came."""

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` means that a hang-up is to be ignored, and so it is. SIGINT is ignored in what a script starts in
            # the background, too, but there nobody chose that: who sends it means it.
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._handle)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._let_go)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._turn is not None:
            self._turn.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, _frame: object) -> None:
        self._came += 1
        if number != signal.SIGINT or self._came > 1:
            signal.setitimer(signal.ITIMER_REAL, _BLOCKED, _BLOCKED)
            self._loop.call_soon_threadsafe(self._take_turn)
        self._loop.call_soon_threadsafe(self._on_signal, signal.Signals(number))

    def _take_turn(self) -> None:
        """Puts `_let_go` off, again and again while the event loop works."""
        if self._over:
            return
        if self._turn is not None:
            self._turn.cancel()
        signal.setitimer(signal.ITIMER_REAL, _BLOCKED, _BLOCKED)
        self._turn = self._loop.call_later(_BLOCKED / 4, self._take_turn)

    def _let_go(self, _number: int, _frame: object) -> None:
        """The event loop has not had a turn for a while. A write that it waits for goes on after this."""
        let_go_of_streams(pipes=self._came > 1)

    def _on_signal(self, number: signal.Signals) -> None:
        self.count += 1
        self._run.stop()
        if self.count > 1:
            self._run.cancel(None, kill=True)
            self._say("Killed what was running.")
        elif number == signal.SIGINT:
            self._say("No new cases; those running may finish. Ctrl-C once more kills them.")
        else:
            self._run.cancel(None)
            self._say(f"{number.name}: no new cases, and those running are ended.")
