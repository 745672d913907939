"""The project's files that an agent reads, during import and at run time. Its answers may depend on them.

Python reports every file before it is opened, in whatever way (PEP 578). That covers imports, prompts and data. A file
that is written is a result and not a source, even if it is read later or by another case. It is reported at once;
otherwise the watch would take the write for a user's save.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, List, Set, Tuple

from . import sources

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EXCLUDED = (f"{os.sep}.git{os.sep}", f"{os.sep}.workbench{os.sep}", f"{os.sep}__pycache__{os.sep}")
_EVENTS = frozenset(("open", "os.rename", "sqlite3.connect", "os.listdir", "os.scandir"))
"""Audit events to handle. The target of a rename, and a database, count as written."""
_LISTING = ("os.listdir", "os.scandir")
_IMPORTS = ("<frozen importlib", sources.WORKER)
"""Callers that list folders to find modules. Other files in these folders do not matter."""
_MOST = 5000
"""Maximum number of files of a process. Beyond it, the process counts as reading everything."""

_roots: Tuple[str, ...] = ()
_read: Set[str] = set()
_listed: Set[str] = set()
_written: Set[str] = set()
_reported: Set[str] = set()
_overflowed: List[bool] = []
_on_written: List[Callable[[str], None]] = []


def watch(*roots: str) -> None:
    """Start to record files opened below `roots`, and the user's modules elsewhere, here and in forks."""
    global _roots
    first = not _roots
    _roots = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
    if first:
        sys.addaudithook(_note)


def on_written(callback: Callable[[str], None]) -> None:
    """Call `callback` with each file before it is first opened for writing, in any thread."""
    _on_written[:] = [callback]


def new_files() -> List[str]:
    """Return the sorted files that were read since the last call."""
    found = sorted(path for path in _read - _reported - _written if sources.is_project_file(path))
    _reported.update(found)
    return found


def is_complete() -> bool:
    """Return whether all reads are known.

    They are not if nothing is watched, or if there were too many files.
    """
    return bool(_roots) and not _overflowed


def folders() -> List[str]:
    """Return the sorted folders that were listed so far."""
    return sorted(_listed)


def _note(event: str, args: Tuple[Any, ...]) -> None:
    # Called for every audit event, in any thread, so it must be quick and never raise.
    if event not in _EVENTS or _overflowed:
        return
    try:
        path = args[1] if event == "os.rename" else args[0]
        full = "" if path is None or isinstance(path, int) else os.path.abspath(os.fsdecode(path))
        if any(part in full for part in _EXCLUDED) or not (_is_inside(full) or _is_module(event, full)):
            return
        if event in _LISTING:
            if not sys._getframe(1).f_code.co_filename.startswith(_IMPORTS):
                _listed.add(full)
        elif event == "open" and not _writes(args[1], args[2]):
            _read.add(full)
        elif full not in _written:
            _written.add(full)
            for callback in _on_written:
                callback(full)
        if len(_read) + len(_written) + len(_listed) > _MOST:
            _overflowed.append(True)
    except Exception:  # noqa: S110 (an agent's open must not fail because of ours)
        pass


def _is_inside(full: str) -> bool:
    return os.path.join(full, "").startswith(_roots)


def _is_module(event: str, full: str) -> bool:
    """Return whether this is a module of the user outside the roots, such as one on PYTHONPATH."""
    return event == "open" and full.endswith(".py") and sources.is_project_file(full)


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool((flags or 0) & _WRITING)
