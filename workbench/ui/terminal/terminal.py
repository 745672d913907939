"""The terminal: what it can show, how fast, and its settings. However the program ends, they are restored.

Imports no Textual, which reads some of them when it is loaded. Its event loop may be blocked while it opens or leaves
the screen: its writer has a short queue, which is not emptied once writing to the terminal fails or blocks. So a thread
ends the program then. Signals reach Python's handlers even then.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench.text.ascii_signs import shows_unicode

if TYPE_CHECKING:
    import asyncio


Colors: TypeAlias = Literal["truecolor", "256", "standard", "none"]
"""Rich's names of colour systems. `standard` has sixteen colours. `none`: the user wants no colours."""
SIXTEEN_COLORS = "terminal"
"""The theme for terminals with sixteen colours, and for none: it uses no others."""
_TRUECOLOR = ("-direct", "-kitty", "-ghostty", "alacritty", "foot", "wezterm", "contour")
"""Terminals that may be used over SSH, which does not pass on COLORTERM."""
_LINUX_CONSOLE = "linux"
"""Its font has no more than 512 characters, without most of our signs."""


@dataclass(frozen=True, slots=True)
class Display:
    """Abilities of the terminal. `signs`: ours, if they are not ASCII. `foreign`: characters of any other text."""

    colors: Colors = "truecolor"
    signs: bool = True
    foreign: bool = True

    @property
    def needs_plain_theme(self) -> bool:
        """Whether only the theme `SIXTEEN_COLORS` keeps statuses apart."""
        return self.colors in ("standard", "none")


def find_display(environment: Mapping[str, str], encoding: str | None) -> Display:
    """Return what the terminal of this environment can show. `encoding` is that of standard output."""
    unicode = shows_unicode(environment, encoding)
    return Display(_colors(environment), unicode and environment.get("TERM") != _LINUX_CONSOLE, unicode)


def tell_textual(display: Display) -> None:
    """Make Textual use the colours that were found. Call it before Textual is imported.

    Textual would replace colours by shades of grey for NO_COLOR, in which a failure looks like any other text.
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
"""Seconds of credit that a quiet screen saves, so that the first verdicts are shown at once."""
_BYTES_A_LINE = 240
"""Measured size of a tree row with its colours."""


def over_ssh() -> bool:
    """Return whether the terminal is connected through SSH."""
    return any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))


def seconds_for(lines: int) -> float:
    """Return how long a slow connection takes to send that many lines."""
    return lines * _BYTES_A_LINE / BYTES_A_SECOND


class Pace:
    """Decides when to paint next. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._shortest = OVER_SSH if over_ssh() else FASTEST
        self._next = self._credited = 0.0

    def wait(self, now: float, *, decided: bool = False) -> float:
        """Return how long to wait before painting, or 0 to paint now.

        `decided` says that a case has its verdict, which may use the saved credit.
        """
        return max(0.0, (self._credited if decided else self._next) - now)

    def painted(self, now: float, lines: int) -> None:
        """Record a paint of that many lines. More lines need a longer rest to stay within the line's budget."""
        rest = max(self._shortest, seconds_for(lines))
        self._next = max(self._next, now) + rest
        self._credited = max(self._credited, now - SAVED_UP) + rest


# Leaves the alternate screen, shows the cursor and wraps lines. Turns off the mouse, focus reports, bracketed paste,
# in-band resize and the extended keyboard. Resets colours.
_RESTORE = (
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?2026l\x1b[0m\r"
)
_ESCAPE_DELAY_LOCAL = "25"
_FRAMES_LOCAL = "250"
"""Textual's frames per second, so that a key waits 4 ms at most. `Pace` limits the painting of runs."""


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
