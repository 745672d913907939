"""A thread that ends the program if its event loop cannot. Imports no Textual.

The loop may be blocked while it opens or leaves the screen. Textual's writer has a short queue, which is not emptied
once writing to the terminal fails or blocks. Signals reach Python's handlers even then.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
"""Signals that end the program. ctrl+c on the keyboard is a key here, so SIGINT comes from another program."""
_TAKEN_WITHIN = 2.0
"""Seconds within which a working event loop reacts."""
_ACTED_WITHIN = 5.0
"""Seconds that a run gets to end, with its storage and its child processes."""
_LEFT_WITHIN = 2.0
"""Seconds that the screen then gets to close."""
_KILLED_AFTER = 12.0
"""Seconds after which the system ends the process, in case this thread is stuck too."""
_POLL_SECONDS = 1.0
"""Seconds between polls of the terminal, on systems that do not report a hang-up."""


class Watchdog:
    """Ends the process after a signal or the loss of its terminal, if it does not end by itself.

    Before `attach` it ends at once, because nothing can be lost. `cleanup` is called first, at most once and in the
    watchdog's thread. `restore` restores the terminal without waiting for it.
    """

    def __init__(self, restore: Callable[[], None] = lambda: None) -> None:
        self.cleanup: Callable[[], None] = lambda: None
        self._restore = restore
        self._loop: asyncio.AbstractEventLoop | None = None
        self._act: Callable[[int], None] | None = None
        self._attached = False
        self._signalled = False
        self._free = threading.Event()
        self._free.set()
        self._taken, self._acted = threading.Event(), threading.Event()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def start(self) -> None:
        """Install the signal handlers and start the thread. Call this in the main thread.

        A hang-up counts even if SIGHUP was ignored, because a screen without a terminal is useless.
        """
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, daemon=True, name="watchdog").start()

    def attach(self, act: Callable[[int], None]) -> None:
        """Call `act(number)` in the running event loop when the program must end.

        The loss of the terminal counts as SIGHUP. The system does not send SIGHUP to a program that the terminal did
        not control.
        """
        import asyncio

        self._loop, self._act, self._attached = asyncio.get_running_loop(), act, True

    def detach(self) -> None:
        """Stop calling `act`, because the screen is being closed."""
        self._act = None

    def lend(self) -> None:
        """Delay signals other than SIGHUP until `take_back`, while an editor has the terminal."""
        self._free.clear()

    def take_back(self) -> None:
        """End `lend`."""
        self._free.set()

    @property
    def ends(self) -> bool:
        """Whether a signal has told the program to end."""
        return self._signalled

    def _on_signal(self, number: int, _frame: object) -> None:
        self._signalled = True
        with contextlib.suppress(OSError):  # A full pipe already has enough signals.
            os.write(self._write, bytes([number]))

    def _watch(self) -> None:
        number = self._wait()
        if number != signal.SIGHUP:
            self._free.wait()
        signal.setitimer(signal.ITIMER_REAL, _KILLED_AFTER)
        if self._attached:
            self._pass_on(number)
            self.cleanup()
        self._restore()
        os._exit(128 + number)

    def _wait(self) -> int:
        """Wait for a signal and return its number. The loss of the terminal returns SIGHUP."""
        terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
        waiting = select.poll()
        waiting.register(self._read, select.POLLIN)
        reports_hang_up = sys.platform == "linux"
        if reports_hang_up:
            # poll reports a hang-up even for an empty event mask.
            waiting.register(terminal, 0)
        while True:
            for descriptor, _ in waiting.poll(None if reports_hang_up else _POLL_SECONDS * 1000):
                return os.read(self._read, 1)[0] if descriptor == self._read else int(signal.SIGHUP)
            if not reports_hang_up and is_gone(terminal):
                return int(signal.SIGHUP)

    def _pass_on(self, number: int) -> None:
        """Let the event loop end the program, and give it time. Return at once if the loop does not react."""
        loop, act = self._loop, self._act
        if loop is not None and act is not None:

            def do() -> None:
                self._taken.set()
                act(number)
                self._acted.set()

            with contextlib.suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(do)
                if not self._taken.wait(_TAKEN_WITHIN) or not self._acted.wait(_ACTED_WITHIN):
                    return
        # If all goes well, the process ends during this sleep.
        time.sleep(_LEFT_WITHIN)


def is_gone(terminal: int) -> bool:
    """Return whether a file descriptor is no longer a terminal."""
    try:
        termios.tcgetattr(terminal)
    except termios.error:
        return True
    return False
