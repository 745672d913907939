"""The terminal before and after: what must be set before the screen's library is imported, and what must be put back
however the program ends. Imports no Textual."""

import contextlib
import os
import sys
import termios
from collections.abc import Iterator

from workbench.ui.pace import over_ssh

# Leave the other screen, show the cursor, wrap lines; mouse, focus reports, bracketed paste, in-band resize and the
# extended keyboard off; colours back.
_RESTORE = (
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?2026l\x1b[0m\r"
)
_ESCAPE_DELAY_LOCAL = "25"
_FRAMES_LOCAL = "250"
"""How long a key waits for its frame: 4 ms at most. What runs is held back by `pace`, not by this."""


def prepare() -> None:
    """Sets what Textual reads when it is imported, where the user has not: no animations (each is a stream of
    frames), over SSH no smooth scrolling, and locally a short wait to tell esc from an escape sequence (over a slow
    line, where a sequence may come in pieces, Textual's own)."""
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    if over_ssh():
        os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    else:
        os.environ.setdefault("ESCDELAY", _ESCAPE_DELAY_LOCAL)
        os.environ.setdefault("TEXTUAL_FPS", _FRAMES_LOCAL)


class Before:
    """The terminal's settings as the program found them; None where there is no terminal."""

    def __init__(self) -> None:
        try:
            self._settings = termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ else None
        except (termios.error, ValueError, OSError):
            self._settings = None

    def put_back(self, *, wait: bool = True) -> None:
        """Leaves the terminal as it was, if Textual did not come to do that itself. Without `wait`, one that takes
        nothing any more only gets its settings back."""
        if self._settings is None:
            return
        # The terminal may be gone: that is what SIGHUP means.
        with contextlib.suppress(termios.error, ValueError, OSError):
            assert sys.__stdin__ is not None
            number = sys.__stdin__.fileno()
            if termios.tcgetattr(number) == self._settings:
                return
            termios.tcsetattr(number, termios.TCSANOW, self._settings)
            if wait:
                os.write(number, _RESTORE.encode("ascii"))
            else:
                _write_at_once(number)


def _write_at_once(number: int) -> None:
    """Writes as much as the terminal takes now. It is opened again: `O_NONBLOCK` would hold for the shell as well."""
    again = os.open(os.ttyname(number), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        os.write(again, _RESTORE.encode("ascii"))
    finally:
        os.close(again)


@contextlib.contextmanager
def restored(before: Before) -> Iterator[None]:
    """Leaves the terminal as it was, also if the screen crashed before it could do that itself."""
    try:
        yield
    finally:
        before.put_back()
