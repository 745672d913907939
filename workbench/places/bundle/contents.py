"""The files of a project that travel to other machines, with their digests."""

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workbench.counting import counted
from workbench.dependencies.digest_cache import DigestCache
from workbench.dependencies.digests import project_key
from workbench.places.bundle.listing import project_files
from workbench.places.host.manifest import (
    LARGEST,
    LARGEST_FILE,
    LINK,
    LONGEST_LINK,
    MOST_FILES,
    PLAIN,
    PROGRAM,
    Entry,
    decoded,
    encoded,
    leads_out,
    manifest_digest,
)
from workbench.regular_file import open_regular, size_words

_PIECE = 1 << 20
_CACHE = Path("cache") / "bundle.json"
_NAMED = 3
_WAY_OUT = "Add what the agents do not need to .gitignore"


class BundleError(Exception):
    """A project that cannot travel. The text names the file and what to do."""


@dataclass(frozen=True)
class Contents:
    """The files of the project at `root`.

    `entries` are sorted. `links` are the targets of the links, in bytes. `left_out` are files that git does not ignore
    and that still do not travel, with the reasons.
    """

    root: Path
    entries: tuple[Entry, ...]
    links: Mapping[str, bytes]
    left_out: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        """The digest of names, modes and contents of all files."""
        return manifest_digest(self.entries)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Path → size in bytes."""
        return {entry.path: entry.size for entry in self.entries}

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(self.sizes.values())


def read_contents(root: Path, state: Path | None = None) -> Contents:
    """Return the files of the project at `root` that travel. Call it in a thread.

    `state` is the project's state folder. It keeps the digests, so that unchanged files are not read again.

    Raises:
        BundleError: there are too many files, they are too large, or one cannot be read.
    """
    own = state if state is not None and state.is_dir() else None
    key = b"memory" if own is None else project_key(own)
    cache = DigestCache(None if own is None else own / _CACHE, key, most=MOST_FILES)
    return _Reading(root, cache).contents()


class _Reading:
    def __init__(self, root: Path, cache: DigestCache) -> None:
        self._root, self._base, self._cache = root, os.fsencode(root), cache
        self._real = os.path.realpath(self._base)
        self._left_out: dict[str, str] = {}
        self._links: dict[str, bytes] = {}
        self._folders: dict[bytes, bool] = {b"": True}

    def contents(self) -> Contents:
        found = self._found()
        _check_sizes({path: status.st_size for path, status in found.items()})
        entries = [self._entry(path, status) for path, status in found.items()]
        entries += self._link_entries()
        self._cache.keep()
        return Contents(self._root, tuple(sorted(entries)), self._links, self._left_out)

    def _found(self) -> dict[str, os.stat_result]:
        """Return the status of the regular files. Links are collected, and what is neither is left out."""
        found: dict[str, os.stat_result] = {}
        for name in project_files(self._root):
            path = decoded(name)
            if not self._is_folder(os.path.dirname(name)):  # noqa: PTH120
                # Git still has a file where a link to a folder is now.
                self._left_out[path] = "it is behind a link"
                continue
            try:
                status = os.lstat(os.path.join(self._base, name))  # noqa: PTH118
            except OSError:
                continue  # It was deleted, and git still has it.
            if stat.S_ISLNK(status.st_mode):
                self._add_link(path)
            elif stat.S_ISREG(status.st_mode):
                found[path] = status
            else:
                self._left_out[path] = "it is no regular file"
        return found

    def _is_folder(self, path: bytes) -> bool:
        """Return whether a folder of the project, which need not exist, is one without any link above it."""
        known = self._folders.get(path)
        if known is None:
            known = self._is_folder(os.path.dirname(path)) and not os.path.islink(self._base + b"/" + path)  # noqa: PTH114, PTH120
            self._folders[path] = known
        return known

    def _entry(self, path: str, status: os.stat_result) -> Entry:
        mode = PROGRAM if status.st_mode & stat.S_IXUSR else PLAIN
        whole = Path(os.fsdecode(self._base + b"/" + encoded(path)))
        if (known := self._cache.find(whole, status)) is not None:
            return Entry(path, known, mode, status.st_size)
        running, began = hashlib.sha256(), time.time_ns()
        size = 0
        try:
            with open_regular(whole) as file:
                before = os.fstat(file.fileno())
                while size <= LARGEST_FILE and (piece := file.read(_PIECE)):
                    running.update(piece)
                    size += len(piece)
                after = os.fstat(file.fileno())
        except OSError as error:
            raise BundleError(f"{_shown(path)} cannot be read: {error.strerror or error}. {_WAY_OUT}") from None
        _check_sizes({path: size})
        self._cache.add(whole, before, after, running.hexdigest(), began)
        return Entry(path, running.hexdigest(), mode, size)

    def _add_link(self, path: str) -> None:
        whole = os.path.join(self._base, encoded(path))  # noqa: PTH118
        target = os.readlink(whole)  # noqa: PTH115
        if os.path.isabs(target):  # noqa: PTH117
            # The root has another path on the other machine.
            for base in (self._base, self._real):
                if target == base or target.startswith(base + b"/"):
                    target = os.path.relpath(target, os.path.dirname(base + b"/" + encoded(path)))  # noqa: PTH120
                    break
        self._links[path] = target

    def _link_entries(self) -> list[Entry]:
        targets = {path: decoded(target) for path, target in self._links.items()}
        for path, target in targets.items():
            if len(self._links[path]) > LONGEST_LINK or leads_out(path, targets):
                self._left_out[path] = f"it is a link to {_shown(target)}, outside of the project"
                del self._links[path]
        return [
            Entry(path, hashlib.sha256(target).hexdigest(), LINK, len(target)) for path, target in self._links.items()
        ]


def _check_sizes(sizes: Mapping[str, int]) -> None:
    largest = sorted(sizes, key=lambda path: sizes[path], reverse=True)[:_NAMED]
    if len(sizes) > MOST_FILES:
        folders: dict[str, int] = {}
        for path in sizes:
            above = path.partition("/")[0]
            folders[above] = folders.get(above, 0) + 1
        most = max(folders, key=lambda name: folders[name])
        raise BundleError(
            f"the project has {counted(len(sizes), 'file')}, {folders[most]:,} of them in {_shown(most)}, "
            f"and at most {MOST_FILES:,} travel to other machines. {_WAY_OUT}"
        )
    if largest and sizes[largest[0]] > LARGEST_FILE:
        raise BundleError(
            f"{_shown(largest[0])} has {size_words(sizes[largest[0]])}, and files of at most "
            f"{size_words(LARGEST_FILE)} travel to other machines. {_WAY_OUT}"
        )
    if (total := sum(sizes.values())) > LARGEST:
        named = ", ".join(f"{_shown(path)} ({size_words(sizes[path])})" for path in largest)
        raise BundleError(
            f"the project has {size_words(total)}, and at most {size_words(LARGEST)} travel to other machines. "
            f"The largest files are {named}. {_WAY_OUT}"
        )


def _shown(path: str) -> str:
    return encoded(path).decode("utf-8", "replace")
