"""Files that are known by another path than the one they lie at: of a change there nobody tells by the link's name."""

import os
from collections.abc import Iterable
from pathlib import Path


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
