"""Digests of files and texts with the project's salt, so that the contents cannot be guessed."""

import contextlib
import functools
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from workbench.files.file_access import open_regular
from workbench.store.database.database import Database, database
from workbench.store.database.values import (
    DigestRow,
    file_digests,
    get_or_set_value,
    get_value,
    put_file_digests,
    read_name,
    stored_name,
)

_GRANULARITY = 2_000_000_000
"""Minimum age of a file, in nanoseconds, for its digest to be cached. A younger file may change again without a new
modification time, because some file systems count in steps of two seconds.
"""
_MOST = 20_000
_LARGEST_INODE = (1 << 63) - 1
_WORTH_KEEPING = 4 << 20
_COST_OF_OPENING = 50_000
"""Cost of opening a file, in bytes that can be read in the same time."""
_Status: TypeAlias = tuple[int, int, int, int]


class DigestCache:
    """Digests of files, stored in the state folder `state` (None: only in memory).

    `kind` names the salt or the purpose of the digests. Only the digests of the most recently used files are stored.
    """

    def __init__(self, state: Path | None, kind: str) -> None:
        self._stored: Database | None = None if state is None else database(state)
        self._kind = kind
        self._entries: dict[str, tuple[_Status, str]] | None = None
        self._used: set[str] = set()
        """Files whose digests are to be stored, or marked as used."""
        self._new = 0
        """Bytes read since digests were last stored."""
        self._lock = threading.Lock()

    def find(self, path: Path, status: os.stat_result) -> str | None:
        """Return the cached digest of a file, or None if there is none or the file's status has changed."""
        with self._lock:
            name = str(path)
            entry = self._loaded().get(name)
            if entry is None or entry[0] != _status(status):
                return None
            self._used.add(name)
            return entry[1]

    def add(self, path: Path, before: os.stat_result, after: os.stat_result, digest: str, began: int) -> None:
        """Add a digest, unless the file may have changed since.

        Reading began at `began`, in nanoseconds of the epoch. `before` and `after` are the file's status at the start
        and the end of reading.
        """
        changed = max(before.st_mtime_ns, before.st_ctime_ns)
        if _status(before) != _status(after) or changed + _GRANULARITY > began:
            return
        with self._lock:
            self._loaded()[str(path)] = _status(before), digest
            self._used.add(str(path))
            self._new += before.st_size + _COST_OF_OPENING

    def keep(self) -> None:
        """Store the digests if enough are new. Ignore write errors."""
        with self._lock:
            if self._stored is None or self._new < _WORTH_KEEPING:
                return
            self._new = 0
            entries = self._loaded()
            names, self._used = self._used, set()
            rows = [DigestRow(stored_name(name), self._kind, *entries[name][0], entries[name][1]) for name in names]
            with contextlib.suppress(OSError):
                self._stored.write(lambda connection: put_file_digests(connection, rows, time.time(), _MOST))

    def _loaded(self) -> dict[str, tuple[_Status, str]]:
        if self._entries is None:
            self._entries = {}
            rows: list[DigestRow] = []
            if self._stored is not None:
                with contextlib.suppress(OSError):
                    rows = self._stored.read(lambda connection: file_digests(connection, self._kind)) or []
            for row in rows:
                with contextlib.suppress(ValueError):
                    status = row.size, row.modified, row.changed, row.inode
                    self._entries[read_name(row.path)] = status, row.digest
        return self._entries


@functools.cache
def digest_cache(state: Path | None, kind: str) -> DigestCache:
    """Return the cache of a state folder, or one in memory for None. All callers in this process share it."""
    return DigestCache(state, kind)


def _status(status: os.stat_result) -> _Status:
    # GlusterFS and others use all 64 bits for inodes, but SQLite's integers have a sign.
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _LARGEST_INODE


def _status_of(path: Path) -> _Status | None:
    """Return the status of a file, or None if there is none."""
    try:
        return _status(path.stat())
    except OSError:
        return None


ABSENT = "absent"
"""Placeholder for the digest of a missing file."""
LOG = "-wal"
"""The suffix of SQLite's write-ahead log. SQLite creates an empty one when it opens a database."""
_OF_THIS_PROCESS = secrets.token_hex(16)


def project_digests(state: Path) -> "Digests":
    """Return the digests of the project with the state folder `state`, including the cached ones.

    Their salt is stored in `state`. If it can be neither read nor written, the salt is valid for this process only.
    """
    stored, salt = database(state), None
    with contextlib.suppress(OSError):
        salt = stored.read(lambda connection: get_value(connection, "salt"))
        if salt is None and state.is_dir():
            # Two processes may do this at once. The first one wins.
            fresh = secrets.token_hex(16)
            salt = stored.write(lambda connection: get_or_set_value(connection, "salt", fresh), sync=True)
    return Digests(salt or _OF_THIS_PROCESS, state if state.is_dir() else None)


def was_written(path: Path, since: float) -> bool:
    """Return whether a file may have changed since a time. A missing file may have been deleted since."""
    try:
        status = path.stat()
    except OSError:
        return True
    return max(status.st_mtime, status.st_ctime) >= since


class Digests:
    """Digests with one salt. Each file is read once, and again by `changed`. `state` has the cache, or is None."""

    def __init__(self, salt: str, state: Path | None = None) -> None:
        self.state = state
        self._key = hashlib.blake2b(salt.encode("utf-8", "replace"), digest_size=16).digest()
        self._files: dict[Path, str] = {}
        self._statuses: dict[Path, _Status | None] = {}
        """Each file → its status before it was read."""
        self._cache: DigestCache = digest_cache(state, self.salt_id)

    @property
    def salt_id(self) -> str:
        """An id of the salt, which does not reveal the salt."""
        return self.text(b"salt")

    def text(self, content: bytes, size: int = 8) -> str:
        """Return the digest of a text."""
        return hashlib.blake2b(content, digest_size=size, key=self._key).hexdigest()

    def file(self, path: Path) -> str:
        """Return the digest of a file's content, as it was at the first call.

        `ABSENT` stands for a missing file or an empty write-ahead log, "unreadable" for a file that cannot be read.
        """
        found = self._files.get(path)
        if found is None:
            self._statuses[path] = _status_of(path)
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

    def changed(self, since: float) -> tuple[frozenset[Path], frozenset[Path]]:
        """Return the files with changed content, and those that were written but have the same content again.

        Only files that were written `since` a time, or have another status, are read again. The clock of a network
        drive may be ahead, so the time alone does not show that a file was written.
        """
        files = list(self._files.items())
        written = frozenset(path for path, _ in files if _status_of(path) != self._statuses[path])
        changed = frozenset(
            path for path, old in files if (path in written or was_written(path, since)) and self._read(path) != old
        )
        return changed, frozenset(path for path in written - changed if self._files[path] != ABSENT)

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
                found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8, key=self._key)).hexdigest()
                self._cache.add(path, before, os.fstat(file.fileno()), found, began)
                return found
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except (OSError, ValueError):
            return "unreadable"
