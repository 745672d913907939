"""Changes of frozen files and of the values beside them, as contents of one edit."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from workbench.editing.saving import Contents
from workbench.files.frozen_path import FILE_SUFFIX, read_unlinked

_BESIDE = re.compile(rb'"([0-9a-f]{20}\.json)"')
_BESIDE_NAME = re.compile(r"[0-9a-f]{20}\.json")


class FrozenFolders:
    """Frozen files as they are on disk, and as they will be after the edit. Files are read when they are needed.

    A value beside frozen files is removed with the last file that names it.
    """

    def __init__(self) -> None:
        self._before: dict[Path, bytes | None] = {}
        self._after: dict[Path, bytes | None] = {}

    def content(self, path: Path) -> bytes | None:
        """Return the content of a file after the changes so far, or None if there is no file.

        Raises:
            OSError: it cannot be read.
        """
        if path not in self._before:
            try:
                self._before[path] = read_unlinked(path)
            except (FileNotFoundError, NotADirectoryError):
                self._before[path] = None
            self._after[path] = self._before[path]
        return self._after[path]

    def put(self, path: Path, content: bytes | None) -> None:
        """Change the content of a file; None removes it.

        Raises:
            OSError: it cannot be read.
        """
        self.content(path)
        self._after[path] = content

    def beside(self, content: bytes) -> list[str]:
        """Return the names of the values that lie beside a file with this content."""
        return list(dict.fromkeys(name.decode("ascii") for name in _BESIDE.findall(content)))

    def files(self, folder: Path) -> list[Path]:
        """Return the frozen files in a folder after the changes so far, sorted by name."""
        found = {path for path in _names_in(folder) if path.name.endswith(FILE_SUFFIX)}
        found |= {path for path in self._after if path.parent == folder and path.name.endswith(FILE_SUFFIX)}
        return sorted(path for path in found if path not in self._after or self._after[path] is not None)

    def remove_unused(self, folder: Path) -> None:
        """Remove all values that no frozen file of a folder names. If one cannot be read, all values stay."""
        self._remove_unused(folder, {path.name for path in _names_in(folder) if _BESIDE_NAME.fullmatch(path.name)})

    def contents(self) -> Contents:
        """Return the changes, with new files first and removals last.

        An interruption then leaves too many files, never too few.
        """
        dropped: dict[Path, set[str]] = {}
        for path, before in self._before.items():
            if path.name.endswith(FILE_SUFFIX) and before is not None and before != self._after[path]:
                gone = {*self.beside(before)}.difference(self.beside(self._after[path] or b""))
                dropped.setdefault(path.parent, set()).update(gone)
        for folder, names in dropped.items():
            self._remove_unused(folder, names)
        pairs = {path: (before, self._after[path]) for path, before in self._before.items()}
        changed = {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
        return dict(sorted(changed.items(), key=lambda item: _order(item[0], item[1][1])))

    def _remove_unused(self, folder: Path, names: Iterable[str]) -> None:
        left = set(names)
        if not left:
            return
        try:
            for path in self.files(folder):
                left.difference_update(self.beside(self.content(path) or b""))
        except OSError:
            return  # It may name any of them.
        for name in sorted(left):
            with contextlib.suppress(OSError):
                self.put(folder / name, None)


def _order(path: Path, after: bytes | None) -> int:
    """Return the position of a change: values, frozen files that name them, removed frozen files, removed values."""
    is_frozen = path.name.endswith(FILE_SUFFIX)
    return (2 if is_frozen else 3) if after is None else (1 if is_frozen else 0)


def _names_in(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
