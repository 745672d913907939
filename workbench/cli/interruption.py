"""Ctrl-C and other signals during a run."""

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from workbench.cli.streams import let_go_of_streams
from workbench.events.events import CaseRef

_BLOCKED = 2.0
"""Seconds without an iteration after which the event loop counts as blocked by a write."""


class Stoppable(Protocol):
    """A run that can be ended early."""

    def stop(self) -> None:
        """Start no more cases. Running cases continue."""

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        """Cancel one case, or all of them if `ref` is None. `kill` ends them at once."""


class Interruption:
    """A context in which signals end `run` step by step instead of ending the program.

    After one Ctrl-C no new cases start, and running cases finish or reach their timeout. After two they are killed.
    SIGTERM and SIGHUP (the terminal is gone) leave less time: running cases are cancelled, and killed the second time.
    The run always comes to its end, so that finished scores are reported. `say` gets a sentence about each step.

    The handlers are Python's, not the event loop's, because the loop is blocked while it writes to a terminal that no
    longer reads. Output to such a terminal is dropped; at the second signal, output to a pipe as well.
    """

    def __init__(self, run: Stoppable, say: Callable[[str], None]) -> None:
        self._run = run
        self._say = say
        self._before: dict[signal.Signals, Any] = {}
        self._came = 0
        self._over = False
        self._turn: asyncio.TimerHandle | None = None
        self.count = 0
        """Number of signals so far."""

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` asks to ignore a hang-up. Shells also ignore SIGINT in background jobs of scripts, but nobody
            # chose that there: whoever sends SIGINT means it.
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
        """Postpone `_let_go` as long as the event loop works."""
        if self._over:
            return
        if self._turn is not None:
            self._turn.cancel()
        signal.setitimer(signal.ITIMER_REAL, _BLOCKED, _BLOCKED)
        self._turn = self._loop.call_later(_BLOCKED / 4, self._take_turn)

    def _let_go(self, _number: int, _frame: object) -> None:
        """Unblock the event loop by silencing the stream that it waits for."""
        let_go_of_streams(pipes=self._came > 1)

    def _on_signal(self, number: signal.Signals) -> None:
        self.count += 1
        self._run.stop()
        if self.count > 1:
            self._run.cancel(None, kill=True)
            self._say("Killed all running cases.")
        elif number == signal.SIGINT:
            self._say("No new cases start; running cases may finish. Ctrl-C again kills them.")
        else:
            self._run.cancel(None)
            self._say(f"{number.name}: no new cases start; cancelling running cases.")
