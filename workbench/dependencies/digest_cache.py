"""A cache of file digests in the database of the project, so that unchanged files are not read again."""

import contextlib
import functools
import os
import threading
import time
from pathlib import Path
from typing import TypeAlias

from workbench.database.database import Database, database
from workbench.database.values import DigestRow, file_digests, put_file_digests, read_name, stored_name

_GRANULARITY = 2_000_000_000
"""Nanoseconds by which a file must be older than its digest.

A younger file may change again and keep its time, because some file systems count in steps of two seconds.
"""
_MOST = 20_000
_WORTH_KEEPING = 4 << 20
_COST_OF_OPENING = 50_000
"""Cost of opening a file, in bytes that can be read in the same time."""
_Status: TypeAlias = tuple[int, int, int, int]


class DigestCache:
    """Digests of files, stored in the state folder `state` (None: only in memory).

    `kind` tells with what salt, or for what purpose, the digests are taken. At most `most` digests are stored (None:
    20,000), those of the most recently used files.
    """

    def __init__(self, state: Path | None, kind: str, *, most: int | None = None) -> None:
        self._stored: Database | None = None if state is None else database(state)
        self._kind, self._most = kind, _MOST if most is None else most
        self._entries: dict[str, tuple[_Status, str]] | None = None
        self._used: set[str] = set()
        """Files whose digests are to be stored, or marked as used."""
        self._new = 0
        """Bytes that were read since digests were stored."""
        self._lock = threading.Lock()

    def find(self, path: Path, status: os.stat_result) -> str | None:
        """Return the digest of a file with this status, or None."""
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
                self._stored.write(lambda connection: put_file_digests(connection, rows, time.time(), self._most))

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
    """Return the cache of a state folder, or one in memory for None. There is one for each folder in this process."""
    return DigestCache(state, kind)


def _status(status: os.stat_result) -> _Status:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
