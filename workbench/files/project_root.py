"""The root of the project that a path belongs to."""

import os
from pathlib import Path

from workbench.files.file_access import real_path
from workbench.files.folders import STATE_FOLDER, home
from workbench.files.gitignore import is_repository


def find_root(path: Path) -> Path:
    """Return the absolute root of the project that `path` belongs to, for all commands and the screen.

    The root is the nearest folder at or above `path` with `.workbench` or `.git`; else the current folder if it
    contains `path`; else `path` itself, or the folder of a file. Links are not resolved.
    """
    folder = absolute(path)
    folder = folder if folder.is_dir() else folder.parent
    marked = next((step for step in (folder, *folder.parents) if is_project(step)), None)
    return marked or _current_around(folder) or folder


def project_around(root: Path) -> Path | None:
    """Return the root that `root` would belong to without its own `.workbench`, or None. A repository has none."""
    if is_repository(root):
        return None
    return next((step for step in root.parents if is_project(step)), None) or _current_around(root.parent)


def _current_around(folder: Path) -> Path | None:
    """Return the current folder if it contains `folder`, else None.

    The home folder and the root of the file system do not count, because searching them would take too long.
    """
    try:
        here = Path.cwd()
    except OSError:  # it is gone
        return None
    user = home()
    if here in (Path(here.anchor), user and real_path(user)):
        return None
    return here if real_path(folder).is_relative_to(real_path(here)) else None


def is_project(folder: Path) -> bool:
    """Return whether `folder` is marked as a root."""
    return is_repository(folder) or (folder / STATE_FOLDER).is_dir()


def absolute(path: Path) -> Path:
    """Return `path` as an absolute path without "..". Links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps "..", Path.resolve follows links
