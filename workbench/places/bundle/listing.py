"""The names of a project's files, without those that git ignores and those that must not leave this machine."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.agents.gitignore import ignored_by
from workbench.agents.walk import ENVIRONMENT_MARKS, read_rules, rules_above
from workbench.git import run_git
from workbench.state_folder import STATE_FOLDER

_GIT_SECONDS = 120
_LISTING = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
_NEVER = frozenset({b".git", os.fsencode(STATE_FOLDER), b".adk", b"__pycache__"})
"""Names of folders and files that never travel: the state of git, the workbench and ADK, and byte-code."""
_SECRETS = b".env"
"""Files and folders whose names start like this, in any case, hold secrets."""
_NO_NAMES = frozenset({b"", b".", b".."})
"""Parts of paths that a damaged index of git may have. They could lead out of the project."""
_MARKS = tuple(mark.encode() for mark in ENVIRONMENT_MARKS)


def project_files(root: Path) -> list[bytes]:
    """Return the sorted names of the files and links in `root`, relative to it. Some of them may not exist.

    If git knows the folder, these are its tracked files and the untracked ones that it does not ignore, also in
    submodules and other repositories inside. Without git, the ignore files decide alone.
    """
    base = os.fsencode(root)
    found = _from_git(base)
    names = set(_from_walk(root) if found is None else found)
    return sorted(_travelling(names))


def is_secret(path: str) -> bool:
    """Return whether a path names a file such as `.env`, which never travels."""
    return any(part.lower().startswith(_SECRETS.decode()) for part in path.split("/"))


def _travelling(names: set[bytes]) -> Iterator[bytes]:
    environments = {
        above
        for name in names
        for mark in _MARKS
        if b"/" + mark in name and (above := _above_mark(name.split(b"/"), mark)) is not None
    }
    for name in names:
        parts = name.split(b"/")
        if not (_NEVER | _NO_NAMES).isdisjoint(parts) or any(part.lower().startswith(_SECRETS) for part in parts):
            continue
        if environments and any(b"/".join(parts[:depth]) in environments for depth in range(1, len(parts))):
            continue
        yield name


def _above_mark(parts: list[bytes], mark: bytes) -> bytes | None:
    """Return the folder that has an environment's mark. The project itself is never taken for one."""
    return b"/".join(parts[: parts.index(mark)]) if mark in parts[1:] else None


def _from_git(base: bytes) -> list[bytes] | None:
    """Return what git lists, or None if it does not know the folder or ignores it."""
    folder = os.fsdecode(base)
    if run_git(folder, "check-ignore", "-q", ".", seconds=_GIT_SECONDS) is not None:
        return None
    listed = run_git(folder, *_LISTING, seconds=_GIT_SECONDS)
    if listed is None:
        return None
    found: list[bytes] = []
    for name in set(listed.split(b"\0")) - {b""}:
        whole = os.path.join(base, name.rstrip(b"/"))  # noqa: PTH118
        if os.path.isdir(whole) and not os.path.islink(whole):  # noqa: PTH112, PTH114
            # A submodule, or a repository that is not tracked.
            inside = _from_git(whole)
            inner = _from_walk(Path(os.fsdecode(whole))) if inside is None else inside
            found += (name.rstrip(b"/") + b"/" + item for item in inner)
        else:
            found.append(name)
    return found


def _from_walk(root: Path) -> Iterable[bytes]:
    """Yield the files and links that the ignore files leave. Links are not followed."""
    base = str(root)
    waiting = [("", rules_above(root, []))]
    while waiting:
        above, rules = waiting.pop()
        folder = f"{base}/{above}"
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        names = {entry.name for entry in found}
        if above and not names.isdisjoint(ENVIRONMENT_MARKS):
            continue
        if above and ".gitignore" in names:
            rules = (*rules, *read_rules(Path(folder, ".gitignore"), Path(folder), []))
        for entry in found:
            is_folder = entry.is_dir(follow_symlinks=False)
            name = above + entry.name
            if os.fsencode(entry.name) in _NEVER or ignored_by(
                rules, f"{base}/{name}", entry.name, is_folder=is_folder
            ):
                continue
            if is_folder:
                waiting.append((f"{name}/", rules))
            else:
                yield os.fsencode(name)
