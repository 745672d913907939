"""Read a file that somebody else made: never a pipe or a device, and never more than a limit.

Reading a pipe can wait forever, opening a device can do something, and a file can be larger than the memory. So every
file of the user's project is read here.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from workbench.text.counting import counted

LARGEST = 256 * 1024 * 1024
"""Bytes of the largest file that is read as a whole."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)


def real_path(path: Path) -> Path:
    """Return the absolute path without links.

    A link in a circle stays. `Path.resolve` raises RuntimeError for it before Python 3.13.
    """
    return Path(os.path.realpath(path))


def unreadable_text(error: OSError | ValueError) -> str:
    """Return why a file cannot be read, with its name, and in words in place of the number of an error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def read_regular(path: Path, limit: int = LARGEST) -> bytes:
    """Return the content of the regular file at `path`, following links.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is larger than `limit` bytes. `strerror` says which.
    """
    with open_regular(path, limit) as file:
        # None where a file of the system, such as /proc/kmsg, has nothing to give at the moment.
        content: bytes | None = file.read(limit + 1)
    if content is None:
        raise BlockingIOError(errno.EAGAIN, "it gives nothing to read", str(path))
    if len(content) > limit:
        raise _too_large(path, len(content), limit)
    return content


def read_regular_text(path: Path, limit: int = LARGEST) -> str:
    """Return the content as UTF-8 text.

    Raises:
        OSError: as in `read_regular`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_regular(path, limit).decode("utf-8")


def open_regular(path: Path, limit: int | None = None) -> BinaryIO:
    """Open the regular file at `path` for reading in pieces. Without a limit it may have any size.

    Raises:
        OSError: as in `read_regular`.
    """
    check_regular(path, path.stat(), limit)
    # Somebody may put a pipe there between the two checks: with O_NONBLOCK, opening it does not wait.
    file = os.fdopen(os.open(path, _FLAGS), "rb")
    try:
        check_regular(path, os.fstat(file.fileno()), limit)
    except OSError:
        file.close()
        raise
    return file


def size_words(size: int) -> str:
    """Return a size in the largest unit that fits: "256 MB", "64 kB", "12 bytes"."""
    for unit, name in ((1024 * 1024, "MB"), (1024, "kB")):
        if size >= unit:
            return f"{size // unit:,} {name}"
    return counted(size, "byte")


def check_regular(path: Path, status: os.stat_result, limit: int | None = None) -> None:
    """Raise OSError unless `status` is that of a regular file of at most `limit` bytes."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if limit is not None and status.st_size > limit:
        raise _too_large(path, status.st_size, limit)


def _too_large(path: Path, size: int, limit: int) -> OSError:
    message = f"it has {size_words(size)}, and at most {size_words(limit)} are read"
    return OSError(errno.EFBIG, message, str(path))
