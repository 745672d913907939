"""The database of a state folder, for one process. Any thread may read; writes happen one after the other.

A read or a write is a function that gets a connection. A read sees one consistent state of the database. A write is a
transaction. If the file turns out to be damaged, it is renamed, its readable rows are copied into a new file, and the
read or write is repeated.

The path `STATE/runs.db/RUN_ID` names a stored run. There is no file with this path.

If the folder cannot be used, all threads share one connection to a database in memory.
"""

import atexit
import errno
import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from workbench.files.folders import untrusted_root
from workbench.store.database.opening import (
    FILE_NAME,
    SQLITE_ERRORS,
    DamagedError,
    Identity,
    Opened,
    identity_of,
    open_in_memory,
    open_to_read,
    open_to_write,
    translated,
)
from workbench.store.database.salvage import set_aside

T = TypeVar("T")
Connection: TypeAlias = sqlite3.Connection
_IDLE = 3
"""Maximum number of idle connections."""
_OPEN = 8
"""Maximum number of databases that a process keeps open."""
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ELOOP)
"""Errors of folders that cannot be written at all. A full disk is not among them: it may have space later."""


class Database:
    """The database in the state folder `state`, which may not exist yet."""

    def __init__(self, state: Path) -> None:
        self.path = state / FILE_NAME
        self._name = str(self.path)
        self._syncs: bool | None = None
        """Whether the connection for writing waits for the disk, or None if that is not set yet."""
        self._writing = threading.RLock()
        self._writer: Opened | None = None
        self._lending = threading.Lock()
        self._idle: list[Opened] = []
        self._memory = open_in_memory(self.path) if untrusted_root(state) is not None else None
        self.why_in_memory = ""
        """Why the folder cannot be written, or "" if no write has failed."""

    @property
    def is_lasting(self) -> bool:
        """Whether the data outlives this process. False for a database in memory."""
        return self._memory is None

    @property
    def exists(self) -> bool:
        """Whether the database exists, in a file or in memory."""
        return not self.is_lasting or os.path.lexists(self.path)

    def switch_to_memory(self, error: OSError) -> bool:
        """Switch to a database in memory if `error` means that the folder cannot be written at all.

        Existing rows are copied. Return whether the database is in memory now. Call it in a thread.

        Raises:
            OSError: The existing database cannot be read.
        """
        with self._writing:
            if self.is_lasting and error.errno in _UNWRITABLE:
                try:
                    source = open_to_read(self.path)
                except (FileNotFoundError, NotADirectoryError):
                    self._memory = open_in_memory(self.path)
                else:
                    self._memory = open_in_memory(self.path, source)
                    source.close()
                self.why_in_memory = error.strerror or type(error).__name__
        return not self.is_lasting

    def read(self, ask: Callable[[Connection], T]) -> T | None:
        """Return the result of `ask(connection)`, or None if there is no database. Call it in a thread.

        A damaged database is first replaced by a new one with its readable rows.

        Raises:
            OSError: The database can be neither read nor replaced.
        """
        try:
            return self._ask(ask)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except DamagedError:
            self._set_aside()
        try:
            return self._ask(ask)
        except FileNotFoundError:
            return None

    def write(self, change: Callable[[Connection], T], *, sync: bool = False) -> T:
        """Call `change(connection)` in a transaction, and return its result. Call it in a thread.

        With `sync`, wait until this and all earlier writes are on disk.

        Raises:
            OSError: The database cannot be written. Nothing was changed.
        """
        with self._writing:
            try:
                return self._change(change, sync=sync)
            except DamagedError:
                self._set_aside()
                return self._change(change, sync=sync)

    def _set_aside(self) -> None:
        if self.is_lasting:
            set_aside(self.path)
            self.close()

    def version(self) -> int:
        """Return a number that changes whenever another process writes, or 0 without a database that can be opened."""
        with self._writing:
            try:
                if not self.exists:
                    return 0
                return int(self._connected().connection.execute("PRAGMA data_version").fetchone()[0])
            except (OSError, *SQLITE_ERRORS):
                return 0

    def close(self) -> None:
        """Close all idle connections to the file. The next read or write opens new ones."""
        with self._writing, self._lending:
            opened, self._idle = self._idle, []
            if self._writer is not None:
                opened.append(self._writer)
                self._writer = None
        for one in opened:
            one.close()

    def forget(self) -> None:
        """Drop all connections without closing them, in a child process that shares them with its parent."""
        _inherited.extend(self._idle)
        if self._writer is not None:
            _inherited.append(self._writer)
        self._writer, self._idle = None, []
        self._writing, self._lending = threading.RLock(), threading.Lock()

    def _ask(self, ask: Callable[[Connection], T]) -> T:
        with translated(self.path):
            if self._memory is None:
                return self._ask_file(ask)
            with self._writing:
                return ask(self._memory.connection)

    def _ask_file(self, ask: Callable[[Connection], T]) -> T:
        opened = self._borrow()
        try:
            connection = opened.connection
            connection.execute("BEGIN")
            try:
                found = ask(connection)
            except sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error):
                    raise
                # A text is not UTF-8, as after a flipped bit.
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                found = ask(connection)
                connection.text_factory = str
            connection.execute("ROLLBACK")
        except BaseException:
            opened.close()
            raise
        with self._lending:
            if len(self._idle) < _IDLE:
                self._idle.append(opened)
                return found
        opened.close()
        return found

    def _borrow(self) -> Opened:
        identity = identity_of(self.path)
        with self._lending:
            while self._idle:
                opened = self._idle.pop()
                if opened.identity == identity:
                    return opened
                opened.close()
        return open_to_read(self.path)

    def _change(self, change: Callable[[Connection], T], *, sync: bool) -> T:
        opened = self._connected()
        connection = opened.connection
        try:
            with translated(self.path):
                if sync is not self._syncs:
                    connection.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
                    self._syncs = sync
                connection.execute("BEGIN IMMEDIATE")
                try:
                    found = change(connection)
                    if not self._is_there(opened.identity):
                        raise OSError(errno.ESTALE, "the file was removed or replaced", self._name)
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(*SQLITE_ERRORS):
                        connection.execute("ROLLBACK")
                    raise
        except OSError:
            self._drop_writer()
            raise
        return found

    def _connected(self) -> Opened:
        if self._memory is not None:
            return self._memory
        if self._writer is not None and not self._is_there(self._writer.identity):
            self._drop_writer()
        if self._writer is None:
            self._writer, self._syncs = open_to_write(self.path), None
        return self._writer

    def _is_there(self, identity: Identity) -> bool:
        """Return whether the file at the path is still this one. Writes to a removed or replaced file would be lost."""
        if self._memory is not None:
            return True
        try:
            found = os.lstat(self._name)  # `identity_of` is slower, and this is called twice for each change.
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == identity

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


