"""The program's standard streams. A failed write never ends a run.

A reader that goes away (`| head`), a stream that was closed before the start (`>&-`) and a terminal that cannot show a
character are expected. Text may be lost or replaced, but no verdict.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from workbench.files.file_access import replace_pieces
from workbench.text.ascii_signs import in_lines, shows_unicode
from workbench.text.safe_text import one_line

_GONE = {errno.EPIPE, errno.EIO, errno.EBADF, errno.ESHUTDOWN}
"""Errors of a write whose reader or terminal no longer exists."""

_failed: set[int] = set()
"""Descriptors of streams that could not take a write although their reader exists."""
_unread: set[int] = set()
"""Descriptors of streams whose reader or terminal no longer exists."""


def prepare_streams() -> None:
    r"""Make sure that descriptors 0 to 2 exist, and that standard output and error accept every character.

    A closed descriptor is opened on the null device. Otherwise the next opened file would get its number, and a
    child's output would end up in that file. Characters that the terminal's encoding lacks are written as `\uXXXX`. In
    the locale C, a terminal gets only ASCII.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python sets the stream of a descriptor that was closed at the start to None.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115, PTH123
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # Tests may replace it by another class.
        if reconfigure is not None:
            is_ascii = stream.isatty() and not shows_unicode(os.environ, stream.encoding)
            reconfigure(errors="backslashreplace", encoding="ascii" if is_ascii else None)


def on_terminal() -> bool:
    """Return whether standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def can_draw() -> bool:
    """Return whether the screen can be opened: on a terminal that can redraw (TERM is not dumb)."""
    return on_terminal() and os.environ.get("TERM") != "dumb"


def write_line(stream: TextIO, text: str = "") -> bool:
    """Write one line of safe text, and flush it. Return False if writing failed.

    A closed pipe is ignored; other errors are reported on standard error. Then, later output to the stream is dropped.
    """
    return write_pieces(stream, (text + "\n",))


def write_pieces(stream: TextIO, pieces: Iterable[str]) -> bool:
    """Write pieces of safe text, and flush them. Returns the same as `write_line`."""
    try:
        for text in pieces:
            stream.write(spelled_for(stream, text))
        stream.flush()
    except OSError as error:
        silence(stream)
        if error.errno in _GONE:
            _unread.add(stream.fileno())
        else:
            _failed.add(stream.fileno())
            write_line(sys.stderr, f"error: output was lost: {error.strerror or type(error).__name__}")
        return False
    return True


def warn(message: str) -> None:
    """Write a warning to standard error, as one line of safe text."""
    write_line(sys.stderr, f"warning: {one_line(message, limit=1000)}")


def has_failed() -> bool:
    """Return whether a write to standard output failed although its reader exists."""
    return bool(_failed) and sys.stdout.fileno() in _failed


def is_unread() -> bool:
    """Return whether a write failed because the reader of standard output, such as `head`, has closed it."""
    return bool(_unread) and sys.stdout.fileno() in _unread


def silence(stream: TextIO) -> None:
    """Redirect the stream's descriptor to the null device.

    Text that is still buffered, by us or by a library, then cannot fail again, not even when the interpreter ends.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)


def flush_streams() -> None:
    """Flush standard output and error. Output that cannot be written is dropped, or Python would exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # ValueError: closed
            with contextlib.suppress(OSError, ValueError):
                silence(stream)


def let_go_of_streams(*, pipes: bool) -> None:
    """Silence the standard streams that are terminals, and with `pipes` all others too.

    A write that blocks on one of them continues as soon as the calling signal handler returns.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # Closed, or without a file.
            if pipes or stream.isatty():
                silence(stream)


def spelled_for(stream: TextIO, text: str) -> str:
    """Return `text`. If the stream cannot encode it, replace the workbench's symbols (✓, …) with ASCII."""
    return text if can_show(stream, text) else in_lines(text)


def can_show(stream: TextIO, text: str) -> bool:
    """Return whether the stream's encoding has all characters of `text`."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_file(option: str, file: Path, content: Callable[[], Iterable[bytes]]) -> bool:
    """Write the file that an option names. Return False if that failed; standard error has the reason."""
    try:
        replace_pieces(file, content())
    except OSError as error:
        write_line(sys.stderr, f"error: {option} {one_line(str(file))}: {error.strerror or type(error).__name__}")
        return False
    return True
