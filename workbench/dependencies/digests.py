"""Digests of files and texts with the project's salt, so that their values cannot be guessed."""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from workbench.database.database import database
from workbench.database.values import get_or_set_value, get_value
from workbench.dependencies.digest_cache import DigestCache, digest_cache
from workbench.regular_file import open_regular

ABSENT = "absent"
"""Placeholder for the digest of a missing file."""
_UNREADABLE = "unreadable"
LOG = "-wal"
"""The ending of SQLite's log of changes. SQLite makes an empty one when it opens a database."""
_PIECE = 1 << 20
_SALT = "salt"
_OF_THIS_PROCESS = secrets.token_hex(16)


def project_digests(state: Path) -> "Digests":
    """Return the digests of the project with the state folder `state`, including the cached ones."""
    return Digests(_salt(state), state if state.is_dir() else None)


def _key_of(salt: str) -> bytes:
    return hashlib.blake2b(salt.encode("utf-8", "replace"), digest_size=16).digest()


def _salt(state: Path) -> str:
    """Return the salt of a project, which is stored in `state` for its owner only.

    If it can be neither read nor written, the salt is valid for this process only.
    """
    stored = database(state)
    with contextlib.suppress(OSError):
        known = stored.read(lambda connection: get_value(connection, _SALT))
        if known is None and state.is_dir():
            # Two processes may do this at once. The first one wins.
            fresh = secrets.token_hex(16)
            known = stored.write(lambda connection: get_or_set_value(connection, _SALT, fresh), sync=True)
        return known or _OF_THIS_PROCESS
    return _OF_THIS_PROCESS


def was_written(path: Path, since: float) -> bool:
    """Return whether a file may have changed since a time. A missing file may have been deleted since."""
    try:
        status = path.stat()
    except OSError:
        return True
    return max(status.st_mtime, status.st_ctime) >= since


class Digests:
    """Digests with one salt. Each file is read once.

    `state` is the state folder with the cache, or None.
    """

    def __init__(self, salt: str, state: Path | None = None) -> None:
        self.state = state
        self._key = _key_of(salt)
        self._files: dict[Path, str] = {}
        self._cache: DigestCache = digest_cache(state, self.salt_id)

    @property
    def salt_id(self) -> str:
        """An id that is equal for runs with the same salt. It does not reveal the salt."""
        return self.text(b"salt")

    def text(self, content: bytes, size: int = 8) -> str:
        """Return the digest of a text."""
        return hashlib.blake2b(content, digest_size=size, key=self._key).hexdigest()

    def file(self, path: Path) -> str:
        """Return the digest of a file's content, as it was at the first call."""
        found = self._files.get(path)
        if found is None:
            found = self._files[path] = self._read(path)
        return found

    def files(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the digests of many files, and store the new ones."""
        found = {path: self.file(path) for path in paths}
        self._cache.keep()
        return found

    def known(self, path: Path) -> str | None:
        """Return the digest of a file if it was taken before, else None."""
        return self._files.get(path)

    def changed(self, since: float) -> frozenset[Path]:
        """Return the files with changed content. Only those modified `since` a time are read again."""
        return frozenset(
            path
            for path, digest in list(self._files.items())
            if (digest == ABSENT or was_written(path, since)) and self._read(path) != digest
        )

    def _read(self, path: Path) -> str:
        try:
            began = time.time_ns()
            kept = self._cache.find(path, path.stat())
            if kept is not None:
                return kept
            with open_regular(path) as file:
                before = os.fstat(file.fileno())
                if not before.st_size and path.name.endswith(LOG):
                    return ABSENT
                found = self._content(file)
                self._cache.add(path, before, os.fstat(file.fileno()), found, began)
                return found
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except (OSError, ValueError):
            return _UNREADABLE

    def _content(self, file: BinaryIO) -> str:
        found = hashlib.blake2b(digest_size=8, key=self._key)
        while piece := file.read(_PIECE):
            found.update(piece)
        return found.hexdigest()
