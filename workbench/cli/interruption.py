"""What Ctrl-C and the other ways of asking a program to stop do to a run."""

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from workbench.events import CaseRef


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
    """

    def __init__(self, run: Stoppable, say: Callable[[str], None]) -> None:
        self._run = run
        self._say = say
        self._signals: list[signal.Signals] = []
        self.count = 0
        """How many signals came."""

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` means that a hang-up is to be ignored, and so it is. SIGINT is ignored in what a script starts in
            # the background, too, but there nobody chose that: who sends it means it.
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            loop.add_signal_handler(number, self._on_signal, number)
            self._signals.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.remove_signal_handler(number)

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
