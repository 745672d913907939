"""The project's files: how they are recognised, imported from source, and recorded when an agent reads them.

Python trusts a cached .pyc if the source's size and its time in whole seconds match. So a file saved twice within a
second could run in its old form. The project's files are therefore compiled each time and never cached. The standard
library and installed packages keep their caches.

An agent's answers may depend on each file that it reads, during import and at run time. Python reports every file
before it is opened, in whatever way (PEP 578). That covers imports, prompts and data. A file that is written is a
result and not a source, even if it is read later or by another case. It is reported at once; otherwise the watch would
take the write for a user's save. An SQLite database counts as read until its file changes. Other inputs of an agent
cannot be recorded. `unseen` names them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

WORKER = os.path.dirname(os.path.abspath(__file__)) + os.sep
"""The folder of the worker, with a separator at its end."""
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    if path
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_roots: list[str] = []
"""The project's known folders. Files in them are the project's, even if the folder itself is installed."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EXCLUDED = (f"{os.sep}.git{os.sep}", f"{os.sep}.workbench{os.sep}", f"{os.sep}__pycache__{os.sep}")
_EVENTS = frozenset(("open", "os.rename", "sqlite3.connect", "os.listdir", "os.scandir"))
"""Audit events with a file or folder. The target of a rename counts as written."""
_LISTING = ("os.listdir", "os.scandir")
_IMPORTS = ("<frozen importlib", WORKER)
"""Callers that list folders to find modules. Other files in these folders do not matter."""
PROGRAMS, PROCESSES, SOCKETS, DATABASES = "child programs", "forked processes", "sockets", "databases"
OUTSIDE, CHANGED = "outside files", "files it changes"
UNSEEN = (PROGRAMS, PROCESSES, SOCKETS, DATABASES, OUTSIDE, CHANGED)
"""Kinds of unseen inputs. Their files or contents are not compared."""
_STARTS = {
    **dict.fromkeys(("subprocess.Popen", "os.posix_spawn", "os.spawn", "os.exec", "os.system"), PROGRAMS),
    **dict.fromkeys(("os.fork", "os.forkpty"), PROCESSES),
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
"""Suffixes of the variables that name other hosts of models."""
_SYSTEM = ("/usr/", "/etc/", "/proc/", "/sys/", "/dev/", "/lib", "/bin/", "/sbin/", "/run/", "/System/", "/Library/")
_MEMORY = "/dev/shm/"
"""The folder of `_SYSTEM` that holds files of programs, in memory."""
_CREDENTIALS = (f"{os.sep}.config{os.sep}gcloud{os.sep}", f"{os.sep}.netrc")
_MOST = 5000
"""Maximum number of files of a process. A process with more files counts as reading everything."""
_watched: tuple[str, ...] = ()
"""The folders whose files are recorded when they are read."""
_read: set[str] = set()
_listed: set[str] = set()
_written: set[str] = set()
_reported: set[str] = set()
_databases: dict[str, Any] = {}
"""Databases that were opened → their state then."""
_unseen: set[str] = set()
_outside: set[str] = set()
"""Files outside the project that were opened for writing. Reading them later does not make them inputs."""
_looked_up: list[bool] = []
"""Whether the address of a host was looked up."""
_prefixes: list[str] = []
"""Folders of Python and of the libraries."""
_overflowed: list[bool] = []
_on_written: list[Callable[[str], None]] = []
_LOG = "-wal"
"""The suffix of the file with the last changes of a database."""


def is_project_file(path: str) -> bool:
    """Return whether a file is neither in the standard library, nor installed, nor the worker's.

    False for names that are not files, such as `<string>`.
    """
    if not path or path.startswith("<"):
        return False
    full = os.path.abspath(path)
    if full.startswith(WORKER):
        return False
    for root in _roots:
        if full.startswith(root):
            full = full[len(root) - 1 :]
            return not any(part in full for part in _INSTALLED)
    if any(part in full for part in _INSTALLED):
        return False
    return not full.startswith(_LIBRARIES) and not os.path.realpath(full).startswith(_LIBRARIES)


class SourceOnlyLoader(importlib.machinery.SourceFileLoader):
    """A loader that compiles a module's source, ignores any .pyc and writes none."""

    def get_code(self, fullname: str) -> types.CodeType | None:
        """Return the compiled source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class ProjectFinder(importlib.abc.MetaPathFinder):
    """A finder that asks the other finders and lets `SourceOnlyLoader` load the project's modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the first other finder that has one, or None. Project modules get `SourceOnlyLoader`."""
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = (
                find(fullname, path, target) if find and finder is not self else None
            )
            if spec is not None:
                if type(spec.loader) is importlib.machinery.SourceFileLoader and is_project_file(spec.origin or ""):
                    spec.loader = SourceOnlyLoader(spec.loader.name, spec.loader.path)
                    spec.cached = None
                return spec
        return None


def import_from_source(*roots: str) -> None:
    """Import the project's modules from source from now on, in this process and its forks.

    They are the modules below `roots`, and others that are neither installed nor in the standard library.
    """
    for root in (os.path.join(root, "") for root in roots):
        # A root that contains the libraries is useless. Without it, the general rule applies.
        if not any(library.startswith(root) for library in _LIBRARIES):
            _roots.append(root)
    sys.meta_path.insert(0, ProjectFinder())
    # Cached listings of the project's folders may be older than the last save.
    importlib.invalidate_caches()


def import_package(name: str, folder: str) -> types.ModuleType:
    """Import and return `folder` as the package `name`, with or without an `__init__.py`, whatever `sys.path` is.

    Raises:
        BaseException: any exception of the `__init__.py`.
    """
    init = os.path.join(folder, "__init__.py")
    places: list[str] = [folder]
    spec: importlib.machinery.ModuleSpec | None
    if os.path.isfile(init):
        loader = SourceOnlyLoader(name, init)
        spec = importlib.util.spec_from_file_location(name, init, loader=loader, submodule_search_locations=places)
    else:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = places
    if spec is None:
        raise ImportError(f"{folder} cannot be imported as a package", name=name, path=folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if spec.loader is not None:
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
    return sys.modules.get(name, module)


def watch(*roots: str) -> None:
    """Start to record, here and in forks, what is opened or listed below `roots`, and other inputs of the agent.

    A later call only replaces `roots`. The user's modules elsewhere are recorded, too.
    """
    global _watched
    first = not _watched
    _watched = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
    if first:
        prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
        _prefixes[:] = {os.path.join(os.path.abspath(path), "") for path in prefixes}
        sys.addaudithook(_note)


def on_written(callback: Callable[[str], None]) -> None:
    """Set the callback for written files. It replaces an earlier callback.

    It is called once for each file, in the thread that writes: before the file is opened for writing, before another
    file is renamed to it, or after a database changed. Changes of databases before this call do not count.
    """
    _on_written[:] = [callback]
    _databases.update((database, _state(database)) for database in list(_databases))


def new_files() -> list[str]:
    """Return the sorted files of the project that were read since the last call and never written."""
    _find_changed()
    found = sorted(path for path in _read - _reported - _written if is_project_file(path))
    _reported.update(found)
    return found


def is_complete() -> bool:
    """Return whether all files that were read are known: they are recorded, and there were not too many."""
    return bool(_watched) and not _overflowed


def folders() -> list[str]:
    """Return the sorted folders that were listed so far."""
    return sorted(_listed)


def unseen() -> list[str]:
    """Return the kinds of unseen inputs that the process and its parents used, in the order of `UNSEEN`."""
    _find_changed()
    return [name for name in UNSEEN if name in _unseen]


def _note(event: str, args: tuple[Any, ...]) -> None:
    # Called for every audit event, in any thread, so it must be quick and never raise.
    try:
        if event in _EVENTS:
            if not _overflowed:
                _note_file(event, args)
        elif event in _STARTS:
            # The worker itself forks each case.
            if not sys._getframe(1).f_code.co_filename.startswith(WORKER):
                _unseen.add(_STARTS[event])
        elif event in _CONNECTS:
            _note_host(event, args)
        elif event == "import" and str(args[0]).startswith("multiprocessing.popen_"):
            _unseen.add(PROCESSES)  # Some of its ways to start a process have no event.
    except Exception:  # noqa: S110 (an agent's open must not fail because of this hook)
        pass


def _note_file(event: str, args: tuple[Any, ...]) -> None:
    path = args[1] if event == "os.rename" else args[0]
    path = os.curdir if path is None and event in _LISTING else path
    if path is None or isinstance(path, int):
        return
    full = _database(os.fsdecode(path)) if event == "sqlite3.connect" else os.path.abspath(os.fsdecode(path))
    if full is None or any(part in full for part in _EXCLUDED):
        return
    is_inside = os.path.join(full, "").startswith(_watched)
    # A module of the user may be outside the roots, such as one on PYTHONPATH.
    if not (is_inside or (event == "open" and full.endswith(".py") and is_project_file(full))):
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


def _database(name: str) -> str | None:
    """Return the file of a database, or None for one in memory.

    A database in memory is recorded as unseen, because files may be attached to it without an event.
    """
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
    """Treat each database that has changed since it was opened, and its log, as written files."""
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
    """Record a file outside the project: as written, or as unseen if it is neither the system's nor a library's."""
    if writes:
        _outside.add(full)
    elif OUTSIDE not in _unseen and full not in _outside and not full.startswith(tuple(_prefixes)):
        if full.startswith(_SYSTEM) and not full.startswith(_MEMORY):
            return
        known = any(part in full for part in _CREDENTIALS) or not is_project_file(full)
        if not known and os.path.exists(full):
            _unseen.add(OUTSIDE)


def _note_host(event: str, args: tuple[Any, ...]) -> None:
    """Note a connection or the lookup of a host, unless it is for a model."""
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
