"""The terminal: its abilities and speed, and its settings, which are restored however the program ends.

This module does not import Textual, which reads some environment variables when it is imported.

Textual's event loop may hang while it opens or closes the screen, because its writer waits for a terminal that accepts
no more output. So a thread ends the program in this case. Signals still reach Python's handlers.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench.text.ascii_signs import shows_unicode

if TYPE_CHECKING:
    import asyncio


Colors: TypeAlias = Literal["truecolor", "256", "standard", "none"]
"""Rich's names of colour systems. `standard` has sixteen colours, and `none` is for NO_COLOR."""
SIXTEEN_COLORS = "terminal"
"""The theme for terminals with sixteen colours or without colours."""
_TRUECOLOR = ("-direct", "-kitty", "-ghostty", "alacritty", "foot", "wezterm", "contour")
"""Endings of TERM for terminals with true colour. SSH does not pass on COLORTERM."""
_LINUX_CONSOLE = "linux"
"""TERM of the Linux console, whose font of 512 characters lacks most of the program's signs."""


@dataclass(frozen=True, slots=True)
class Display:
    """The terminal's colours, and whether it shows the program's `signs` and other non-ASCII text (`foreign`)."""

    colors: Colors = "truecolor"
    signs: bool = True
    foreign: bool = True

    @property
    def needs_plain_theme(self) -> bool:
        """Whether statuses are distinguishable only with the theme `SIXTEEN_COLORS`."""
        return self.colors in ("standard", "none")


def find_display(environment: Mapping[str, str], encoding: str | None) -> Display:
    """Return the abilities of the terminal. `encoding` is the encoding of standard output."""
    unicode = shows_unicode(environment, encoding)
    return Display(_colors(environment), unicode and environment.get("TERM") != _LINUX_CONSOLE, unicode)


def tell_textual(display: Display) -> None:
    """Make Textual use the display's colours. Call this before Textual is imported.

    NO_COLOR is removed: Textual would show shades of grey, in which a failure looks like any other text.
    """
    os.environ.pop("NO_COLOR", None)
    if display.colors != "none":
        os.environ["TEXTUAL_COLOR_SYSTEM"] = display.colors


def _colors(environment: Mapping[str, str]) -> Colors:
    if environment.get("NO_COLOR"):
        return "none"
    match environment.get("TEXTUAL_COLOR_SYSTEM"):
        case "truecolor" | "256" | "standard" as wanted:
            return wanted
    terminal = environment.get("TERM", "").lower()
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit") or terminal.endswith(_TRUECOLOR):
        return "truecolor"
    return "256" if terminal.endswith(("-256color", "-256")) else "standard"


FASTEST = 0.1
OVER_SSH = 0.25
BYTES_A_SECOND = 8_000
SAVED_UP = 1.5
"""Maximum credit in seconds. A quiet screen collects credit, and shows the first verdicts at once."""
_BYTES_A_LINE = 240
"""Measured size of a tree row with its colours, in bytes."""


def over_ssh() -> bool:
    """Return whether the terminal is connected through SSH."""
    return any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))


def seconds_for(lines: int) -> float:
    """Return the seconds that a slow connection needs to send this number of lines."""
    return lines * _BYTES_A_LINE / BYTES_A_SECOND


