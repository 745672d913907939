"""The terminal before and after: what must be set before the screen's library is imported, and what must be put back
however the program ends. Imports no Textual."""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from workbench.ui.pace import over_ssh

if TYPE_CHECKING:
    import asyncio

# Leave the other screen, show the cursor, wrap lines; mouse, focus reports, bracketed paste, in-band resize and the
# extended keyboard off; colours back.
_RESTORE = (
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?2026l\x1b[0m\r"
)
_ESCAPE_DELAY_LOCAL = "25"
_FRAMES_LOCAL = "250"
"""How long a key waits for its frame: 4 ms at most. What runs is held back by `pace`, not by this."""
SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
"""ctrl+c on the keyboard is a key, not SIGINT: that one is sent by another program."""


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


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Leaves the terminal as it was, also if the screen crashed before it could do that itself."""
    try:
        before = termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ else None
    except (termios.error, ValueError, OSError):
        before = None
    try:
        yield
    finally:
        if before is not None:
            _restore(before)


def on_signals(act: Callable[[int], None]) -> Callable[[], None]:
    """Calls `act(number)` in the running event loop when the program is told to end; the returned function ends
    that. A terminal that is gone counts as SIGHUP, which is not sent to a program that it did not control: without
    this, reading from what is not there would keep a core busy for ever."""
    import asyncio

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, act, number)
    if sys.platform == "linux":
        threading.Thread(target=_tell_of_hang_up, args=(loop, act), daemon=True, name="hang-up").start()

    def undo() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    return undo


def _tell_of_hang_up(loop: "asyncio.AbstractEventLoop", act: Callable[[int], None]) -> None:
    try:
        waiting = select.poll()
        # Asked for nothing: a hang-up is told all the same.
        waiting.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)
        found = waiting.poll()
    except (OSError, ValueError):
        return
    if any(event & select.POLLHUP for _, event in found):
        with contextlib.suppress(RuntimeError):  # the program has come to its end
            loop.call_soon_threadsafe(act, signal.SIGHUP)


def _restore(before: list[Any]) -> None:
    # The terminal may be gone: that is what SIGHUP means.
    with contextlib.suppress(termios.error, ValueError, OSError):
        assert sys.__stdin__ is not None
        number = sys.__stdin__.fileno()
        if termios.tcgetattr(number) != before:
            # Textual did not come to its end: it would have put this back.
            termios.tcsetattr(number, termios.TCSANOW, before)
            os.write(number, _RESTORE.encode("ascii"))
