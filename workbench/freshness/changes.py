"""Batches of file changes that belong together.

Folders are watched one by one, not as trees, so that `.git`, environments and caches are never read. A batch is
complete after a short time without a change. It takes longer while a file looks half written, while git works, or while
many files change, as in a branch switch.
"""

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from workbench.files.file_access import MOUNTS, file_system_of, mounted
from workbench.files.folders import STATE_FOLDER
from workbench.freshness.rereading import looks_unfinished


@dataclass(frozen=True, slots=True)
class Effort:
    """A choice between noticing changes soon and using little processor time. Times are in milliseconds.

    If the system reports changes, they are collected until none comes for `step`, but at most for `debounce`. Without
    changes, the caller is woken every `tick` for its checks. Polled folders are read every `interval`, and less often
    if the reading takes more than `share` (0 to 1) of a processor.
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
    """The operating system cannot report file changes. The text says why, and how to fix that."""


async def native_changes(
    folders: Collection[Path], stop: asyncio.Event, armed: asyncio.Event, effort: Effort = PROMPT
) -> AsyncIterator[tuple[set[Path], bool]]:
    """Yield sets of changed direct entries of the folders until `stop`. Without changes, yield empty sets regularly.

    `armed` is set as soon as the watch starts. Each set comes with a flag. It is True if some changes may be missing,
    because this process was stopped or there were too many changes.

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
        return "the system has no free file watches (to allow more: sysctl fs.inotify.max_user_watches=524288)"
    if os.strerror(errno.EMFILE) in text:
        return "too many programs watch files (to allow more: sysctl fs.inotify.max_user_instances=512)"
    return f"the system does not report changes: {text}"


_FORCED = "WATCHFILES_FORCE_POLLING"
Listing: TypeAlias = dict[str, tuple[int, int, int]]
"""Path → time of change in nanoseconds, size, inode. Time and size of a folder are 0."""


def _timed_scan(folders: Collection[Path]) -> tuple[Listing, float]:
    began = time.thread_time()
    return scan(folders), time.thread_time() - began


def scan(folders: Collection[Path]) -> Listing:
    """Return the direct entries of the folders. An unreadable folder is itself an entry, with zeros."""
    found: Listing = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except OSError:
                        continue  # Deleted since the listing.
                    time_and_size = (0, 0) if entry.is_dir() else (status.st_mtime_ns, status.st_size)
                    found[entry.path] = (*time_and_size, status.st_ino)
        except OSError:
            found[str(folder)] = (0, 0, 0)
    return found


async def poll(
    folders: Collection[Path], stop: asyncio.Event, before: Listing, effort: Effort = PROMPT
) -> AsyncIterator[set[Path]]:
    """Yield sets of created, deleted and changed paths until `stop`. Without changes, yield empty sets regularly.

    Paths are direct entries of the folders. `before` is the last scan.
    """
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


