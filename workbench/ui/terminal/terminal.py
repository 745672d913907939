"""The terminal's settings: set before Textual is imported, restored however the program ends. Imports no Textual."""

import contextlib
import os
import sys
import termios
from collections.abc import Iterator

from workbench.ui.terminal.pace import over_ssh

# Leaves the alternate screen, shows the cursor and wraps lines. Turns off the mouse, focus reports, bracketed paste,
# in-band resize and the extended keyboard. Resets colours.
_RESTORE = (
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?2026l\x1b[0m\r"
)
_ESCAPE_DELAY_LOCAL = "25"
_FRAMES_LOCAL = "250"
"""Textual's frames per second, so that a key waits 4 ms at most. `pace` limits the painting of runs."""


def prepare() -> None:
    """Set the environment variables that Textual reads when it is imported, unless the user has set them.

    There are no animations, because each is a stream of frames. Over SSH there is no smooth scrolling. Locally, the
    wait that tells esc from an escape sequence is short. Over SSH, a sequence may come in pieces, so Textual's own wait
    stays.
    """
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    if over_ssh():
        os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    else:
        os.environ.setdefault("ESCDELAY", _ESCAPE_DELAY_LOCAL)
        os.environ.setdefault("TEXTUAL_FPS", _FRAMES_LOCAL)


class TerminalState:
    """The terminal's settings when the program started, or nothing without a terminal."""

    def __init__(self) -> None:
        try:
            self._settings = termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ else None
        except (termios.error, ValueError, OSError):
            self._settings = None

    def restore(self, *, wait: bool = True) -> None:
        """Restore the terminal if Textual did not do so.

        In the background it belongs to the shell, and was restored before. Setting it would stop the program.
        Without `wait`, a terminal that accepts no more output only gets its settings back.
        """
        if self._settings is None:
            return
        # After SIGHUP, the terminal may be gone.
        with contextlib.suppress(termios.error, ValueError, OSError):
            assert sys.__stdin__ is not None
            number = sys.__stdin__.fileno()
            if termios.tcgetattr(number) == self._settings or not in_foreground(number):
                return
            termios.tcsetattr(number, termios.TCSANOW, self._settings)
            if wait:
                os.write(number, _RESTORE.encode("ascii"))
            else:
                _write_at_once(number)


def in_foreground(terminal: int) -> bool:
    """Return whether the program may use its terminal, or has none that controls it."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True


def _write_at_once(number: int) -> None:
    """Write as much as the terminal accepts now.

    The terminal is opened again, because `O_NONBLOCK` on the open one would also affect the shell.
    """
    again = os.open(os.ttyname(number), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        os.write(again, _RESTORE.encode("ascii"))
    finally:
        os.close(again)


@contextlib.contextmanager
def restored(before: TerminalState) -> Iterator[None]:
    """Restore the terminal at the end, also if the screen crashed."""
    try:
        yield
    finally:
        before.restore()
