"""The packages of an interpreter, read without starting it."""

import ast
import functools
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path
from urllib.parse import unquote, urlsplit

from workbench.agents.interpreter import installed, package_folders, python_version
from workbench.agents.walk import relative_to
from workbench.places.host.recipe import LocalPackage

_OWN = frozenset({"agent-workbench", "pip"})
"""Packages that no machine needs: the workbench sends what it runs there, and each environment has its own pip."""
_FINDER = re.compile(r"__editable___.*_finder\.py")


@dataclass(frozen=True)
class Installed:
    """The packages of an interpreter.

    `pins` are requirements with exact versions, by name. `in_place` are packages of the project whose sources are used
    where they are. `elsewhere` are packages that come from other files of this machine, with those files.
    """

    pins: dict[str, str]
    in_place: tuple[LocalPackage, ...]
    elsewhere: dict[str, str]


def installed_packages(interpreter: Path, root: Path) -> Installed:
    """Return the packages of an interpreter, as far as they can be read."""
    return _installed(interpreter, root, installed(interpreter))


@functools.lru_cache(maxsize=16)
def _installed(interpreter: Path, root: Path, _changed: tuple[int, ...]) -> Installed:
    """Read the packages. `_changed` differs once one of them was installed or removed."""
    pins: dict[str, str] = {}
    in_place: list[LocalPackage] = []
    elsewhere: dict[str, str] = {}
    found = [(name, package) for package in _distributions(interpreter) if (name := _name(package))]
    for name, package in sorted(found, key=lambda one: one[0]):
        version = package.version
        if not version or (normal := normalized(name)) in _OWN:
            continue
        url, is_editable, commit = _origin(package)
        local = _local_path(url)
        if local is None:
            pins[normal] = f"{name} @ {url}{commit}" if url else f"{name}=={version}"
        elif is_editable and local.is_relative_to(root):
            paths = tuple(_paths(package, root)) or (_inside(local, root),)
            in_place.append(LocalPackage(name, version, paths, package.read_text("entry_points.txt") or ""))
        else:
            elsewhere[name] = str(local)
    return Installed(pins, tuple(in_place), elsewhere)


def _distributions(interpreter: Path) -> Iterable[Distribution]:
    """Yield an interpreter's packages as the standard library finds them.

    `importlib.metadata.distributions` asks all finders of this process. Once a library imports the backport
    `importlib_metadata`, that one finds each package a second time, with None in place of missing metadata.
    """
    folders = [str(folder) for folder in package_folders(interpreter)]
    return MetadataPathFinder.find_distributions(DistributionFinder.Context(path=folders))


def _name(package: Distribution) -> str:
    """Return the name in a package's metadata, or "" if it has none."""
    found = package.metadata
    return (found["Name"] or "") if found else ""


def normalized(name: str) -> str:
    """Return the name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def version_of(interpreter: Path) -> str:
    """Return "3.12" for an interpreter of that version, or "" if it is not known."""
    version = python_version(interpreter)
    if version is not None:
        return f"{version[0]}.{version[1]}"
    named = re.fullmatch(r"python(\d+\.\d+)", os.path.basename(os.path.realpath(interpreter)))  # noqa: PTH119
    return named[1] if named else ""


def _origin(package: Distribution) -> tuple[str, bool, str]:
    """Return the URL that a package was installed from ("" for an index), whether it is editable, and its commit."""
    try:
        source = json.loads(package.read_text("direct_url.json") or "{}")
        url = str(source.get("url", ""))
        if "vcs_info" in source:
            return f"{source['vcs_info']['vcs']}+{url}", False, f"@{source['vcs_info']['commit_id']}"
        return url, source.get("dir_info", {}).get("editable") is True, ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", False, ""


def _local_path(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _paths(package: Distribution, root: Path) -> Iterator[str]:
    """Yield the folders of the project that a package installed in place adds to `sys.path`, relative to `root`."""
    for file in package.files or ():
        found: list[str] = []
        try:
            if file.suffix == ".pth":
                lines = file.read_text("utf-8").splitlines()
                found = [line for line in lines if line.startswith("/")]
            elif _FINDER.fullmatch(file.name):
                found = [os.path.dirname(path) for path in _mapping(file.read_text("utf-8"))]  # noqa: PTH120
        except (OSError, UnicodeDecodeError):
            continue
        for path in dict.fromkeys(found):
            if Path(path).is_relative_to(root):
                yield _inside(Path(path), root)


def _mapping(source: str) -> list[str]:
    """Return the folders of packages in the finder that setuptools writes, which is not run."""
    try:
        for node in ast.parse(source).body:
            if isinstance(node, ast.AnnAssign):
                targets: list[ast.expr] = [node.target]
            elif isinstance(node, ast.Assign):
                targets = node.targets
            else:
                continue
            if isinstance(targets[0], ast.Name) and targets[0].id == "MAPPING" and node.value is not None:
                return [str(path) for path in ast.literal_eval(node.value).values()]
    except (SyntaxError, ValueError, AttributeError, RecursionError):
        return []
    return []


def _inside(path: Path, root: Path) -> str:
    """Return a path of the project relative to its root, "" for the root itself."""
    return "" if path == root else relative_to(path, root)