_SERVERS = ("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "davfs", "afs", "ceph")
_HOSTS = ("9p", "drvfs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs", "grpcfuse")
"""File systems that a virtual machine shares with its host: 9p is also WSL's /mnt, virtiofs also Docker Desktop's."""
_REMOTE = frozenset((*_SERVERS, "glusterfs", "lustre", "gpfs", *_HOSTS))
_LOCAL_FUSE = ("fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs")
"""FUSE file systems on a local disk. All writes go through them, so that the kernel reports the changes."""


def remote_kind(folders: Collection[Path], mounts: Path = MOUNTS) -> str:
    """Return the file system (such as `nfs4`) of the first folder whose file system may miss changes, or ""."""
    found = mounted(mounts)
    if not any(_is_remote(kind) for kind in found.values()):
        return ""
    for folder in folders:
        kind = file_system_of(os.path.realpath(folder), found)
        if _is_remote(kind):
            return kind
    return ""


def _is_remote(kind: str) -> bool:
    # The name of a FUSE file system usually does not tell whether other machines write to it.
    return kind in _REMOTE or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


_UNFINISHED = 0.15
_MANY = 20
_QUIET = 0.2
_LOCKED = 10.0
_SLEPT = 2.0
_RETURNS = 0.5
"""Seconds between two checks whether a project whose folders are all gone exists again."""
_BETWEEN = 0.1
"""Maximum number of seconds that the start of a new watch takes."""
_IGNORED_FOLDERS = frozenset({".git", STATE_FOLDER, "__pycache__", ".adk", ".mypy_cache", ".ruff_cache", ".venv"})
_IGNORED_SUFFIXES = (".pyc", ".pyo", ".swp", ".swx", ".swo", "~", ".tmp", ".part", ".crdownload")


@dataclass(frozen=True)
class Batch:
    """Files that changed together, as absolute paths.

    `all_files` means that any file may have changed, because the machine slept, a folder was gone for a while, or the
    system lost events.
    """

    paths: frozenset[Path]
    all_files: bool = False


def is_watched(path: Path) -> bool:
    """Return whether changes of a file are reported. Temporary files, byte-code, caches and git's files are not."""
    name = path.name
    if name.endswith(_IGNORED_SUFFIXES) or name.startswith((".#", "#")) or name == "4913":
        return False
    return _IGNORED_FOLDERS.isdisjoint(path.parts)


class Changes:
    """The file changes in a project.

    `folders` returns the folders to watch. It is called again after each batch. `root` is the folder of the project.
    `wanted` returns whether a changed path is relevant.
    """

    def __init__(
        self,
        root: Path,
        folders: Callable[[], Collection[Path]],
        effort: Effort = PROMPT,
        wanted: Callable[[Path], bool] = is_watched,
    ) -> None:
        self._root, self._folders, self._effort, self._wanted = root, folders, effort, wanted
        self._queue: asyncio.Queue[Batch] = asyncio.Queue()
        self._watched: frozenset[Path] = frozenset()
        self._stop = asyncio.Event()
        self._folders_changed = asyncio.Event()
        self.polling = ""
        """The reason why folders are polled, or "" while the system reports changes."""
        self.on_polling: Callable[[], None] = lambda: None
        """Called when `polling` was set."""
        self.gone = False
        """Whether the project's folder is missing: moved, deleted or unmounted."""
        self.on_gone: Callable[[], None] = lambda: None
        """Called when `gone` changes."""
        self.armed = asyncio.Event()
        """Set as soon as changes are noticed."""

    def close(self) -> None:
        """End `batches`."""
        self._stop.set()

    def refresh_folders(self) -> None:
        """Watch the current folders if they differ from the watched ones."""
        if self._existing() != self._watched:
            self._folders_changed.set()

    async def batches(self) -> AsyncIterator[Batch]:
        """Yield batches until `close`."""
        pump = asyncio.create_task(self._watch_folders())
        closing = asyncio.create_task(self._stop.wait())
        getting = asyncio.create_task(self._queue.get())
        try:
            while not self._stop.is_set():
                await asyncio.wait([getting, closing, pump], return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    if pump.done():
                        pump.result()
                    return
                batch = await self._settled(getting.result())
                getting = asyncio.create_task(self._queue.get())
                if batch.paths or batch.all_files:
                    yield batch
                self.refresh_folders()
        finally:
            self._stop.set()
            closing.cancel()
            getting.cancel()
            self._folders_changed.set()
            await asyncio.gather(pump, closing, getting, return_exceptions=True)

    async def _settled(self, batch: Batch) -> Batch:
        """Return the batch with later changes that belong to it."""
        # Many files are waited for anyway. A few are parsed in a thread, because that can take seconds.
        if len(batch.paths) <= _MANY and await asyncio.to_thread(any, map(looks_unfinished, batch.paths)):
            batch = await self._collect(batch, _UNFINISHED)
        until = time.monotonic() + _LOCKED
        while len(batch.paths) > _MANY or is_git_busy(self._root, _LOCKED):
            size = len(batch.paths)
            batch = await self._collect(batch, _QUIET)
            if (len(batch.paths) == size and not is_git_busy(self._root, _LOCKED)) or time.monotonic() > until:
                break
        return batch

    async def _collect(self, batch: Batch, seconds: float) -> Batch:
        """Add changes to the batch until none arrives for `seconds`."""
        with contextlib.suppress(TimeoutError):
            while True:
                found = await asyncio.wait_for(self._queue.get(), seconds)
                batch = Batch(batch.paths | found.paths, batch.all_files or found.all_files)
        return batch

    def _existing(self) -> frozenset[Path]:
        return frozenset(folder for folder in self._folders() if folder.is_dir() and os.access(folder, os.R_OK))

    async def _watch_folders(self) -> None:
        """Watch the current folders until `close`."""
        may_miss = False
        while not self._stop.is_set():
            existing = self._existing()
            if self.gone == self._root.is_dir():
                self.gone = not self.gone
                self.on_gone()
            if existing and not self.polling:
                self._poll_for(await asyncio.to_thread(self._why_polling, existing))
            before, self._watched = self._watched, existing
            if not self._watched:
                # All folders are gone because the project was moved or deleted. It may come back.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), _RETURNS)
                continue
            self._folders_changed.clear()
            if self._stop.is_set():  # `close` sets the event that was just cleared.
                return
            if may_miss or before != self._watched:
                if before:
                    self._queue.put_nowait(Batch(frozenset(files_in(self._watched - before))))
                self._rescan_soon()
            may_miss = False
            try:
                may_miss = await self._watch()
            except FileNotFoundError:
                await asyncio.sleep(_BETWEEN)
            except NoEventsError as error:
                self._poll_for(str(error))
                self._rescan_soon()

    def _rescan_soon(self) -> None:
        """Rescan for saves missed between watches."""
        asyncio.get_running_loop().call_later(_BETWEEN, self._queue.put_nowait, Batch(frozenset(), True))

    def _why_polling(self, folders: Collection[Path]) -> str:
        # The same variable as for `watchfiles`.
        if os.environ.get(_FORCED, "").lower() not in ("", "0", "false", "disable", "disabled"):
            return f"{_FORCED} is set"
        kind = remote_kind([self._root, *folders])
        return f"{kind} does not report changes made by other machines" if kind else ""

    def _poll_for(self, why: str) -> None:
        if why:
            self.polling = why
            self.on_polling()

    async def _watch(self) -> bool:
        """Queue changes until other folders are to be watched.

        Return True if a folder was deleted or came back, because changes may be missing then.
        """
        awake = time.time() - time.monotonic()
        async for found, may_miss in self._found():
            # Only the wall clock runs while the machine sleeps.
            may_miss = may_miss or time.time() - time.monotonic() - awake > _SLEPT
            awake = time.time() - time.monotonic()
            paths = frozenset(filter(self._wanted, found))
            if may_miss or paths:
                self._queue.put_nowait(Batch(paths, may_miss))
            gone = (may_miss or not found) and not all(folder.is_dir() for folder in self._watched)
            # Folders elsewhere, such as that of the settings, are also watched while the project is gone.
            back = self.gone and self._root.is_dir()
            if gone or back or not self._watched.isdisjoint(paths):
                return True
        return False

    async def _found(self) -> AsyncIterator[tuple[set[Path], bool]]:
        """Yield sets of changed paths until other folders are to be watched.

        Without changes, yield empty sets regularly. Each set comes with a flag, which is True if some changes may be
        missing.
        """
        if not self.polling:
            async for found, may_miss in native_changes(self._watched, self._folders_changed, self.armed, self._effort):
                yield found, may_miss
            return
        before = await asyncio.to_thread(scan, self._watched)
        self.armed.set()
        async for found in poll(self._watched, self._folders_changed, before, self._effort):
            yield found, False


def files_in(folders: Collection[Path]) -> list[Path]:
    """Return the watched files directly in folders. Unreadable folders are left out."""
    found: list[Path] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [path for path in folder.iterdir() if path.is_file() and is_watched(path)]
    return found


_BETWEEN_STEPS = 0.5
"""Maximum number of seconds between two commits of a running rebase."""
_IN_STEPS = ("rebase-merge", "rebase-apply", "sequencer")


def is_git_busy(root: Path, longest: float) -> bool:
    """Return whether git is changing the repository of `root` now.

    A lock older than `longest` seconds was left by a git process that died. A rebase without recent changes waits for
    its user.
    """
    folder = _git_folder(root)
    if folder is None:
        return False
    return _age(folder / "index.lock") < longest or any(_age(folder / name) < _BETWEEN_STEPS for name in _IN_STEPS)


def _git_folder(root: Path) -> Path | None:
    place = next((step / ".git" for step in (root, *root.parents) if (step / ".git").exists()), None)
    if place is None or place.is_dir():
        return place
    # In a work tree or a submodule, `.git` is a file with the path.
    try:
        target = place.read_text(encoding="utf-8", errors="surrogateescape").partition("gitdir:")[2].strip()
    except OSError:
        return None
    return place.parent / target if target else None


def _age(path: Path) -> float:
    try:
        return abs(time.time() - path.stat().st_mtime)
    except (OSError, ValueError):
        return float("inf")
