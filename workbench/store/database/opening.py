"""Safe opening of database files: links are not followed, and the content is not trusted.

SQLite's errors are converted to `OSError`, which every caller handles.
"""

import errno
import mmap
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from workbench.files.file_access import file_system_of, mounted
from workbench.files.folders import make_state_dir, open_stored

APPLICATION_ID = 0x61775242
"""Marks a file as ours, in its header (`awRB`)."""
VERSION = 1
"""Version of the schema, as `PRAGMA user_version`."""
OLDEST_SQLITE = (3, 31, 0)
"""The oldest SQLite that works: it can refuse functions in the schema that are not safe (`trusted_schema`)."""
PAGE_SIZE = 8192
"""Bytes of a page. Smaller pages leave more room unused behind long rows."""
RUN_BITS = 24
"""An execution's id is its run's id, shifted left by this many bits, plus its number in the run."""
EVENT_BITS = 32
"""The same for the ids of events and pieces."""
TABLES = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "run": """CREATE TABLE run (
        id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, started TEXT NOT NULL, seconds REAL,
        interrupted INTEGER NOT NULL, scored_from TEXT NOT NULL, git_commit TEXT, dirty INTEGER,
        events INTEGER NOT NULL, executions INTEGER NOT NULL, bytes INTEGER NOT NULL, listed TEXT,
        crc INTEGER NOT NULL, writer TEXT, seen REAL, deleted INTEGER NOT NULL DEFAULT 0,
        facts TEXT NOT NULL DEFAULT '{}', facts_crc INTEGER NOT NULL DEFAULT 0
    )""",
    "execution": """CREATE TABLE execution (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, agent TEXT NOT NULL, evalset_file TEXT NOT NULL,
        eval_set_id TEXT NOT NULL, eval_id TEXT NOT NULL, repeat INTEGER NOT NULL, attempt INTEGER NOT NULL,
        status TEXT, error_kind TEXT, error TEXT, cause TEXT, seconds REAL NOT NULL, model_calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, judge_calls INTEGER NOT NULL,
        judge_calls_cached INTEGER NOT NULL, scores TEXT NOT NULL, more TEXT NOT NULL, first INTEGER NOT NULL,
        events INTEGER NOT NULL, bytes INTEGER NOT NULL, changed INTEGER NOT NULL, crc INTEGER NOT NULL
    )""",
    "event": """CREATE TABLE event (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, execution INTEGER, name TEXT NOT NULL, data TEXT NOT NULL,
        crc INTEGER NOT NULL
    )""",
    "input": """CREATE TABLE input (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, data TEXT NOT NULL, crc INTEGER NOT NULL
    )""",
    "piece": """CREATE TABLE piece (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, data TEXT NOT NULL, crc INTEGER NOT NULL
    )""",
    "content": """CREATE TABLE content (
        digest TEXT PRIMARY KEY, data BLOB NOT NULL, used REAL NOT NULL, crc INTEGER NOT NULL
    )""",
    "judge_answer": """CREATE TABLE judge_answer (
        key TEXT PRIMARY KEY, answer TEXT NOT NULL, stored REAL NOT NULL, crc INTEGER NOT NULL
    )""",
    "model_answer": """CREATE TABLE model_answer (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, answer TEXT NOT NULL, crc INTEGER NOT NULL
    )""",
    "owner": """CREATE TABLE owner (
        evalset TEXT PRIMARY KEY, chosen TEXT, agent TEXT, app_name TEXT, crc INTEGER NOT NULL
    )""",
    "edit": "CREATE TABLE edit (id INTEGER PRIMARY KEY, state TEXT NOT NULL, edit TEXT NOT NULL, crc INTEGER NOT NULL)",
    "file_digest": """CREATE TABLE file_digest (
        path TEXT NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL,
        changed INTEGER NOT NULL, inode INTEGER NOT NULL, digest TEXT NOT NULL, used REAL NOT NULL,
        crc INTEGER NOT NULL, PRIMARY KEY (path, kind)
    )""",
}
"""The SQL statement that creates each table, by name."""
INDEXES = (
    "CREATE INDEX run_by_name ON run (run_id)",
    "CREATE INDEX execution_by_case ON execution (evalset_file, eval_id)",
    "CREATE INDEX event_by_execution ON event (execution)",
    "CREATE INDEX model_answer_by_run ON model_answer (run)",
)
"""The SQL statements that create the indexes."""
_DAMAGED = {7, 11, 18, 20, 24, 26}
"""SQLite's error codes for damage: NOMEM and TOOBIG (a length is wrong), CORRUPT, MISMATCH, FORMAT, NOTADB."""
_CODES = {5: errno.EBUSY, 6: errno.EBUSY, 8: errno.EROFS, 10: errno.EIO, 13: errno.ENOSPC, 14: errno.EACCES}
_WORDS = {
    errno.EBUSY: "another program is writing it",
    errno.EROFS: "it is read-only",
    errno.ENOSPC: "no space left on the disk",
    errno.EACCES: "it cannot be opened",
}
_GENERIC = 1
_LOST_TABLE = ("no such table", "no such column", "malformed", "no such index")
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors that SQLite's functions raise. UnicodeDecodeError: an error message quotes a damaged schema."""