_databases: "OrderedDict[Path, Database]" = OrderedDict()
_registering = threading.Lock()
_inherited: list[Opened] = []
"""Connections of the parent process. They stay open, because closing them here could disturb the parent."""


def database(state: Path) -> Database:
    """Return the database of a state folder, shared by all callers in this process. The eight used last stay open."""
    with _registering:
        found = _databases.pop(state, None)
        _databases[state] = found = Database(state) if found is None else found
        old = [_databases.pop(path) for path in [path for path, one in _databases.items() if one.is_lasting][:-_OPEN]]
    for one in old:
        one.close()
    return found


def run_path(state: Path, run_id: str) -> Path:
    """Return the path that names a stored run."""
    return state / FILE_NAME / run_id


def is_stored(path: Path) -> bool:
    """Return whether a path names a stored run, and not a file."""
    return path.parent.name == FILE_NAME


def state_of(path: Path) -> Path:
    """Return the state folder of a stored run."""
    return path.parents[1]


def close_databases() -> None:
    """Close all connections of this process. Call it only while no other thread uses one."""
    for one in list(_databases.values()):
        one.close()


def _after_fork() -> None:
    global _registering
    _registering = threading.Lock()
    for one in _databases.values():
        one.forget()


atexit.register(close_databases)
os.register_at_fork(after_in_child=_after_fork)
