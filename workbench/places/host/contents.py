"""The contents of files on a machine, each under its digest, so that it travels only once."""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 20
_DAY = 86_400.0


class DamagedContentError(OSError):
    """A stored content was not what its digest says. It is deleted, and has to be sent again."""


class Contents:
    """The stored contents in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, sha256: str, size: int) -> bool:
        """Return whether a content is stored, and mark it as used."""
        path = self._path(sha256)
        try:
            status = os.stat(path)  # noqa: PTH116
            if status.st_size != size:
                return False
            if time.time() - status.st_mtime > _DAY:
                os.utime(path)
        except OSError:
            return False
        return True

    def receive(self, sha256: str) -> "Incoming":
        """Return the content to be stored, which gets its pieces in order."""
        path = self._path(sha256)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)  # noqa: PTH103, PTH120
        return Incoming(path, sha256)

    def text(self, sha256: str) -> bytes:
        """Return a small content.

        Raises:
            OSError: as in `copy`.
        """
        pieces: list[bytes] = []
        self._read(sha256, pieces.append)
        return b"".join(pieces)

    def copy(self, sha256: str, target: BinaryIO) -> None:
        """Write a content to an open file.

        Raises:
            DamagedContentError: it is not what was received once, or is gone.
            OSError: it cannot be written, for example because the disk is full.
        """
        self._read(sha256, target.write)

    def delete_damaged(self, digests: Iterable[str]) -> None:
        """Read these contents again, and delete those that are not what their digests say."""
        for sha256 in digests:
            with contextlib.suppress(DamagedContentError):
                self._read(sha256, len)

    def _read(self, sha256: str, take: Callable[[bytes], object]) -> None:
        path = self._path(sha256)
        running = hashlib.sha256()
        try:
            with open(path, "rb") as source:  # noqa: PTH123
                while piece := source.read(_PIECE):
                    running.update(piece)
                    take(piece)
        except FileNotFoundError:
            raise DamagedContentError(f"the stored content {sha256} is gone") from None
        if running.hexdigest() != sha256:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
            raise DamagedContentError(f"the stored content {sha256} was damaged")

    def _path(self, sha256: str) -> str:
        return f"{self._folder}/{sha256[:2]}/{sha256[2:]}"


class Incoming:
    """A content on its way into the store. It is stored once it is complete and right."""

    def __init__(self, path: str, sha256: str) -> None:
        self.sha256 = sha256
        self._path = path
        # Others may receive the same content at the same time.
        self._draft = f"{path}.{secrets.token_hex(4)}.tmp"
        self._hash = hashlib.sha256()
        self._out = open(self._draft, "xb", buffering=0)  # noqa: PTH123, SIM115

    def add(self, piece: bytes) -> None:
        """Write the next piece.

        Raises:
            OSError: it cannot be written.
        """
        self._hash.update(piece)
        left = memoryview(piece)
        while left:
            left = left[self._out.write(left) :]

    def finish(self) -> bool:
        """Store the content. Return False if its digest is another one; it is dropped then."""
        self._out.close()
        if self._hash.hexdigest() != self.sha256:
            self.drop()
            return False
        os.replace(self._draft, self._path)  # noqa: PTH105
        return True

    def drop(self) -> None:
        """Forget what arrived so far."""
        self._out.close()
        with contextlib.suppress(OSError):
            os.unlink(self._draft)  # noqa: PTH108
