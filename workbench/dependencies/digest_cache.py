"""Digests of files by their status, kept in the state folder: a file that did not change is not read again."""

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

from workbench.atomic import replace_content
from workbench.regular_file import read_regular

_FILE = Path("cache") / "digests.json"
_GRANULARITY = 2_000_000_000
"""Nanoseconds by which a file must be older than its digest. A younger one may change once more without a new time:
some file systems count in steps of two seconds."""
_MOST = 20_000
"""Files that are kept, those that were looked at last."""
_LARGEST = 16 << 20
_WORTH_KEEPING = 4 << 20
_COST_OF_OPENING = 50_000
"""Bytes that could be read in the time that it takes to open a file."""
_Status: TypeAlias = tuple[int, int, int, int]


class DigestCache:
    """Digests of files, kept in `file` (None: only in memory). `key` is the one that digests are made with. What is in
    the file counts only if it was made with that key, and if nobody else can write it."""

    def __init__(self, file: Path | None, key: bytes) -> None:
        self._file, self._key = file, key
        self._entries: dict[str, tuple[_Status, str]] | None = None
        self._new = 0
        """What was read since the file was written, in bytes."""
        self._lock = threading.Lock()

    def find(self, path: Path, status: os.stat_result) -> str | None:
        """Return the digest of a file if it was taken while the file had this status."""
        with self._lock:
            entries, name = self._loaded(), str(path)
            entry = entries.get(name)
            if entry is None or entry[0] != _status(status):
                return None
            entries[name] = entries.pop(name)  # The last one of all to be dropped.
            return entry[1]

    def add(self, path: Path, before: os.stat_result, after: os.stat_result, digest: str, began: int) -> None:
        """Take in a digest, unless the file may have changed since. `began` (nanoseconds of the epoch) is when reading
        it began; `before` and `after` are the file's status then and at the end."""
        changed = max(before.st_mtime_ns, before.st_ctime_ns)
        if _status(before) != _status(after) or changed + _GRANULARITY > began:
            return
        with self._lock:
            self._loaded()[str(path)] = _status(before), digest
            self._new += before.st_size + _COST_OF_OPENING

    def keep(self) -> None:
        """Write the file if that is worth it. Where it cannot be written, nothing is kept."""
        with self._lock:
            if self._file is None or self._new < _WORTH_KEEPING:
                return
            self._new = 0
            # Another program may have written it meanwhile.
            entries = {**self._read(self._file), **self._loaded()}
            kept = [[name, *entries[name][0], entries[name][1]] for name in list(entries)[-_MOST:]]
            content = json.dumps(kept, separators=(",", ":")).encode("ascii")
            with contextlib.suppress(OSError):
                self._file.parent.mkdir(mode=0o700, exist_ok=True)
                if not _is_own(self._file):
                    self._file.unlink(missing_ok=True)
                replace_content(self._file, self._seal(content) + content, mode=0o600)

    def _loaded(self) -> dict[str, tuple[_Status, str]]:
        if self._entries is None:
            self._entries = {} if self._file is None else self._read(self._file)
        return self._entries

    def _read(self, file: Path) -> dict[str, tuple[_Status, str]]:
        try:
            if not _is_own(file):
                return {}
            seal, end, content = read_regular(file, _LARGEST).partition(b"\n")
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
    """Return the cache in a state folder, the same one for all of this process; None: one in memory."""
    return DigestCache(None if state is None else state / _FILE, key)


def _status(status: os.stat_result) -> _Status:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _is_own(file: Path) -> bool:
    """Whether nobody else can have written a file; not for a link, wherever it leads."""
    try:
        status = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
