"""How changes of files become known: the system tells of them, or where it cannot, by looking again and again."""

import asyncio
import errno
import os
import re
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from time import monotonic
from typing import TypeAlias

STEP = 5
"""Milliseconds without a change that end a batch: the latency of everything."""
TICK = 3000
"""Milliseconds after which nothing is told, so that somebody looks whether all is as it should be."""
_DEBOUNCE = 100
_HELD_UP = 2.0
_LOST_FROM = 2000
"""Files at once from which some may have been lost: the system keeps 16,384 events, about five for each file."""


class NoNoticeError(Exception):
    """The system cannot tell of changes; the text says why, and the way out."""


async def notified(
    folders: Collection[Path], stop: asyncio.Event, armed: asyncio.Event
) -> AsyncIterator[tuple[set[Path], bool]]:
    """What changed in the folders (not below them), each time something did, and nothing now and then; until `stop`.
    True with it: there may have been more than was told, because this process stood still, or because it was too much.

    Raises:
        NoNoticeError: there is no more to be had from the system.
        FileNotFoundError: a folder went just now.
    """
    from watchfiles import awatch

    watching = awatch(
        *folders,
        # Nothing is filtered here: whatever comes shows that this process does not stand still.
        watch_filter=None,
        debounce=_DEBOUNCE,
        step=STEP,
        stop_event=stop,
        rust_timeout=TICK,
        yield_on_timeout=True,
        recursive=False,
        # Who asked for it, and who needs it, is polled by ourselves.
        force_polling=False,
        # It would pass over the end of the system's watches as well.
        ignore_permission_denied=False,
    )
    armed.set()
    looked = monotonic()
    try:
        async for changes in watching:
            held_up = monotonic() - looked > TICK / 1000 + _HELD_UP
            yield {Path(path) for _, path in changes}, held_up or len(changes) >= _LOST_FROM
            looked = monotonic()
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:  # `watchfiles` has a RuntimeError for whatever it does not know.
        raise NoNoticeError(_why(error)) from error


def _why(error: Exception) -> str:
    said = str(error)
    if "watch limit" in said:
        return "the system has no more file watches to give; more: sysctl fs.inotify.max_user_watches=524288"
    if os.strerror(errno.EMFILE) in said:
        return "the system watches for too many programs already; more: sysctl fs.inotify.max_user_instances=512"
    return f"the system does not tell of changes: {said}"


INTERVAL = 0.3
_SHARE = 0.1
"""Of a processor, at most so much is spent looking."""

Looked: TypeAlias = dict[str, tuple[int, int, int]]
"""Path → time in nanoseconds, size, inode."""


def forced() -> bool:
    """Whether the user asks for polling, as `watchfiles` does it."""
    return os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in ("", "0", "false", "disable", "disabled")


def _look(folders: Collection[Path]) -> tuple[Looked, float]:
    """What is there, and the seconds of a processor that it took to see it."""
    began = time.thread_time()
    return look(folders), time.thread_time() - began


def look(folders: Collection[Path]) -> Looked:
    """What is in these folders, not in those below."""
    found: Looked = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except OSError:
                        continue  # Gone between the two.
                    folder_like = entry.is_dir()
                    found[entry.path] = (
                        (0, 0, status.st_ino) if folder_like else (status.st_mtime_ns, status.st_size, status.st_ino)
                    )
        except OSError:
            found[str(folder)] = (0, 0, 0)
    return found


async def poll(folders: Collection[Path], stop: asyncio.Event, before: Looked) -> AsyncIterator[set[Path]]:
    """The paths that came, went or changed, each time some did, else nothing now and then; until `stop`. `before` is
    what was there when somebody looked last."""
    while not stop.is_set():
        began = time.monotonic()
        now, spent = await asyncio.to_thread(_look, folders)
        yield {Path(path) for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        before = now
        # Where a server is slow to answer, it is not asked more than half of the time.
        pause = max(INTERVAL, spent / _SHARE, time.monotonic() - began)
        try:
            await asyncio.wait_for(stop.wait(), pause)
        except TimeoutError:
            continue


_MOUNTS = Path("/proc/self/mountinfo")
_SERVERS = (
    "nfs",
    "nfs4",
    "cifs",
    "smb2",
    "smb3",
    "smbfs",
    "ncpfs",
    "davfs",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "gpfs",
)
_HOSTS = ("9p", "drvfs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs", "grpcfuse")
"""What a virtual machine shares with its host: 9p is also WSL's /mnt, virtiofs also Docker Desktop's."""
_REMOTE = frozenset((*_SERVERS, *_HOSTS))
_LOCAL_FUSE = frozenset(
    ("fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs")
)
"""Programs that show a disk of this machine, through which everybody goes who writes to it: the kernel knows."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def remote_kind(folders: Collection[Path], mounts: Path = _MOUNTS) -> str:
    """The kind of the file system (`nfs4`) of the first of the folders of whose changes nobody may tell; "" if there is
    none, as far as the system says."""
    found = _mounted(mounts)
    if not any(_is_remote(kind) for kind in found.values()):
        return ""
    for folder in folders:
        kind = _kind_of(os.path.realpath(folder), found)
        if _is_remote(kind):
            return kind
    return ""


def _is_remote(kind: str) -> bool:
    # Who is behind a program's file system, and who else writes there, its name mostly does not tell.
    return kind in _REMOTE or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


def _mounted(mounts: Path) -> dict[str, str]:
    """Where file systems are mounted → their kind; of several at one place the last, which hides the others."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        words = left.split()
        if len(words) >= 5 and right.split():
            found[_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4])] = right.split()[0]
    return found


def _kind_of(folder: str, mounted: dict[str, str]) -> str:
    """The kind of what is mounted at the folder, or nearest above it."""
    while folder not in mounted:
        above = os.path.dirname(folder)  # noqa: PTH120 (a string, for each of many folders)
        if above == folder:
            return ""
        folder = above
    return mounted[folder]
