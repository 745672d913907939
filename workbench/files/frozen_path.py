"""Paths of frozen files: `refunds.evalset.json` → `refunds.evalset.frozen/late_parcel.frozen.json`."""

import errno
import hashlib
import string
from pathlib import Path

from workbench.files.file_access import LARGEST, read_regular
from workbench.files.walk import FROZEN_SUFFIX

FILE_SUFFIX = ".frozen.json"
_PLAIN = frozenset((string.ascii_lowercase + string.digits + "_-.").encode())
_LONGEST = 180
"""Characters of a name without its suffix. File systems allow 255 bytes."""
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in "123456789"))
)
"""Names that Windows reserves, also before a dot."""


def frozen_folder(evalset: Path) -> Path:
    """Return the folder with the recordings of an evalset's cases."""
    return evalset.with_name(evalset.name.removesuffix(".json") + FROZEN_SUFFIX)


def is_in_frozen_folder(path: Path) -> bool:
    """Return whether a path is directly in a folder of recordings."""
    return path.parent.name.endswith(FROZEN_SUFFIX)


def frozen_path(evalset: Path, eval_id: str) -> Path:
    """Return the path of a case's frozen file. Two cases never share it."""
    return frozen_folder(evalset) / frozen_name(eval_id)


def refused_link(path: Path) -> str:
    """Return why a recording is neither read nor written (a link may lead outside of the project), else ""."""
    if path.is_symlink():
        return "it is a link, which is not followed"
    return "its folder is a link, which is not followed" if path.parent.is_symlink() else ""


def read_unlinked(path: Path, limit: int = LARGEST) -> bytes:
    """Return the content of a file in a folder of recordings.

    Raises:
        OSError: the file cannot be read, is larger than `limit` bytes, or is a link or in a linked folder.
    """
    refused = refused_link(path)
    if refused:
        raise OSError(errno.EMLINK, refused, str(path))
    return read_regular(path, limit)


def frozen_name(eval_id: str) -> str:
    """Return the name of a case's frozen file, which ends with `.frozen.json`.

    Lower-case letters, digits, `_`, `-` and `.` stay. All else is percent-encoded as UTF-8. Capital letters are
    encoded, too, because some file systems ignore case. The first character of a hidden or reserved name is also
    encoded. The name for a long or empty ID ends with `~` and a digest.
    """
    raw = eval_id.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    if name.startswith(".") or name.partition(".")[0] in _DEVICES:
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _LONGEST or not name:
        name = f"{name[:_LONGEST]}~{hashlib.blake2b(raw, digest_size=10).hexdigest()}"
    return name + FILE_SUFFIX
