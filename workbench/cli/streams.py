"""The program's own standard streams, made so that writing to them never fails a run.

A reader that goes away (`| head`), a stream closed before the start (`>&-`) and a terminal that cannot show a
character are ordinary here: what was to be shown is lost, the verdict and the exit code are not.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from workbench.atomic import replace_pieces
from workbench.text import one_line

_PLAIN_SPELLINGS = str.maketrans({"≥": ">=", "…": "...", "—": "-", "·": "-", "–": "-"})
_GONE = {errno.EPIPE, errno.EIO, errno.EBADF, errno.ESHUTDOWN}
"""What a write says when its reader, or the terminal, no longer exists."""

_failed: set[int] = set()
_unread: set[int] = set()
"""Descriptors of this process's streams that could not take what was written, though their reader is there."""


def prepare_streams() -> None:
    """Makes descriptors 0 to 2 exist and standard output and error accept every character.

    A closed descriptor would be given to the next file that is opened, and a child's print would end up in it: so it
    is opened on the null device. Characters that the terminal's encoding lacks are written as `\\uXXXX`."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python leaves the stream of a descriptor that was closed at its start as None.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115, PTH123
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a test's replacement may be no TextIOWrapper
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def on_terminal() -> bool:
    """Whether a person types and reads here."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def can_draw() -> bool:
    """Whether the screen can be opened here: a terminal that is no more than a typewriter cannot show it."""
    return on_terminal() and os.environ.get("TERM") != "dumb"


def write_line(stream: TextIO, text: str = "") -> bool:
    """Writes one line (safe text) and flushes it. False if the stream cannot take it, from when on it is silent:
    nobody reads it any more, or (which standard error is told) the disk is full."""
    return write_pieces(stream, (text + "\n",))


def write_pieces(stream: TextIO, pieces: Iterable[str]) -> bool:
    """Write safe text that comes in pieces, and flush it. Fails as `write_line` does."""
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
            write_line(sys.stderr, f"error: what was to be shown is lost: {error.strerror or type(error).__name__}")
        return False
    return True


def warn(message: str) -> None:
    """Write a warning to standard error; foreign text is made safe."""
    write_line(sys.stderr, f"warning: {one_line(message, limit=1000)}")


def has_failed() -> bool:
    """Whether something on standard output that somebody still wanted to read could not be written."""
    return bool(_failed) and sys.stdout.fileno() in _failed


def is_unread() -> bool:
    """Whether whoever read standard output is gone, as `head` after its lines. Known from the first line on that nobody
    took."""
    return bool(_unread) and sys.stdout.fileno() in _unread


def silence(stream: TextIO) -> None:
    """Points the stream's descriptor at the null device, so that what is still buffered, by us or by a library, does
    not fail again, not even when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)


def flush_streams() -> None:
    """Write what is still buffered, and drop what a terminal that is gone cannot take: else Python would replace the
    exit code by 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # ValueError: closed
            with contextlib.suppress(OSError, ValueError):
                silence(stream)


def let_go_of_streams(*, pipes: bool) -> None:
    """Silences the standard streams that are terminals, and with `pipes` all others too. A write that waits for one
    goes on as soon as the signal handler that calls this returns."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or no file
            if pipes or stream.isatty():
                silence(stream)


def spelled_for(stream: TextIO, text: str) -> str:
    """`text`, with our own signs in letters where the stream's encoding lacks any of its characters."""
    return text if can_show(stream, text) else text.translate(_PLAIN_SPELLINGS)


def can_show(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has all characters of `text`."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_file(option: str, file: Path, content: Callable[[], Iterable[bytes]]) -> bool:
    """Write the file that an option names. False if that failed; standard error says why."""
    try:
        replace_pieces(file, content())
    except OSError as error:
        write_line(sys.stderr, f"error: {option} {one_line(str(file))}: {error.strerror or type(error).__name__}")
        return False
    return True
