"""The project's files that an agent reads, during import and at run time. Its answers may depend on them.

Python reports every file before it is opened, in whatever way (PEP 578). That covers imports, prompts and data. A file
that is written is a result and not a source, even if it is read later or by another case. It is reported at once;
otherwise the watch would take the write for a user's save. An SQLite database counts as read until its file changes.

What else the agent uses cannot be read from here. `unseen` names it.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, Optional, Set, Tuple
from urllib.parse import unquote, urlsplit

from . import sources

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EXCLUDED = (f"{os.sep}.git{os.sep}", f"{os.sep}.workbench{os.sep}", f"{os.sep}__pycache__{os.sep}")
_EVENTS = frozenset(("open", "os.rename", "sqlite3.connect", "os.listdir", "os.scandir"))
"""Audit events with a file or folder. The target of a rename counts as written."""
_LISTING = ("os.listdir", "os.scandir")
_IMPORTS = ("<frozen importlib", sources.WORKER)
"""Callers that list folders to find modules. Other files in these folders do not matter."""
PROGRAMS, PROCESSES, SOCKETS, DATABASES = "child programs", "forked processes", "sockets", "databases"
OUTSIDE, CHANGED = "outside files", "files it changes"
UNSEEN = (PROGRAMS, PROCESSES, SOCKETS, DATABASES, OUTSIDE, CHANGED)
"""Kinds of unseen inputs: their files, or what an agent gets from there, are not compared."""
_STARTS = {
    "subprocess.Popen": PROGRAMS,
    "os.posix_spawn": PROGRAMS,
    "os.spawn": PROGRAMS,
    "os.exec": PROGRAMS,
    "os.system": PROGRAMS,
    "os.fork": PROCESSES,
    "os.forkpty": PROCESSES,
}
_CONNECTS = ("socket.getaddrinfo", "socket.connect", "socket.sendto")
_MODELS = (
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "oauth2.googleapis.com",
    "metadata.google.internal",
    "openai.com",
    "openai.azure.com",
    "anthropic.com",
    "mistral.ai",
)
"""Hosts of models, and of keys for them. Every verdict depends on its model, so these are not listed."""
_BASE_URLS = ("_BASE_URL", "_API_BASE", "OLLAMA_HOST")
"""Endings of the variables that name other hosts of models."""
_SYSTEM = ("/usr/", "/etc/", "/proc/", "/sys/", "/dev/", "/lib", "/bin/", "/sbin/", "/run/", "/System/", "/Library/")
_CREDENTIALS = (f"{os.sep}.config{os.sep}gcloud{os.sep}", f"{os.sep}.netrc")
_MOST = 5000
"""Maximum number of files of a process. Beyond it, the process counts as reading everything."""

_roots: Tuple[str, ...] = ()
_read: Set[str] = set()
_listed: Set[str] = set()
_written: Set[str] = set()
_reported: Set[str] = set()
_databases: Dict[str, Any] = {}
"""Databases that were opened → their state then."""
_unseen: Set[str] = set()
_outside: Set[str] = set()
"""Files elsewhere that were opened for writing, so that reading them is no source."""
_looked_up: List[bool] = []
"""Whether the address of a host was looked up."""
_prefixes: List[str] = []
"""Folders of Python and of the libraries."""
_overflowed: List[bool] = []
_on_written: List[Callable[[str], None]] = []


def watch(*roots: str) -> None:
    """Start to record files opened below `roots`, and the user's modules elsewhere, here and in forks."""
    global _roots
    first = not _roots
    _roots = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
    if first:
        prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
        _prefixes[:] = {os.path.join(os.path.abspath(path), "") for path in prefixes}
        sys.addaudithook(_note)


def on_written(callback: Callable[[str], None]) -> None:
    """Call `callback` with each file before it is first opened for writing, in any thread.

    A database that is open already is compared with its state now.
    """
    _on_written[:] = [callback]
    _databases.update((database, _state(database)) for database in list(_databases))


def new_files() -> List[str]:
    """Return the sorted files that were read since the last call."""
    _find_changed()
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


def unseen() -> List[str]:
    """Return what the process and its parents used that cannot be seen, in the order of `UNSEEN`."""
    _find_changed()
    return [name for name in UNSEEN if name in _unseen]


