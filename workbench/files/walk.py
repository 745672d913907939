"""A walk through the folders that may hold agents and evalsets.

It skips virtual environments, caches, hidden folders and what git ignores, and never enters a folder twice. It names
what it skips, except `.git`, `__pycache__` and folders of recordings.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workbench.files.folders import STATE_FOLDER
from workbench.files.gitignore import IgnoreFile, ignore_reason, read_rules, rules_above

FROZEN_SUFFIX = ".frozen"
"""Suffix of the folder with the recordings of an evalset's cases. They are opened with the evalset."""
TRIAGE_SUFFIX = ".triage.json"
"""Suffix of the file with an evalset's triage notes."""
_SKIPPED = {
    ".adk": "ADK stores its results here",
    STATE_FOLDER: "the workbench stores its runs here",
    "node_modules": "packages installed by npm",
    "site-packages": "installed Python packages",
}
# In every project and never interesting, so they are not even named.
_SILENT = frozenset({".git", "__pycache__"})
ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
"""Names in a folder that make it an environment of Python packages."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder of the walk.

    `path` is absolute. `files` are the sorted names in it that are not folders. `rules` are the ignore files that apply
    in it.
    """

    path: Path
    files: tuple[str, ...]
    rules: tuple[IgnoreFile, ...]

    def ignored(self, name: str) -> str | None:
        """Return why git ignores the file `name` of this folder, or None."""
        return ignore_reason(self.rules, self.path / name, is_folder=False)


@dataclass(slots=True)
class Walk:
    """An iteration over `base` and the folders below it.

    During the iteration, `skipped` collects paths with reasons, and `unreadable` collects unreadable folders. Folders
    come in the order of their names, each before its content, and linked folders last. No folder is visited twice, and
    links out of `base` are not followed.
    """

    base: Path
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)
    _seen: dict[tuple[int, int], Path] = field(default_factory=dict)
    _links: list[tuple[Path, tuple[IgnoreFile, ...]]] = field(default_factory=list)

    def __iter__(self) -> Iterator[Folder]:
        rules = rules_above(self.base, self.skipped)
        yield from self._descend(self.base, rules)
        inside = Path(os.path.realpath(self.base))
        while self._links:
            self._links.sort(key=lambda link: link[0].parts)
            path, rules = self._links.pop(0)
            real = Path(os.path.realpath(path))
            if not real.is_relative_to(inside):
                self.skipped.append((path, f"a link to {real}, outside the project"))
                continue
            yield from self._descend(path, rules)

    def _descend(self, start: Path, rules: tuple[IgnoreFile, ...]) -> Iterator[Folder]:
        waiting = [(start, rules)]
        while waiting:
            path, rules = waiting.pop()
            folder, inner = self._enter(path, rules, is_start=path == self.base)
            if folder is None:
                continue
            yield folder
            waiting.extend((path / name, folder.rules) for name in reversed(inner))

    def _enter(self, path: Path, rules: tuple[IgnoreFile, ...], *, is_start: bool) -> tuple[Folder | None, list[str]]:
        """Return the folder and the names of its subfolders to visit, or (None, []) if the folder is skipped."""
        files: list[str] = []
        folders: list[str] = []
        links: list[str] = []
        try:
            status = path.stat()
            first = self._seen.setdefault((status.st_dev, status.st_ino), path)
            if first is not path:
                self.skipped.append((path, f"a link to {first}, which is searched in its own place"))
                return None, []
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_symlink() and (path / entry.name).is_dir():
                        links.append(entry.name)
                    else:
                        files.append(entry.name)
        except OSError as error:
            self.skipped.append((path, f"cannot be read: {error.strerror or error}"))
            self.unreadable.append(path)
            return None, []
        mark = next((mark for mark in ENVIRONMENT_MARKS if mark in files or mark in folders), None)
        if mark and not is_start:
            self.skipped.append((path, f"a virtual environment ({mark})"))
            return None, []
        # The ignore file of the walk's base was read with those above it.
        if ".gitignore" in files and path != self.base:
            rules = (*rules, *read_rules(path / ".gitignore", path, self.skipped))
        self._links.extend((path / name, rules) for name in links if self._wanted(path, name, rules, is_link=True))
        inner = sorted(name for name in folders if self._wanted(path, name, rules, is_link=False))
        return Folder(path, tuple(sorted(files)), rules), inner

    def _wanted(self, path: Path, name: str, rules: tuple[IgnoreFile, ...], *, is_link: bool) -> bool:
        if name in _SILENT or name.endswith(FROZEN_SUFFIX):
            return False
        whole = path / name
        reason = _SKIPPED.get(name)
        if reason is None and name.startswith("."):
            reason = "a hidden folder"
        # Git treats every link as a file.
        reason = reason or ignore_reason(rules, whole, is_folder=not is_link)
        if reason:
            self.skipped.append((whole, reason))
        return reason is None


def relative_to(path: Path, root: Path) -> str:
    """Return `path` relative to `root` with "/", or the whole path if it is outside."""
    text, above = str(path), f"{root}{os.sep}"
    if text.startswith(above):  # Many times faster, and nearly always so.
        return text[len(above) :].replace(os.sep, "/")
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def up_to(folder: Path, root: Path) -> list[Path]:
    """Return `folder` and its parents up to `root`, or only `folder` if it is outside of `root`."""
    return [step for step in (folder, *folder.parents) if step.is_relative_to(root)] or [folder]
