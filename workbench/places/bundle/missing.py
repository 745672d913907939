"""Files that agents were seen to read here, and that other machines will not have."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.interpreter import package_folders
from workbench.places.bundle.contents import Contents
from workbench.places.bundle.listing import is_secret
from workbench.places.host.manifest import decoded, encoded, folders_of

_ENVIRONMENT_FILE = ".env"
"""Its values travel with each agent."""


@dataclass(frozen=True)
class MissingFile:
    """A file or folder that an agent uses, and why other machines will not have it.

    `path` is relative to the project's root, or absolute outside of it. `agents` are the names of those that use it.
    """

    path: str
    agents: tuple[str, ...]
    why: str


def missing_files(
    contents: Contents,
    used: Mapping[str, Collection[Path]],
    *,
    written: Mapping[str, Collection[Path]] | None = None,
    interpreters: Collection[Path] = (),
) -> list[MissingFile]:
    """Return the sorted files and folders that machines with this bundle will lack.

    `used` are the files that each agent read and the folders that it listed, `written` those that it wrote. For these,
    only the folder is needed. What belongs to the packages of `interpreters`, and what does not exist here either, is
    not missing.
    """
    found: dict[str, tuple[set[str], str]] = {}
    check = _Check(contents, interpreters)
    for agent, path, is_result in _uses(used, written or {}):
        why = check.why_missing(path.parent if is_result else path)
        if why is not None:
            name, reason = why
            found.setdefault(name, (set(), reason))[0].add(agent)
    return [MissingFile(path, tuple(sorted(agents)), why) for path, (agents, why) in sorted(found.items())]


class _Check:
    """A bundle, asked about one path after the other."""

    def __init__(self, contents: Contents, interpreters: Collection[Path]) -> None:
        self._contents = contents
        self._base = os.path.realpath(contents.root)
        self._folders = folders_of(contents.sizes) | {""}
        self._packages = tuple(
            f"{os.path.realpath(folder)}/" for python in interpreters for folder in package_folders(python)
        )

    def why_missing(self, path: Path) -> tuple[str, str] | None:
        """Return the name of a file or folder and why it is missing, or None if it is not."""
        if not path.exists():
            return None
        # Agents reach a file through links that travel, too.
        real = os.path.realpath(path)
        if real.startswith(self._packages):
            return None
        inside = self._inside(real)
        if inside is None:
            link = self._inside(os.path.abspath(path))  # noqa: PTH100 - links stay
            if link is None:
                return os.path.abspath(path), "it is outside of the project"  # noqa: PTH100
            return link, f"it is a link to {real}, outside of the project"
        if inside in self._contents.sizes or inside in self._folders:
            return None
        if inside == _ENVIRONMENT_FILE or inside.endswith(f"/{_ENVIRONMENT_FILE}"):
            return None
        return inside, self._why(inside)

    def _why(self, inside: str) -> str:
        if is_secret(inside):
            return "files named .env* never travel: set what it needs in the environment"
        return self._contents.left_out.get(inside, "git ignores it, or it is a folder without files")

    def _inside(self, path: str) -> str | None:
        """Return a path relative to the root as the bundle names it, or None if it is outside."""
        for base in (self._base, str(self._contents.root)):
            if path == base:
                return ""
            if path.startswith(f"{base}/"):
                return decoded(os.fsencode(path[len(base) + 1 :]))
        return None


def shown(path: str) -> str:
    """Return the path of a bundle as text for people."""
    return encoded(path).decode("utf-8", "replace")


def _uses(
    used: Mapping[str, Collection[Path]], written: Mapping[str, Collection[Path]]
) -> Iterator[tuple[str, Path, bool]]:
    for agent, paths in used.items():
        yield from ((agent, path, False) for path in sorted(paths))
    for agent, paths in written.items():
        yield from ((agent, path, True) for path in sorted(paths))
