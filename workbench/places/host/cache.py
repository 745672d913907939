"""The folder for what this machine keeps for later runs: files and roots of projects, environments, drivers.

Several host processes of one user may use it at the same time, even on machines that share a home.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

UNUSED_SECONDS = 14 * 86_400.0
"""What nobody used for this long is deleted."""
_DAY = 86_400.0


class Lock:
    """A lock between processes, which ends with the process that holds it.

    Locks have files of their own that are never deleted, so that two processes cannot lock different files of one name.
    """

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, *, shared: bool = False) -> bool:
        """Return whether the lock could be taken now. A lock that is held is changed to the other kind."""
        try:
            fcntl.flock(self.descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock. It cannot be taken again."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Cache:
    """The folders of the cache. They are made on first use, for their owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents = folder / "contents"
        self.roots = folder / "roots"
        self.environments = folder / "environments"

    def make(self) -> None:
        """Make the folders.

        Raises:
            OSError: they cannot be made, or belong to another user.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A link of another user could lead elsewhere at any time, although its target belongs to this user now.
        if {self.folder.lstat().st_uid, self.folder.stat().st_uid} != {os.geteuid()}:
            why = "it belongs to another user: set XDG_CACHE_HOME to another folder"
            raise PermissionError(errno.EPERM, why, str(self.folder))
        self.folder.chmod(0o700)  # It may be older than this program.
        for folder in (self.contents, self.roots, self.environments):
            folder.mkdir(mode=0o700, exist_ok=True)

    def lock(self, kind: str, name: str) -> Lock:
        """Return the lock of a root or an environment, which is not taken yet."""
        return Lock(self.folder / "locks" / f"{kind}-{name}")

    def clean(self, now: float | None = None) -> None:
        """Delete what nobody used for two weeks, at most once a day. Failures are ignored."""
        now = time.time() if now is None else now
        stamp = self.folder / "cleaned"
        with contextlib.suppress(OSError):
            if stamp.exists() and now - stamp.stat().st_mtime < _DAY:
                return
            mark_used(stamp, now)
            for file in _files_in(self.contents):
                with contextlib.suppress(OSError):
                    if now - os.lstat(file).st_mtime > UNUSED_SECONDS:
                        os.unlink(file)  # noqa: PTH108
            for kind, folder in (("root", self.roots), ("environment", self.environments)):
                for path in list(folder.iterdir()):
                    self._delete_unused(kind, path, now)

    def _delete_unused(self, kind: str, path: Path, now: float) -> None:
        with contextlib.suppress(OSError):
            if now - last_used(path) <= UNUSED_SECONDS:
                return
            lock = self.lock(kind, path.name)
            try:
                # Somebody may have used it while this process waited for the disk.
                if lock.take() and now - last_used(path) > UNUSED_SECONDS:
                    remove_all(path)
            finally:
                lock.release()


def cache_folder() -> Path:
    """Return the folder, which may not exist: `agent-workbench` in `$XDG_CACHE_HOME` or `~/.cache`.

    A user without a home folder that can be written gets one among the temporary files.
    """
    stated = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(stated):  # noqa: PTH117 - relative ones do not count
        return Path(stated) / "agent-workbench"
    with contextlib.suppress(RuntimeError):
        home = Path.home()
        if os.access(home, os.W_OK | os.X_OK):
            return home / ".cache" / "agent-workbench"
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"agent-workbench-{os.getuid()}"


def mark_used(file: Path, now: float | None = None) -> None:
    """Make `file`, or set its time to now. The time says when its folder was last used."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(0o600)
    if now is not None:
        os.utime(file, (now, now))


def last_used(folder: Path) -> float:
    """Return when a root or environment was last used, in seconds of the epoch."""
    mark = folder / "used"
    return (mark if mark.exists() else folder).stat().st_mtime


def remove_all(path: Path) -> None:
    """Remove a file, link or folder, also folders that were made unreadable.

    Raises:
        OSError: something cannot be removed.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return

    try:
        shutil.rmtree(path)
    except PermissionError:
        path.chmod(0o700)
        for above, folders, _ in os.walk(path):
            for name in folders:
                with contextlib.suppress(OSError):
                    if not (folder := Path(above, name)).is_symlink():
                        folder.chmod(0o700)
        shutil.rmtree(path)


def _files_in(folder: Path) -> Iterator[str]:
    for above, _, names in os.walk(folder):
        yield from (f"{above}/{name}" for name in names)