def _note(event: str, args: Tuple[Any, ...]) -> None:
    # Called for every audit event, in any thread, so it must be quick and never raise.
    try:
        if event in _EVENTS:
            if not _overflowed:
                _note_file(event, args)
        elif event in _STARTS:
            # The worker itself forks each case.
            if not sys._getframe(1).f_code.co_filename.startswith(sources.WORKER):
                _unseen.add(_STARTS[event])
        elif event in _CONNECTS:
            _note_host(event, args)
        elif event == "import" and str(args[0]).startswith("multiprocessing.popen_"):
            _unseen.add(PROCESSES)  # Some of its ways to start a process have no event.
    except Exception:  # noqa: S110 (an agent's open must not fail because of ours)
        pass


def _note_file(event: str, args: Tuple[Any, ...]) -> None:
    path = args[1] if event == "os.rename" else args[0]
    if path is None or isinstance(path, int):
        return
    full = _database(os.fsdecode(path)) if event == "sqlite3.connect" else os.path.abspath(os.fsdecode(path))
    if full is None or any(part in full for part in _EXCLUDED):
        return
    is_inside = os.path.join(full, "").startswith(_roots)
    # A module of the user may be outside the roots, such as one on PYTHONPATH.
    if not (is_inside or (event == "open" and full.endswith(".py") and sources.is_project_file(full))):
        if event in ("open", "sqlite3.connect"):
            _note_outside(full, writes=event == "open" and _writes(args[1], args[2]))
        return
    if event in _LISTING:
        # Skip a frame: `_note`.
        if not sys._getframe(2).f_code.co_filename.startswith(_IMPORTS):
            _listed.add(full)
    elif event == "sqlite3.connect":
        _databases.setdefault(full, _state(full))
        _read.update((full, full + _LOG))
    elif event == "open" and not _writes(args[1], args[2]):
        _read.add(full)
    else:
        _wrote(full)
    _find_changed()
    if len(_read) + len(_written) + len(_listed) > _MOST:
        _overflowed.append(True)


_LOG = "-wal"
"""The ending of the file that holds the last changes of a database."""


def _database(name: str) -> Optional[str]:
    """Return the file of a database. One in memory is noted and has none: files may be attached without an event."""
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path) if "mode=memory" not in name else ""
    if name and name != ":memory:":
        return os.path.abspath(name)
    _unseen.add(DATABASES)
    return None


def _state(database: str) -> Any:
    """Return a value that changes whenever a database changes."""

    def stamp(path: str) -> Any:
        try:
            status = os.stat(path)
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size) if status.st_size else None

    return stamp(database), stamp(database + _LOG)


def _find_changed() -> None:
    """Count the databases as written that changed since they were opened."""
    for database, before in list(_databases.items()):
        if _state(database) != before:
            del _databases[database]
            _wrote(database + _LOG)
            _wrote(database)


def _wrote(full: str) -> None:
    if full in _read:
        _unseen.add(CHANGED)
    if full not in _written:
        _written.add(full)
        for callback in _on_written:
            callback(full)


def _note_outside(full: str, *, writes: bool) -> None:
    """Note a file elsewhere, unless it belongs to the system, to Python or to a library."""
    if writes:
        _outside.add(full)
    elif OUTSIDE not in _unseen and full not in _outside and not full.startswith((*_SYSTEM, *_prefixes)):
        known = any(part in full for part in _CREDENTIALS) or not sources.is_project_file(full)
        if not known and os.path.exists(full):
            _unseen.add(OUTSIDE)


def _note_host(event: str, args: Tuple[Any, ...]) -> None:
    """Note a connection, unless it is to a model."""
    if SOCKETS in _unseen:
        return
    host = args[0] if event == "socket.getaddrinfo" else args[1]
    if event == "socket.getaddrinfo":
        _looked_up[:] = [True]
    elif isinstance(host, tuple):
        host = host[0]
        if _looked_up and host and set(str(host).lower()) <= set("0123456789abcdef.:"):
            return  # An address whose host was looked up before.
    if host is None or (event == "socket.getaddrinfo" and host == ""):
        return
    name = os.fsdecode(host).lower() if isinstance(host, (str, bytes)) else ""
    own = [value for key, value in os.environ.items() if key.upper().endswith(_BASE_URLS)]
    if name and (name.endswith(_MODELS) or any(name in value.lower() for value in own)):
        return
    _unseen.add(SOCKETS)


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool((flags or 0) & _WRITING)
