"""Which files of the project an agent reads, while it is imported and while it runs: what its answers may depend on.

Python tells of every file that it opens, by whatever way, before it does (PEP 578); that serves imports, prompts and
data alike. A file that is written to is a result and no source, also if it is read later, or by another case: that is
told at once, or a run would be taken for somebody's save of what it reads.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, List, Set, Tuple

from . import sources

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OTHERS = (f"{os.sep}.git{os.sep}", f"{os.sep}.workbench{os.sep}", f"{os.sep}__pycache__{os.sep}")
_EVENTS = frozenset(("open", "os.rename", "sqlite3.connect", "os.listdir", "os.scandir"))
"""A file that another is renamed to, and a database, are written to."""
_LISTING = ("os.listdir", "os.scandir")
_IMPORTS = ("<frozen importlib", sources.WORKER)
"""Folders that are listed from here are searched for modules, and their other files do not matter."""
_MOST = 5000
"""Files a process may name; whoever reads more reads everything."""

_roots: Tuple[str, ...] = ()
_read: Set[str] = set()
_listed: Set[str] = set()
_written: Set[str] = set()
_told: Set[str] = set()
_off: List[bool] = []
_on_written: List[Callable[[str], None]] = []


def watch(*roots: str) -> None:
    """From now on, in this process and what it forks, note the files below `roots` that are opened, and modules of the
    user's that lie elsewhere."""
    global _roots
    first = not _roots
    _roots = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
    if first:
        sys.addaudithook(_note)


def tell_written(tell: Callable[[str], None]) -> None:
    """From now on, `tell` is called with each file that is opened for writing for the first time, before it is, in
    whatever thread."""
    _on_written[:] = [tell]


def news() -> List[str]:
    """The files that were read since this was asked last, in order."""
    found = sorted(path for path in _read - _told - _written if sources.is_project_file(path))
    _told.update(found)
    return found


def is_complete() -> bool:
    """Is this all that was read? Not where nobody watches, nor after so many files that the rest was not noted."""
    return bool(_roots) and not _off


def folders() -> List[str]:
    """The folders that were listed so far, in order."""
    return sorted(_listed)


def _note(event: str, args: Tuple[Any, ...]) -> None:
    # Called for everything that Python tells, by any thread: it must be quick, and never raise.
    if event not in _EVENTS or _off:
        return
    try:
        path = args[1] if event == "os.rename" else args[0]
        full = "" if path is None or isinstance(path, int) else os.path.abspath(os.fsdecode(path))
        if any(part in full for part in _OTHERS) or not (_is_inside(full) or _is_module(event, full)):
            return
        if event in _LISTING:
            if not sys._getframe(1).f_code.co_filename.startswith(_IMPORTS):
                _listed.add(full)
        elif event == "open" and not _writes(args[1], args[2]):
            _read.add(full)
        elif full not in _written:
            _written.add(full)
            for tell in _on_written:
                tell(full)
        if len(_read) + len(_written) + len(_listed) > _MOST:
            _off.append(True)
    except Exception:  # noqa: S110 (an agent's open must not fail because of ours)
        pass


def _is_inside(full: str) -> bool:
    return os.path.join(full, "").startswith(_roots)


def _is_module(event: str, full: str) -> bool:
    """Whether this is a module of the user's that lies elsewhere, such as on PYTHONPATH."""
    return event == "open" and full.endswith(".py") and sources.is_project_file(full)


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool((flags or 0) & _WRITING)