class DamagedError(OSError):
    """A file that is not a usable database, or that cannot be read completely."""


class NewerError(OSError):
    """A database that a later version of the workbench made."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Convert SQLite's errors inside the `with` block to `OSError` that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise DamagedError(errno.EIO, "the database is damaged", str(path)) from None
    except sqlite3.Error as error:
        full_code = getattr(error, "sqlite_errorcode", None)
        code = _GENERIC if full_code is None else full_code & 0xFF
        text = str(error)
        if code in _DAMAGED or (code == _GENERIC and any(word in text for word in _LOST_TABLE)):
            raise DamagedError(errno.EIO, f"the database is damaged ({text})", str(path)) from None
        number = _CODES.get(code, errno.EIO)
        raise OSError(number, _WORDS.get(number, text), str(path)) from None


FILE_NAME = "runs.db"
BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite creates beside a database."""
_WAIT = 30.0
"""Seconds to wait for other programs, which write for milliseconds."""
_NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "ncpfs")
)
"""Network file systems. Machines share no memory there, so a write-ahead log would lose rows."""
Identity: TypeAlias = tuple[int, int]
"""Device and inode of a file."""


class Opened(NamedTuple):
    """An open connection, and the identity of its file."""

    connection: sqlite3.Connection
    identity: Identity

    def close(self) -> None:
        """Close the connection. The last connection to a file writes the log back into the file."""
        with suppress(*SQLITE_ERRORS):
            self.connection.close()


def identity_of(path: Path) -> Identity:
    """Return the identity of the file at `path`, without opening it.

    Opening and closing the file would release the locks of open connections.

    Raises:
        FileNotFoundError: There is no such file.
        DamagedError: The database or a file beside it is a link or a device.
        OSError: The folder of the file cannot be read.
    """
    found = _regular(path)
    for ending in BESIDE:
        with suppress(FileNotFoundError):
            _regular(path.with_name(path.name + ending))
    return found.st_dev, found.st_ino


def _regular(path: Path) -> os.stat_result:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        what = "a link" if stat.S_ISLNK(found.st_mode) else "not a regular file"
        raise DamagedError(errno.ELOOP, f"it is {what}", str(path))
    return found


def open_to_read(path: Path) -> Opened:
    """Open an existing database.

    Raises:
        FileNotFoundError: There is no database.
        DamagedError, NewerError, OSError: The database cannot be used.
    """
    identity = identity_of(path)
    with translated(path):
        try:
            return Opened(_connect(path, "mode=rw"), identity)
        except sqlite3.OperationalError:
            if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
                if can_have_log(path):
                    raise
                _leave_log(path)
                return Opened(_connect(path, "mode=rw"), identity)
            if _is_log_left(path):
                raise
            # A read-only folder has no room for the index of the log. Then nobody writes to the file, either.
            return Opened(_connect(path, "mode=ro&immutable=1"), identity)


