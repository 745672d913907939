"""Errors of SQLite as errors of the system, which every caller handles already."""

import errno
import sqlite3
from pathlib import Path

_DAMAGED = {7, 11, 18, 20, 24, 26}
"""NOMEM and TOOBIG (a length is wrong), CORRUPT, MISMATCH, FORMAT, NOTADB."""
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
"""Errors of SQLite. Python cannot decode the text of an error that quotes a damaged schema."""


class DamagedError(OSError):
    """The file is not a database, or a part of it cannot be read."""


class NewerError(OSError):
    """A later version of the workbench made the database."""


def as_os_error(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> OSError:
    """Return an error of SQLite as an `OSError` that names the file."""
    if isinstance(error, UnicodeDecodeError):
        return DamagedError(errno.EIO, "the database is damaged", str(path))
    full_code = getattr(error, "sqlite_errorcode", None)
    code = _GENERIC if full_code is None else full_code & 0xFF
    text = str(error)
    if code in _DAMAGED or (code == _GENERIC and any(word in text for word in _LOST_TABLE)):
        return DamagedError(errno.EIO, f"the database is damaged ({text})", str(path))
    number = _CODES.get(code, errno.EIO)
    return OSError(number, _WORDS.get(number, text), str(path))


def is_undecodable(error: sqlite3.Error) -> bool:
    """Return whether a text in the database is not UTF-8, as after a flipped bit."""
    return isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)
