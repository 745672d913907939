"""Detection of file changes: by events of the system, or by polling if there are none."""

import asyncio
import errno
import os
import re
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Effort:
    """A compromise between noticing changes soon and using little processor time.

    Times are in milliseconds. A batch ends after `step` without a change, at most after `debounce`. `tick` is the time
    between two empty results, which let the caller check its state. Polled folders are read every `interval`, and less
    often if that takes more than this `share` of a processor.
    """

    step: int = 5
    debounce: int = 100
    tick: int = 3000
    interval: int = 300
    share: float = 0.1


PROMPT = Effort()
"""The effort of a watch, which reruns cases as soon as a file is saved."""
CALM = Effort(step=300, debounce=900, tick=10_000, interval=2000, share=0.003)
"""The effort of a screen, which is idle most of the time."""
_HELD_UP = 2.0
_LOST_FROM = 2000
"""Number of files at once above which events may be lost: the system keeps 16,384 events, about five for each file."""


class NoEventsError(Exception):
    """A failure of the system's events. The text says why, and how to fix it."""


async def native_changes(
    folders: Collection[Path], stop: asyncio.Event, armed: asyncio.Event, effort: Effort = PROMPT
) -> AsyncIterator[tuple[set[Path], bool]]:
    """Yield changed paths directly in the folders, regularly also none, until `stop`.

    True means that some changes may be missing, because this process was stopped or there were too many changes.

    Raises:
        NoEventsError: the system cannot report changes.
        FileNotFoundError: a folder was just deleted.
    """
    from watchfiles import awatch

    watching = awatch(
        *folders,
        # No filter, because any event shows that this process is not stopped.
        watch_filter=None,
        debounce=effort.debounce,
        step=effort.step,
        stop_event=stop,
        rust_timeout=effort.tick,
        yield_on_timeout=True,
        recursive=False,
        # We poll ourselves if it is requested or necessary.
        force_polling=False,
        # True would also hide the end of the system's watches.
        ignore_permission_denied=False,
    )
    armed.set()
    checked = monotonic()
    try:
        async for changes in watching:
            was_stopped = monotonic() - checked > effort.tick / 1000 + _HELD_UP
            yield {Path(path) for _, path in changes}, was_stopped or len(changes) >= _LOST_FROM
            checked = monotonic()
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:  # `watchfiles` raises RuntimeError for unknown errors.
        raise NoEventsError(_why(error)) from error


def _why(error: Exception) -> str:
    text = str(error)
    if "watch limit" in text:
        return "the system has no free file watches (allow more: sysctl fs.inotify.max_user_watches=524288)"
    if os.strerror(errno.EMFILE) in text:
        return "too many programs watch files (allow more: sysctl fs.inotify.max_user_instances=512)"
    return f"the system does not report changes: {text}"


Listing: TypeAlias = dict[str, tuple[int, int, int]]
"""Path → time in nanoseconds, size, inode."""


def polling_forced() -> bool:
    """Return whether the user requests polling, by the same variable as for `watchfiles`."""
    return os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in ("", "0", "false", "disable", "disabled")


def _timed_scan(folders: Collection[Path]) -> tuple[Listing, float]:
    """Return the entries of the folders, and the seconds of processor time for reading them."""
    began = time.thread_time()
    return scan(folders), time.thread_time() - began


def scan(folders: Collection[Path]) -> Listing:
    """Return the direct entries of the folders."""
    found: Listing = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except OSError:
                        continue  # Deleted since the listing.
                    folder_like = entry.is_dir()
                    found[entry.path] = (
                        (0, 0, status.st_ino) if folder_like else (status.st_mtime_ns, status.st_size, status.st_ino)
                    )
        except OSError:
            found[str(folder)] = (0, 0, 0)
    return found


async def poll(
    folders: Collection[Path], stop: asyncio.Event, before: Listing, effort: Effort = PROMPT
) -> AsyncIterator[set[Path]]:
    """Yield created, deleted and changed paths, regularly also none, until `stop`. `before` is the last scan."""
    while not stop.is_set():
        began = time.monotonic()
        now, spent = await asyncio.to_thread(_timed_scan, folders)
        yield {Path(path) for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        before = now
        # A slow file server is used at most half of the time.
        pause = max(effort.interval / 1000, spent / effort.share, time.monotonic() - began)
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
"""File systems that a virtual machine shares with its host: 9p is also WSL's /mnt, virtiofs also Docker Desktop's."""
_REMOTE = frozenset((*_SERVERS, *_HOSTS))
_LOCAL_FUSE = frozenset(
    ("fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs")
)
"""FUSE file systems on a local disk. All writes go through them, so that the kernel reports the changes."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def remote_kind(folders: Collection[Path], mounts: Path = _MOUNTS) -> str:
    """Return the kind (such as `nfs4`) of the first folder's file system that may not report changes, or ""."""
    found = _mounted(mounts)
    if not any(_is_remote(kind) for kind in found.values()):
        return ""
    for folder in folders:
        kind = _kind_of(os.path.realpath(folder), found)
        if _is_remote(kind):
            return kind
    return ""


def _is_remote(kind: str) -> bool:
    # The name of a FUSE file system usually does not tell whether other machines write to it.
    return kind in _REMOTE or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


def _mounted(mounts: Path) -> dict[str, str]:
    """Return mount point → kind of file system. The last one at a mount point hides the others."""
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
    """Return the kind of the file system at the folder, or at the nearest mount point above it."""
    while folder not in mounted:
        above = os.path.dirname(folder)  # noqa: PTH120 (a string, for each of many folders)
        if above == folder:
            return ""
        folder = above
    return mounted[folder]
