"""Writing a file so that whoever reads it sees the old content or the new one, whenever the machine stops."""

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

_REMEMBERED = 1000
_written: dict[Path, str] = {}


def last_written(file: Path) -> str | None:
    """The hash of what this process has put into `file` last; None if it never did. A watch tells
    by it what the workbench wrote from what somebody else did."""
    return _written.get(file)


def content_hash(content: bytes) -> str:
    """The BLAKE2b hash, of 16 bytes, by which contents of files are told apart."""
    return begun_hash(content).hexdigest()


def begun_hash(beginning: "bytes | memoryview") -> "hashlib.blake2b":
    """The same of a content that begins so: a copy of it, updated with the rest, is the hash of the whole."""
    return hashlib.blake2b(beginning, digest_size=16)


def replace_content(file: Path, content: bytes, *, mode: int | None = None, known_hash: str = "") -> None:
    """Writes `content` into a new file beside `file` and puts it in its place. Permissions, and as far as we may the
    owner, stay those of the old file; a new one gets `mode` (None: as any new file). A link stays a link: its target
    is replaced. A pipe or a device is written to as it is. `known_hash` is that of the content, where it is known.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full; the old file is as it was.
    """
    replace_pieces(file, (content,), mode=mode, known_hash=known_hash)


def replace_pieces(file: Path, pieces: Iterable[bytes], *, mode: int | None = None, known_hash: str = "") -> None:
    """Do the same with content that comes in pieces, which need not fit into memory together. If making one fails,
    the old file is as it was."""
    _written.pop(file, None)
    try:
        _replace(file, pieces, mode, known_hash)
    except OSError as error:
        error.filename = str(file)  # not the name of a file that nobody has heard of
        raise


def _remember(file: Path, written_hash: str) -> None:
    _written[file] = written_hash
    while len(_written) > _REMEMBERED:
        del _written[next(iter(_written))]


def _replace(file: Path, pieces: Iterable[bytes], mode: int | None, known_hash: str) -> None:
    target = file.resolve()
    before = target.stat() if target.exists() else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with target.open("wb") as out:
            written = _write(out, pieces)
        _remember(file, known_hash or written)
        return
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    # Readable by its owner only until it has the permissions of the old file.
    descriptor = os.open(draft, flags, 0o600 if before is not None else 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as out:
            if before is not None:
                _like(out.fileno(), before)
            written = _write(out, pieces)
            out.flush()
            os.fsync(out.fileno())
        _remember(file, known_hash or written)  # before a watch can see it
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write(out: BinaryIO, pieces: Iterable[bytes]) -> str:
    """Write the pieces and return the hash of all of them."""
    running = begun_hash(b"")
    for piece in pieces:
        out.write(piece)
        running.update(piece)
    return running.hexdigest()


def _like(descriptor: int, before: os.stat_result) -> None:
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        # Only the superuser may give a file away; its group, whoever is in it.
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, owner, group)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    """Makes the new name as lasting as the content, where the file system knows such a thing."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
