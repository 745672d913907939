"""The list of a bundle's files, checked on both ends before anything is written.

Names are relative paths with "/". Bytes of a name that are not UTF-8 are lone surrogates, as `os.fsdecode` makes them.
A link is a file whose content is the link's target.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.counting import counted

PLAIN, PROGRAM, LINK = 0o100644, 0o100755, 0o120000
"""The modes of entries, as in git."""
MOST_FILES = 100_000
LARGEST_FILE = 256 << 20
LARGEST = 1 << 30
"""Maximum number of bytes of all files together."""
LONGEST_LINK = 4096
PIECE = 1 << 20
"""Maximum number of bytes of content in one message."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_LINKS = 40
"""Links that a path may lead through, as in Linux."""


class ManifestError(ValueError):
    """A manifest that is invalid, or would write outside of its root."""


class Entry(NamedTuple):
    """One file: `path`, digest of its content, one of the three modes, size in bytes."""

    path: str
    sha256: str
    mode: int
    size: int


def manifest_digest(entries: Iterable[Entry]) -> str:
    """Return the digest of a sorted manifest. Equal digests mean equal files."""
    running = hashlib.sha256()
    for entry in entries:
        running.update(json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n")
    return running.hexdigest()


def encoded(path: str) -> bytes:
    """Return a path as the bytes of a file name, whatever the locale is."""
    return path.encode("utf-8", "surrogateescape")


def decoded(path: bytes) -> str:
    """Return the path of a file name in bytes."""
    return path.decode("utf-8", "surrogateescape")


def read_manifest(rows: Iterable[Any]) -> tuple[Entry, ...]:
    """Return the entries of a received manifest.

    Raises:
        ManifestError: an entry is invalid, two contradict each other, or there are too many.
    """
    entries = tuple(map(_entry, rows))
    if len(entries) > MOST_FILES:
        raise ManifestError(f"the bundle has {counted(len(entries), 'file')}; at most {MOST_FILES:,} are allowed")
    if (total := sum(entry.size for entry in entries)) > LARGEST:
        raise ManifestError(f"the bundle has {counted(total, 'byte')}; at most {LARGEST:,} are allowed")
    for before, entry in pairwise(entries):
        if before.path >= entry.path:
            raise ManifestError(f"the bundle's files are not sorted, or name one twice: {entry.path!r}")
    files = {entry.path for entry in entries}
    for folder in folders_of(files):
        if folder in files:
            raise ManifestError(f"{folder!r} is a file and a folder")
    return entries


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return all folders above these paths, without the root."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


def leads_out(path: str, links: Mapping[str, str]) -> bool:
    """Return whether the link at `path` leads out of the root, or in a circle.

    `links` are the targets of all links in the root. Each step is followed as the file system does it, because ".."
    behind a link to a folder is not the folder above the link.
    """
    at = path.split("/")[:-1]
    waiting = deque(_steps(links[path]))
    followed = 1
    while waiting:
        step = waiting.popleft()
        if step == "/" or (step == ".." and not at):
            return True
        if step == "..":
            at.pop()
            continue
        target = links.get("/".join((*at, step)))
        if target is None:
            at.append(step)
            continue
        followed += 1
        if followed > _MOST_LINKS:
            return True
        waiting.extendleft(reversed(_steps(target)))
    return False


def _steps(target: str) -> list[str]:
    start = ["/"] if target.startswith("/") else []
    return start + [step for step in target.split("/") if step not in ("", ".")]


def _entry(row: Any) -> Entry:
    if not isinstance(row, list | tuple) or len(row) != 4:
        raise ManifestError("an entry of the bundle is not a list of path, digest, mode and size")
    path, sha256, mode, size = row
    if not isinstance(path, str) or not _is_inside(path):
        raise ManifestError(f"the bundle has a file outside of its root: {str(path)[:200]!r}")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise ManifestError(f"{path!r} has an invalid digest")
    if type(mode) is not int or mode not in (PLAIN, PROGRAM, LINK):
        raise ManifestError(f"{path!r} has an invalid mode")
    if type(size) is not int or not 0 <= size <= (LONGEST_LINK if mode == LINK else LARGEST_FILE):
        raise ManifestError(f"{path!r} has an invalid size")
    return Entry(path, sha256, mode, size)


def _is_inside(path: str) -> bool:
    try:
        encoded(path)
    except UnicodeEncodeError:  # A surrogate that stands for no byte.
        return False
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))
