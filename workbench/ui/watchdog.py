"""A thread that ends the program when its event loop cannot. Imports no Textual.

The loop may be blocked while it opens or leaves the screen: Textual's writer has a short queue, and nobody takes
anything out of it once writing to the terminal fails or blocks. Signals reach Python's handlers even then.
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
"""ctrl+c on the keyboard is a key, not SIGINT: that one is sent by another program."""
_TAKEN_WITHIN = 2.0
"""Seconds in which an event loop that works takes notice."""
_ACTED_WITHIN = 5.0
"""Seconds in which a run is ended, its journal and its children included."""
_LEFT_WITHIN = 2.0
"""Seconds in which the screen is left after that."""
_KILLED_AFTER = 12.0
"""Seconds after which the system ends the process, should this thread be stuck as well."""
_LOOK_EVERY = 1.0
"""Seconds between two looks at the terminal where the system does not tell of its end."""


class Watchdog:
    """Ends the process once its terminal is gone, or it is told to end by a signal, and it does not end by itself.

    Before `attach` it ends at once, as there is nothing to lose. `last_act` is called first, at most once and in the
    watchdog's thread; `put_back` restores the terminal without waiting for it.
    """

    def __init__(self, put_back: Callable[[], None] = lambda: None) -> None:
        self.last_act: Callable[[], None] = lambda: None
        self._put_back = put_back
        self._loop: asyncio.AbstractEventLoop | None = None
        self._act: Callable[[int], None] | None = None
        self._attached = False
        self._free = threading.Event()
        self._free.set()
        self._taken, self._acted = threading.Event(), threading.Event()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def start(self) -> None:
        """Takes over the signals and begins to watch; from the main thread. A hang-up counts also where SIGHUP was
        ignored, as a screen without a terminal is of no use."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, daemon=True, name="watchdog").start()

    def attach(self, act: Callable[[int], None]) -> None:
        """Calls `act(number)` in the running event loop when the program is to end. A terminal that is gone counts as
        SIGHUP, which is not sent to a program that it did not control."""
        import asyncio

        self._loop, self._act, self._attached = asyncio.get_running_loop(), act, True

    def detach(self) -> None:
        """The screen is being left: nothing is called any more."""
        self._act = None

    def lend(self) -> None:
        """Puts other signals than SIGHUP off until `take_back`: an editor has the terminal."""
        self._free.clear()

    def take_back(self) -> None:
        """Ends `lend`."""
        self._free.set()

    def _on_signal(self, number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):  # Full: it was told often enough.
            os.write(self._write, bytes([number]))

    def _watch(self) -> None:
        number = self._wait()
        if number != signal.SIGHUP:
            self._free.wait()
        signal.setitimer(signal.ITIMER_REAL, _KILLED_AFTER)
        if self._attached:
            self._pass_on(number)
            self.last_act()
        self._put_back()
        os._exit(128 + number)

    def _wait(self) -> int:
        """Returns the number of the signal that came, SIGHUP where the terminal is gone."""
        terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
        waiting = select.poll()
        waiting.register(self._read, select.POLLIN)
        told = sys.platform == "linux"
        if told:
            # Asked for nothing: a hang-up is told all the same.
            waiting.register(terminal, 0)
        while True:
            for descriptor, _ in waiting.poll(None if told else _LOOK_EVERY * 1000):
                return os.read(self._read, 1)[0] if descriptor == self._read else int(signal.SIGHUP)
            if not told and is_gone(terminal):
                return int(signal.SIGHUP)

    def _pass_on(self, number: int) -> None:
        """Has the event loop end the program, and gives it time for that; returns at once where it does not listen."""
        loop, act = self._loop, self._act
        if loop is not None and act is not None:

            def do() -> None:
                self._taken.set()
                act(number)
                self._acted.set()

            with contextlib.suppress(RuntimeError):  # The loop has come to its end.
                loop.call_soon_threadsafe(do)
                if not self._taken.wait(_TAKEN_WITHIN) or not self._acted.wait(_ACTED_WITHIN):
                    return
        # Where all goes well the process ends meanwhile.
        time.sleep(_LEFT_WITHIN)


def is_gone(terminal: int) -> bool:
    """Whether a descriptor that was a terminal is none any more."""
    try:
        termios.tcgetattr(terminal)
    except termios.error:
        return True
    return False
