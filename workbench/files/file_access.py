"""Safe reading of a project's files, and atomic writing of files.

Reading a pipe can wait forever, opening a device can have side effects, and a file can be larger than memory. So all
files of the user's project are read with these functions. They refuse pipes, devices and files above a limit. A
replaced file has either the old or the new content, even if the machine stops.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, TypeAlias

from workbench.text.counting import counted

LARGEST = 256 * 1024 * 1024
"""Bytes of the largest file that is read as a whole."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)


def real_path(path: Path) -> Path:
    """Return the absolute path without links. Links that form a circle stay.

    `Path.resolve` raises RuntimeError for a circle before Python 3.13.
    """
    return Path(os.path.realpath(path))


def unreadable_text(error: OSError | ValueError) -> str:
    """Return why a file cannot be read: the file's name and the reason, without an error number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def read_regular(path: Path, limit: int = LARGEST) -> bytes:
    """Return the content of the regular file at `path`, following links.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than `limit` bytes. `strerror` says which.
    """
    with open_regular(path, limit) as file:
        # None where a file of the system, such as /proc/kmsg, has nothing to give at the moment.
        content: bytes | None = file.read(limit + 1)
    if content is None:
        raise BlockingIOError(errno.EAGAIN, "there is nothing to read at the moment", str(path))
    if len(content) > limit:
        raise _too_large(path, len(content), limit)
    return content


def read_regular_text(path: Path, limit: int = LARGEST) -> str:
    """Return the content as UTF-8 text.

    Raises:
        OSError: as in `read_regular`.
        UnicodeDecodeError: the content is not UTF-8.
    """
    return read_regular(path, limit).decode("utf-8")


def open_regular(path: Path, limit: int | None = None) -> BufferedReader:
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


Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""Modification time, size and inode of each file, or None if it does not exist."""


def signature_of(files: Iterable[Path]) -> Signature:
    """Return a value that differs once one of these files or folders has changed."""
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except (OSError, ValueError):
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


def changed_since(file: Path, moment: float) -> bool:
    """Return whether a file was written or replaced at or after this time. False if there is no such file."""
    try:
        # Programs can set the other times, as `cp -p` does.
        return file.stat().st_ctime >= moment
    except (OSError, ValueError):
        return False


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
    message = f"it has {size_words(size)}; the limit is {size_words(limit)}"
    return OSError(errno.EFBIG, message, str(path))


_REMEMBERED = 1000
_written: dict[Path, str] = {}
DELETED = ""
"""The hash of a file that this process deleted."""


def last_written(file: Path) -> str | None:
    """Return the hash of the content that this process last wrote to `file`, or None if it is not known.

    The hash is `DELETED` if this process deleted the file.
    """
    return _written.get(file)


def content_hash(content: bytes) -> str:
    """Return the BLAKE2b hash (16 bytes, in hex) that identifies the content of a file."""
    return begun_hash(content).hexdigest()


def begun_hash(beginning: "bytes | memoryview") -> "hashlib.blake2b":
    """Return a hash object for content that starts with `beginning`. Update a copy of it with the rest."""
    return hashlib.blake2b(beginning, digest_size=16)


def replace_content(file: Path, content: bytes, *, mode: int | None = None, known_hash: str = "") -> None:
    """Write `content` to a new file beside `file` and rename it to `file`.

    The permissions of the old file are kept, and its owner if that is allowed. A new file gets `mode` (None: the
    default). The target of a link is replaced. A link to a missing file is refused, because it could create a file
    outside of the project. Pipes and devices are written directly. `known_hash` is the hash of the content, or "" to
    compute it.

    Raises:
        OSError: the folder is missing or not writable, `file` is such a link, or the disk is full. The old file is
            unchanged.
    """
    replace_pieces(file, (content,), mode=mode, known_hash=known_hash)


def delete(file: Path) -> None:
    """Delete a file, and remember that this process did.

    Raises:
        OSError: the file does not exist, or its folder is not writable.
    """
    _remember(file, DELETED)
    file.unlink()


def replace_pieces(file: Path, pieces: Iterable[bytes], *, mode: int | None = None, known_hash: str = "") -> None:
    """Replace the content of a file as `replace_content` does, with pieces that may be larger than memory together.

    If the iterator raises, the old file is unchanged.
    """
    _written.pop(file, None)
    try:
        _replace(file, pieces, mode, known_hash)
    except OSError as error:
        error.filename = str(file)  # The user does not know the temporary file.
        raise


def _remember(file: Path, written_hash: str) -> None:
    _written[file] = written_hash
    while len(_written) > _REMEMBERED:
        del _written[next(iter(_written))]


def _replace(file: Path, pieces: Iterable[bytes], mode: int | None, known_hash: str) -> None:
    target = real_path(file)
    before = target.stat() if target.exists() else None
    if before is None and file.is_symlink():
        raise OSError(errno.EMLINK, "it is a link to a file that does not exist", str(file))
    if before is not None and not stat.S_ISREG(before.st_mode):
        with target.open("wb") as out:
            written = _write(out, pieces)
        _remember(file, known_hash or written)
        return
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    # Only the owner can read it until it gets the permissions of the old file.
    descriptor = os.open(draft, flags, 0o600 if before is not None else 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as out:
            if before is not None:
                own = os.fstat(descriptor)
                if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
                    # Only the superuser may change the owner. The group may be changed by its members.
                    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
                        with contextlib.suppress(PermissionError):
                            os.fchown(descriptor, owner, group)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            written = _write(out, pieces)
            out.flush()
            os.fsync(out.fileno())
        _remember(file, known_hash or written)  # Before a watch can see the file.
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # Not every file system supports flushing a folder.
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # The name of a new file survives a crash, too.
        finally:
            os.close(descriptor)


def _write(out: BinaryIO, pieces: Iterable[bytes]) -> str:
    """Write the pieces, and return the hash of the whole content."""
    running = begun_hash(b"")
    for piece in pieces:
        out.write(piece)
        running.update(piece)
    return running.hexdigest()


MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def mounted(mounts: Path = MOUNTS) -> dict[str, str]:
    """Map each mount point to its type of file system, or return {} if the system does not list its mounts.

    If a mount point has several mounts, the last one counts.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        words = left.split()
        if len(words) >= 5 and right.split():
            found[_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4])] = right.split()[0]
    return found


def file_system_of(folder: str, kinds: dict[str, str]) -> str:
    """Return the type of the file system that holds a folder, or "" if unknown. `kinds` is the result of `mounted`."""
    while folder not in kinds:
        above = os.path.dirname(folder)  # noqa: PTH120 (a string, for each of many folders)
        if above == folder:
            return ""
        folder = above
    return kinds[folder]
