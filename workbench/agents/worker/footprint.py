"""Which files of the project an agent reads, while it is imported and while it runs: what its answers may depend on.

Python tells of every file that it opens, by whatever way, before it does (PEP 578); that serves imports, prompts and
data alike. A file that is written to is a result and no source, also if it is read later.
"""

from __future__ import annotations

import os
import sys
from typing import Any, List, Set, Tuple

from . import sources

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OTHERS = (f"{os.sep}.git{os.sep}", f"{os.sep}.workbench{os.sep}", f"{os.sep}__pycache__{os.sep}")
_MOST = 5000
"""Files a process may name; whoever reads more reads everything."""

_roots: Tuple[str, ...] = ()
_read: Set[str] = set()
_written: Set[str] = set()
_told: Set[str] = set()
_off: List[bool] = []


def watch(*roots: str) -> None:
    """From now on, in this process and what it forks, takes note of the files below `roots` that are opened."""
    global _roots
    first = not _roots
    _roots = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
    if first:
        sys.addaudithook(_note)


def news() -> List[str]:
    """The files that were read since this was asked last, in order."""
    found = sorted(path for path in _read - _told - _written if sources.is_project_file(path))
    _told.update(found)
    return found


def _note(event: str, args: Tuple[Any, ...]) -> None:
    # Called for everything that Python tells, by any thread: it must be quick, and never raise.
    if event != "open" or _off:
        return
    try:
        path, mode, flags = args[0], args[1], args[2]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return
        full = os.path.abspath(path)
        if not full.startswith(_roots) or any(part in full for part in _OTHERS):
            return
        writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITING)
        (_written if writes else _read).add(full)
        if len(_read) + len(_written) > _MOST:
            _off.append(True)
    except Exception:  # noqa: S110 (an agent's open must not fail because of ours)
        pass
