"""Watched files: what they held, by hash, and the other paths by which they are known.

So it is seen whether a file really changed, also behind a link, and how it was when a verdict was made.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from workbench.atomic import content_hash
from workbench.regular_file import read_regular

_KEPT_FILE = 1 << 20
_KEPT_ALL = 64 << 20
ABSENT = ""

Moment = Mapping[Path, str]
"""The files as they were at one moment: path → hash, `ABSENT` for one that was not there."""


class Contents:
    """Knows the files it was told of. Contents are kept up to a megabyte each, so that two moments can be compared; of
    all together the newest 64 megabytes."""

    def __init__(self) -> None:
        self._hashes: dict[Path, str] = {}
        self._kept: dict[str, bytes] = {}
        self._size = 0
        self._moment: Moment | None = None

    def take(self, paths: Iterable[Path]) -> set[Path]:
        """Reads these files; gives those that are not what they were when they were read last. A file that is met for
        the first time has changed."""
        changed = set()
        for path in paths:
            now = self._read(path)
            if now == ABSENT and path not in self._hashes:
                continue  # Came and went: a draft of an editor.
            if now is not None and self._hashes.get(path) != now:
                self._hashes[path] = now
                self._moment = None
                changed.add(path)
        return changed

    def known(self) -> set[Path]:
        """All files that it was told of."""
        return set(self._hashes)

    def hash(self, path: Path) -> str | None:
        """The hash of what the file held when it was read last; None if it never was."""
        return self._hashes.get(path)

    @property
    def moment(self) -> Moment:
        """The files as they are now."""
        if self._moment is None:
            self._moment = MappingProxyType(dict(self._hashes))
        return self._moment

    def text(self, digest: str) -> str | None:
        """What a file of that hash held; "" for one that was not there, None if it is not kept or no text."""
        if digest == ABSENT:
            return ""
        content = self._kept.get(digest)
        if content is None or b"\0" in content:
            return None
        return content.decode("utf-8", "replace")

    def _read(self, path: Path) -> str | None:
        """None for what is no file."""
        try:
            content = read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError:
            return None
        digest = content_hash(content)
        if len(content) <= _KEPT_FILE and digest not in self._kept:
            self._kept[digest] = content
            self._size += len(content)
            while self._size > _KEPT_ALL:
                self._size -= len(self._kept.pop(next(iter(self._kept))))
        return digest


class Links:
    """The files behind links (in a linked folder, or linked themselves), and the paths by which they are known."""

    def __init__(self) -> None:
        self._names: dict[Path, set[Path]] = {}
        self._real: dict[Path, Path] = {}

    def take(self, paths: Iterable[Path]) -> None:
        """Follows these paths as they lead now."""
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
        """The other names of these files."""
        return {name for path in paths for name in self._names.get(path, ())}

    def folders(self) -> set[Path]:
        """Where the files lie."""
        return {real.parent for real, names in self._names.items() if names}


def without_twins(folders: Iterable[Path], others: Iterable[Path]) -> frozenset[Path]:
    """`folders`, and of the others those that are not one of them, or of each other, by another name: of a folder that
    is watched twice the system tells by one of its names."""
    others = sorted(others)
    if not others:
        return frozenset(folders)
    found = {os.path.realpath(folder): folder for folder in folders}
    for folder in others:
        found.setdefault(os.path.realpath(folder), folder)
    return frozenset(found.values())
