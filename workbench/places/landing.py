"""The host program's way into a cache folder of another machine, from where it is started.

The text of this module is sent there and executed, so it imports only the standard library (Python 3.11 or later).
"""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

_KEPT_DAYS = 14
"""Programs that were not started for so long are removed."""


class NotLandedError(Exception):
    """The host program cannot be stored on this machine. The message completes "the host program …"."""


def landed(digest: str) -> Path | None:
    """Return the folder with the program of this digest, or None if it is not on this machine."""
    for folder in _shelves():
        if _is_ours(folder) and (folder / digest).is_dir():
            with contextlib.suppress(OSError):
                os.utime(folder / digest)
            return folder / digest
    return None


def land(digest: str, archive: bytes) -> Path:
    """Unpack the program (a zip file) into the cache and return its folder. Several may do so at the same time.

    Raises:
        NotLandedError: it cannot be stored, such as on a full disk.
    """
    reasons = []
    for folder in _shelves():
        try:
            return _unpack(folder, digest, archive)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
    raise NotLandedError(f"cannot be stored here ({'; '.join(reasons)})")


def host_arguments(folder: Path, *options: str) -> list[str]:
    """Return the command that starts the program in `folder` with this interpreter and nothing of its packages."""
    return [sys.executable, "-I", "-S", "-X", "utf8", str(folder), *options]


def become_host(digest: str, token: str) -> None:
    """Replace this process by the host program on standard input and output.

    A line with `token` on standard output says whether the program is here. The answer has its size in 16 hexadecimal
    digits (0: it was not asked for), and the program itself. Nothing else is read.
    """
    folder = landed(digest)
    known = {"here": folder is not None, "python": sys.version.split()[0]}
    os.write(1, f"\n{token} {json.dumps(known)}\n".encode())
    try:
        archive = _read(int(_read(16), 16))
        if folder is None:
            folder = land(digest, archive)
        for stream in (0, 1):
            os.set_blocking(stream, True)
        command = host_arguments(folder, "--stdio")
        os.execv(command[0], command)
    except EOFError:
        sys.exit(1)
    except NotLandedError as error:
        sys.exit(f"agent-workbench: the host program {error}")


def _read(size: int) -> bytes:
    parts = []
    while size:
        data = os.read(0, min(size, 1 << 20))
        if not data:
            raise EOFError
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _shelves() -> list[Path]:
    """Return the folders that may hold programs. The second one is for homes that cannot be written."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(cache) if cache.startswith("/") else Path("~/.cache").expanduser()
    return [
        home / "agent-workbench" / "hosts",
        Path(tempfile.gettempdir(), f"agent-workbench-{os.geteuid()}", "hosts"),
    ]


def _is_ours(folder: Path) -> bool:
    """Return whether nobody else can have put something into a folder."""
    try:
        found = [os.lstat(path) for path in (folder, folder.parent)]
    except OSError:
        return False
    return all(item.st_uid == os.geteuid() and not item.st_mode & 0o022 for item in found)


def _unpack(shelf: Path, digest: str, archive: bytes) -> Path:
    for folder in (shelf.parent, shelf):
        folder.mkdir(parents=True, exist_ok=True)
        if os.lstat(folder).st_uid == os.geteuid():
            folder.chmod(0o700)
    if not _is_ours(shelf):
        raise PermissionError(f"{shelf} belongs to another user")
    _remove_old(shelf)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=shelf))
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            packed.extractall(draft)
        try:
            draft.rename(shelf / digest)
        except OSError:
            if not (shelf / digest).is_dir():  # Else, somebody else was faster.
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return shelf / digest


def _remove_old(shelf: Path) -> None:
    oldest = time.time() - _KEPT_DAYS * 86400
    for folder in shelf.iterdir():
        if folder.lstat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)
