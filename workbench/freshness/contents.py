"""The contents of watched files by hash, and the links to them.

They show whether a file really changed, also behind a link, and what it contained when a verdict was made.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from workbench.files.file_access import content_hash, read_regular
from workbench.store.digests import LOG

_KEPT_FILE = 1 << 20
_KEPT_ALL = 64 << 20
ABSENT = ""

Moment = Mapping[Path, str]
"""The state of all files at one moment: path → hash, or `ABSENT` for a missing file."""


class Contents:
    """The hashes and contents of files.

    Contents up to a megabyte are kept, so that two moments can be compared. In total, the newest 64 megabytes are kept.
    """

    def __init__(self) -> None:
        self._hashes: dict[Path, str] = {}
        self._kept: dict[str, bytes] = {}
        self._size = 0
        self._moment: Moment | None = None

    def take(self, paths: Iterable[Path]) -> set[Path]:
        """Read files and return those that changed since they were last read. A new file counts as changed."""
        changed = set()
        for path in paths:
            now = self._read(path)
            if now == ABSENT and path not in self._hashes:
                continue  # A temporary file of an editor, which is gone already.
            if now is not None and self._hashes.get(path) != now:
                self._hashes[path] = now
                self._moment = None
                changed.add(path)
        return changed

    def known(self) -> set[Path]:
        """Return all files that were read."""
        return set(self._hashes)

    def hash(self, path: Path) -> str | None:
        """Return the hash of a file when it was last read, or None if it never was."""
        return self._hashes.get(path)

    @property
    def moment(self) -> Moment:
        """The current state of the files."""
        if self._moment is None:
            self._moment = MappingProxyType(dict(self._hashes))
        return self._moment

    def text(self, digest: str) -> str | None:
        """Return the text with a hash: "" for a missing file, None if it is not kept or not text."""
        if digest == ABSENT:
            return ""
        content = self._kept.get(digest)
        if content is None or b"\0" in content:
            return None
        return content.decode("utf-8", "replace")

    def _read(self, path: Path) -> str | None:
        """Return the hash of a file, or None if the path is not a file."""
        try:
            content = read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError:
            return None
        if not content and path.name.endswith(LOG):
            return ABSENT
        digest = content_hash(content)
        if len(content) <= _KEPT_FILE and digest not in self._kept:
            self._kept[digest] = content
            self._size += len(content)
            while self._size > _KEPT_ALL:
                self._size -= len(self._kept.pop(next(iter(self._kept))))
        return digest


class Links:
    """The files behind links (linked files, and files in linked folders), and the paths that lead to them."""

    def __init__(self) -> None:
        self._names: dict[Path, set[Path]] = {}
        self._real: dict[Path, Path] = {}

    def take(self, paths: Iterable[Path]) -> None:
        """Resolve these paths again."""
        folders: dict[Path, str] = {}
        for path in paths:
            if path in self._real:
                self._names[self._real.pop(path)].discard(path)
            if path.parent not in folders:
                folders[path.parent] = os.path.realpath(path.parent)
            real = Path(os.path.realpath(path)) if path.is_symlink() else Path(folders[path.parent], path.name)
            if real != path:
                self._real[path] = real
                self._names.setdefault(real, set()).add(path)

    def names(self, paths: Iterable[Path]) -> set[Path]:
        """Return the other paths of these files."""
        return {name for path in paths for name in self._names.get(path, ())}

    def folders(self) -> set[Path]:
        """Return the folders of the linked files."""
        return {real.parent for real, names in self._names.items() if names}


def without_twins(folders: Iterable[Path], others: Iterable[Path]) -> frozenset[Path]:
    """Return `folders` and those of `others` that are not the same folder under another path.

    The system reports changes of a folder under only one of its paths.
    """
    others = sorted(others)
    if not others:
        return frozenset(folders)
    found = {os.path.realpath(folder): folder for folder in folders}
    for folder in others:
        found.setdefault(os.path.realpath(folder), folder)
    return frozenset(found.values())
