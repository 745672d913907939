"""A cache of file digests in the state folder, so that unchanged files are not read again."""

import contextlib
import functools
import hashlib
import hmac
import json
import os
import stat
import threading
from pathlib import Path
from typing import TypeAlias

from workbench.state_folder import make_stored_folder, read_stored, replace_stored

_FILE = Path("cache") / "digests.json"
_GRANULARITY = 2_000_000_000
"""Nanoseconds by which a file must be older than its digest.

A younger file may change again and keep its time, because some file systems count in steps of two seconds.
"""
_MOST = 20_000
_LARGEST = 64 << 20
_WORTH_KEEPING = 4 << 20
_COST_OF_OPENING = 50_000
"""Cost of opening a file, in bytes that can be read in the same time."""
_Status: TypeAlias = tuple[int, int, int, int]


class DigestCache:
    """Digests of files, stored in `file` (None: only in memory).

    `key` is the key of the digests. The file is used only if it was sealed with that key and no other user can write
    it. At most `most` digests are stored (None: 20,000), those of the most recently used files.
    """

    def __init__(self, file: Path | None, key: bytes, *, most: int | None = None) -> None:
        self._file, self._key, self._most = file, key, _MOST if most is None else most
        self._entries: dict[str, tuple[_Status, str]] | None = None
        self._new = 0
        """Bytes that were read since the file was written."""
        self._lock = threading.Lock()

    def find(self, path: Path, status: os.stat_result) -> str | None:
        """Return the digest of a file with this status, or None."""
        with self._lock:
            entries, name = self._loaded(), str(path)
            entry = entries.get(name)
            if entry is None or entry[0] != _status(status):
                return None
            entries[name] = entries.pop(name)  # The most recently used entry is dropped last.
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
            self._new += before.st_size + _COST_OF_OPENING

    def keep(self) -> None:
        """Write the file if enough digests are new. Ignore write errors."""
        with self._lock:
            if self._file is None or self._new < _WORTH_KEEPING:
                return
            self._new = 0
            # Another process may have written the file meanwhile.
            entries = {**self._read(self._file), **self._loaded()}
            kept = [[name, *entries[name][0], entries[name][1]] for name in list(entries)[-self._most :]]
            content = json.dumps(kept, separators=(",", ":")).encode("ascii")
            with contextlib.suppress(OSError):
                make_stored_folder(self._file.parent)
                replace_stored(self._file, self._seal(content) + content)

    def _loaded(self) -> dict[str, tuple[_Status, str]]:
        if self._entries is None:
            self._entries = {} if self._file is None else self._read(self._file)
        return self._entries

    def _read(self, file: Path) -> dict[str, tuple[_Status, str]]:
        try:
            if not _is_own(file):
                return {}
            seal, end, content = read_stored(file, _LARGEST).partition(b"\n")
            if not hmac.compare_digest(seal + end, self._seal(content)):
                return {}
            return {
                name: ((size, modified, changed, inode), digest)
                for name, size, modified, changed, inode, digest in json.loads(content)
            }
        except (OSError, ValueError, TypeError):
            return {}

    def _seal(self, content: bytes) -> bytes:
        return hashlib.blake2b(content, digest_size=16, key=self._key).hexdigest().encode("ascii") + b"\n"


@functools.cache
def digest_cache(state: Path | None, key: bytes) -> DigestCache:
    """Return the cache of a state folder, or one in memory for None. There is one for each folder in this process."""
    return DigestCache(None if state is None else state / _FILE, key)


def _status(status: os.stat_result) -> _Status:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _is_own(file: Path) -> bool:
    """Return whether only this user can write a file. Links never count."""
    try:
        status = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