def open_to_write(path: Path) -> Opened:
    """Open a database, and create it if there is none.

    Raises:
        DamagedError, NewerError, OSError: The database cannot be used.
    """
    if not os.path.lexists(path):
        # Only its owner can read it. SQLite would let others read it.
        make_state_dir(path.parent)
        with suppress(FileExistsError):
            os.close(open_stored(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    identity = identity_of(path)
    with translated(path):
        with_log = can_have_log(path)
        if not with_log:
            _leave_log(path)
        connection = _connect(path, "mode=rw", check=False)
        try:
            _make_schema(connection)
            _check_header(connection, path)
            if with_log:
                with suppress(sqlite3.OperationalError):  # A busy file keeps the mode that it has.
                    connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except BaseException:
            connection.close()
            raise
    return Opened(connection, identity)


def open_in_memory(path: Path, source: Opened | None = None) -> Opened:
    """Return a database in memory that replaces the one at `path`: a copy of `source`, or an empty one."""
    with translated(path):
        connection = _connect(path, "mode=memory", check=False)
        if source is not None:
            source.connection.backup(connection)
        _make_schema(connection)
    return Opened(connection, (0, 0))


def _connect(path: Path, options: str, *, check: bool = True) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        message = f"SQLite {sqlite3.sqlite_version} is too old: agent-workbench needs {oldest} or newer"
        raise OSError(errno.ENOSYS, message, str(path))
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    connection = sqlite3.connect(uri, _WAIT, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        if connection.execute("PRAGMA trusted_schema").fetchone() != (0,):
            raise OSError(errno.ENOSYS, "SQLite does not refuse unsafe functions in the schema", str(path))
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA secure_delete=FAST")  # What was deleted is overwritten where that costs nothing.
        connection.execute("PRAGMA temp_store=MEMORY")
        if check:
            _check_header(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    """Raise an error unless this version of the workbench can use the database."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID and version == VERSION:
        return
    if application == APPLICATION_ID and version > VERSION:
        raise NewerError(
            errno.EPERM, f"a later version of agent-workbench made it (schema {version}, not {VERSION})", str(path)
        )
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise FileNotFoundError(errno.ENOENT, "it is empty", str(path))
    raise DamagedError(errno.EIO, "it is not a database of agent-workbench", str(path))


def _make_schema(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty file. Another process may do so at the same time."""
    if connection.execute("PRAGMA schema_version").fetchone() != (0,):
        return
    connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA schema_version").fetchone() == (0,):
        for statement in (*TABLES.values(), *INDEXES):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def can_have_log(path: Path) -> bool:
    """Return whether a database can have a write-ahead log, for which all its users must share memory."""
    if is_on_network(path):
        return False
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.truncate(1)
            try:
                mmap.mmap(file.fileno(), 1).close()
            except OSError:
                return False
    except OSError:
        return True  # The folder is read-only or full, so no file with a log can be made.
    return True


def _leave_log(path: Path) -> None:
    """Replace the write-ahead log of a database by SQLite's rollback journal, unless another program has it open."""
    with suppress(sqlite3.OperationalError), closing(_connect(path, "mode=rw", check=False)) as connection:
        connection.execute("PRAGMA busy_timeout=1000")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")  # Without it, SQLite needs memory that is shared.
        connection.execute("PRAGMA journal_mode=DELETE").fetchone()


def _is_log_left(path: Path) -> bool:
    """Return whether a killed program left changes in the log. Opening the file as immutable would miss them."""
    with suppress(OSError):
        return path.with_name(path.name + BESIDE[0]).lstat().st_size > 0
    return False


def is_on_network(path: Path) -> bool:
    """Return whether the system reports that a file is on a network file system."""
    return file_system_of(str(path), mounted()) in _NETWORK