class Pace:
    """A limit on the paint rate. Times are in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._shortest = OVER_SSH if over_ssh() else FASTEST
        self._next = self._credited = 0.0

    def wait(self, now: float, *, decided: bool = False) -> float:
        """Return the seconds to wait before painting, or 0 to paint now.

        If a case was `decided`, the collected credit may be used.
        """
        return max(0.0, (self._credited if decided else self._next) - now)

    def painted(self, now: float, lines: int) -> None:
        """Record that `lines` lines were painted at the time `now`. The more lines, the longer the next wait."""
        rest = max(self._shortest, seconds_for(lines))
        self._next = max(self._next, now) + rest
        self._credited = max(self._credited, now - SAVED_UP) + rest


# Leaves the alternate screen, shows the cursor and wraps lines. Turns off the mouse, focus reports, bracketed paste,
# in-band resize and the extended keyboard. Resets colours.
_RESTORE = (
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?2026l\x1b[0m\r"
)


def prepare() -> None:
    """Set the environment variables that Textual reads when it is imported, unless the user has set them.

    They turn off animations, which send many frames, and over SSH smooth scrolling, too.
    """
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    if over_ssh():
        os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    else:
        # Over SSH, an escape sequence may arrive in parts, so Textual's own wait applies there.
        os.environ.setdefault("ESCDELAY", "25")
        # A key waits 4 ms at most. `Pace` limits updates by runs.
        os.environ.setdefault("TEXTUAL_FPS", "250")


class TerminalState:
    """The settings of the terminal, if there is one, at the start of the program."""

    def __init__(self) -> None:
        try:
            self._settings = termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ else None
        except (termios.error, ValueError, OSError):
            self._settings = None

    def restore(self, *, wait: bool = True) -> None:
        """Restore the terminal if Textual did not do so.

        In the background, do nothing: the terminal belongs to the shell, and changing it would stop the program.
        Without `wait`, output that the terminal does not accept at once is dropped.
        """
        if self._settings is None:
            return
        # After SIGHUP, the terminal may no longer exist.
        with contextlib.suppress(termios.error, ValueError, OSError):
            assert sys.__stdin__ is not None
            number = sys.__stdin__.fileno()
            if termios.tcgetattr(number) == self._settings or not in_foreground(number):
                return
            termios.tcsetattr(number, termios.TCSANOW, self._settings)
            if wait:
                os.write(number, _RESTORE)
                return
            # `O_NONBLOCK` on the existing descriptor would also affect the shell.
            again = os.open(os.ttyname(number), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            try:
                os.write(again, _RESTORE)
            finally:
                os.close(again)


def in_foreground(terminal: int) -> bool:
    """Return whether the program is in the foreground, or has no controlling terminal."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True


_MOMENT = 0.05
"""Seconds to wait until a signal to the own process group has arrived, also with several threads."""


def stop_until_continued(ended: Callable[[], bool]) -> bool:
    """Stop the process group like ctrl+z in a terminal, until the shell continues it in the foreground.

    Return False if no shell can continue it. The system then ignores the signal. Parent programs such as `make` or
    `uv run` are stopped, too, so that the shell notices. Call this in the main thread, with the terminal restored. If
    `ended` returns True because a signal is to end the program, return in the background, too.
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


SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
"""Signals that end the program. The key ctrl+c sends no signal here, so SIGINT comes from another program."""
_TAKEN_WITHIN = 2.0
"""Seconds within which a working event loop reacts."""
_ACTED_WITHIN = 5.0
"""Seconds for a run to end, including its storage and its child processes."""
_LEFT_WITHIN = 2.0
"""Seconds for the screen to close after that."""
_KILLED_AFTER = 12.0
"""Seconds after which the system ends the process, in case the watchdog hangs, too."""
_POLL_SECONDS = 1.0
"""Seconds between checks of the terminal on systems that do not report a hang-up."""


class Watchdog:
    """A thread that ends the process if it still runs some time after a signal or the loss of the terminal.

    Before `attach`, the process ends at once, because nothing can be lost. After it, `cleanup` is called before the
    end, in the watchdog's thread. `restore` restores the terminal without waiting for it.
    """

    def __init__(self, restore: Callable[[], None] = lambda: None) -> None:
        self.cleanup: Callable[[], None] = lambda: None
        self.ends = False
        """Whether a signal to end the program has arrived."""
        self._restore = restore
        self._loop: asyncio.AbstractEventLoop | None = None
        self._act: Callable[[int], None] | None = None
        self._attached = False
        self._free = threading.Event()
        self._free.set()
        self._taken, self._acted = threading.Event(), threading.Event()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def start(self) -> None:
        """Install the signal handlers and start the thread. Call this in the main thread.

        A SIGHUP handler is installed even if SIGHUP was ignored, because the screen is useless without a terminal.
        """
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, daemon=True, name="watchdog").start()

    def attach(self, act: Callable[[int], None]) -> None:
        """Call `act(number)` in the running event loop when the program must end.

        The loss of the terminal counts as SIGHUP, which the system sends only for a controlling terminal.
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
        """Deliver signals again after `lend`."""
        self._free.set()

    def _on_signal(self, number: int, _frame: object) -> None:
        self.ends = True
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
        """Wait for a signal or the loss of the terminal. Return the signal's number, or SIGHUP."""
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
            if not reports_hang_up:
                try:
                    termios.tcgetattr(terminal)
                except termios.error:
                    return int(signal.SIGHUP)

    def _pass_on(self, number: int) -> None:
        """Make the event loop end the program, and wait for the end. Return early if the loop does not react."""
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
