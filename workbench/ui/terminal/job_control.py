"""Stopping and continuing the program as a job of the user's shell. Imports no Textual."""

import os
import signal
import sys
import time
from collections.abc import Callable

from workbench.ui.terminal.terminal import in_foreground

_MOMENT = 0.05
"""Seconds until a signal to the own process group has certainly arrived in a process with threads."""


def stop_until_continued(ended: Callable[[], bool]) -> bool:
    """Stop the process group, as the terminal does for ctrl+z, until the shell continues it in the foreground.

    Programs such as `make` or `uv run` that started this one are stopped too, so that the shell notices. If no shell
    could continue it, the system ignores the signal and the result is False. Call it in the main thread, with the
    terminal restored. `ended` says whether a signal has told the program to end: it then returns in the background too.
    """
    continued = False

    def note(number: int, frame: object) -> None:
        nonlocal continued
        continued = True

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    signal.signal(signal.SIGCONT, note)
    try:
        while True:
            before = continued
            continued = False
            os.kill(0, signal.SIGTSTP)
            time.sleep(_MOMENT)
            # A program in the background that needs the terminal stops again.
            if not continued or ended() or sys.__stdin__ is None or in_foreground(sys.__stdin__.fileno()):
                return continued or before
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
