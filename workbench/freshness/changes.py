"""Batches of file changes that belong together.

Folders are watched one by one, not as trees, so that `.git`, environments and caches are never read. A batch is
complete after a few milliseconds without a change. It takes longer while a file looks half written, while git works, or
while many files change, as in a branch switch.

The contents of watched files by hash, and the links to them, show whether a file really changed, also behind a link,
and what it contained when a verdict was made.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from workbench.files.file_access import content_hash, read_regular
from workbench.files.state_folder import STATE_FOLDER
from workbench.freshness.file_events import (
    PROMPT,
    Effort,
    NoEventsError,
    native_changes,
    poll,
    polling_forced,
    remote_kind,
    scan,
)
from workbench.freshness.rereading import looks_unfinished
from workbench.store.digests import LOG

_UNFINISHED = 0.15
_MANY = 20
_QUIET = 0.2
_LOCKED = 10.0
_SLEPT = 2.0
_BETWEEN = 0.1
"""Seconds in which a new watch starts."""
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
        wanted: "Callable[[Path], bool] | None" = None,
    ) -> None:
        self._root = root
        self._folders = folders
        self._effort = effort
        self._wanted = wanted or is_watched
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
        """Set once changes are noticed."""

    def close(self) -> None:
        """End `batches`."""
        self._stop.set()

    def refresh_folders(self) -> None:
        """Watch the current folders, if they have changed."""
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
        if any(map(looks_unfinished, batch.paths)):
            batch = await self._collect(batch, _UNFINISHED)
        until = time.monotonic() + _LOCKED
        while len(batch.paths) > _MANY or git_works(self._root, _LOCKED):
            size = len(batch.paths)
            batch = await self._collect(batch, _QUIET)
            if (len(batch.paths) == size and not git_works(self._root, _LOCKED)) or time.monotonic() > until:
                break
        return batch

    async def _collect(self, batch: Batch, seconds: float) -> Batch:
        """Collect more changes until none arrives for `seconds`."""
        with contextlib.suppress(TimeoutError):
            while True:
                found = await asyncio.wait_for(self._queue.get(), seconds)
                batch = Batch(batch.paths | found.paths, batch.all_files or found.all_files)
        return batch

    def _existing(self) -> frozenset[Path]:
        return frozenset(folder for folder in self._folders() if folder.is_dir() and os.access(folder, os.R_OK))

    async def _watch_folders(self) -> None:
        """Watch the current folders until `close`."""
        lost = False
        while not self._stop.is_set():
            existing = self._existing()
            self._check_root()
            if existing and not self.polling:
                self._poll_for(await asyncio.to_thread(self._why_polling, existing))
            before, self._watched = self._watched, existing
            if not self._watched:
                # All folders are gone because the project was moved or deleted. It may come back.
                lost = True
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), 0.5)
                continue
            self._folders_changed.clear()
            if self._stop.is_set():  # `close` sets the event that was just cleared.
                return
            if lost:
                self._queue.put_nowait(Batch(frozenset(), all_files=True))
            elif before != self._watched:
                if before:
                    self._queue.put_nowait(Batch(frozenset(files_in(self._watched - before))))
                self._rescan_soon()
            lost = False
            try:
                lost = await self._watch()
            except FileNotFoundError:
                await asyncio.sleep(_BETWEEN)
            except NoEventsError as error:
                self._poll_for(str(error))
                self._rescan_soon()

    def _rescan_soon(self) -> None:
        """Rescan for saves missed between watches."""
        asyncio.get_running_loop().call_later(_BETWEEN, self._queue.put_nowait, Batch(frozenset(), True))

    def _check_root(self) -> None:
        gone = not self._root.is_dir()
        if gone != self.gone:
            self.gone = gone
            self.on_gone()

    def _why_polling(self, folders: Collection[Path]) -> str:
        if polling_forced():
            return "WATCHFILES_FORCE_POLLING is set"
        kind = remote_kind([self._root, *folders])
        return f"{kind} does not report changes made by other machines" if kind else ""

    def _poll_for(self, why: str) -> None:
        if why:
            self.polling = why
            self.on_polling()

    async def _watch(self) -> bool:
        """Watch until the folders change. Return True if one was deleted or came back, with unknown changes."""
        awake = time.time() - time.monotonic()
        async for found, more in self._found():
            # Only the wall clock runs while the machine sleeps.
            slept = time.time() - time.monotonic() - awake > _SLEPT
            awake = time.time() - time.monotonic()
            paths = frozenset(filter(self._wanted, found))
            if slept or more:
                self._queue.put_nowait(Batch(paths, all_files=True))
            elif paths:
                self._queue.put_nowait(Batch(paths))
            gone = any(not folder.is_dir() for folder in self._watched) if (not found or slept or more) else False
            # Folders elsewhere, such as that of the settings, are also watched while the project is gone.
            back = self.gone and self._root.is_dir()
            if gone or back or not self._watched.isdisjoint(paths):
                return True
        return False

    async def _found(self) -> AsyncIterator[tuple[set[Path], bool]]:
        """Yield changed paths, regularly also none, until the folders change.

        True means that some changes may be missing.
        """
        if not self.polling:
            async for found, may_miss in native_changes(self._watched, self._folders_changed, self.armed, self._effort):
                yield found, may_miss
            return
        before = await asyncio.to_thread(scan, self._watched)
        self.armed.set()
        async for found in poll(self._watched, self._folders_changed, before, self._effort):
            yield found, False


def is_watched(path: Path) -> bool:
    """Return whether a file is relevant: no temporary file of an editor, no byte-code, no file of git."""
    name = path.name
    if name.endswith(_IGNORED_SUFFIXES) or name.startswith((".#", "#")) or name == "4913":
        return False
    return _IGNORED_FOLDERS.isdisjoint(path.parts)


def files_in(folders: Collection[Path]) -> list[Path]:
    """Return the files of new folders, for which there are no events."""
    found: list[Path] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [path for path in folder.iterdir() if path.is_file() and is_watched(path)]
    return found


_BETWEEN_STEPS = 0.5
"""Limit of seconds between two commits of a rebase."""
_IN_STEPS = ("rebase-merge", "rebase-apply", "sequencer")


def git_works(root: Path, longest: float) -> bool:
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


_KEPT_FILE = 1 << 20
_KEPT_ALL = 64 << 20
ABSENT = ""

Moment = Mapping[Path, str]
"""The state of all files at one moment: path → hash, or `ABSENT` for a missing file."""


class Contents:
    """The hashes and contents of files.

    Contents up to a megabyte are kept, so that two moments can be compared. In total, the newest 64 megabytes are kept.
    """

    def __init__(self) -> None:
        self._hashes: dict[Path, str] = {}
        self._kept: dict[str, bytes] = {}
        self._size = 0
        self._moment: Moment | None = None

    def take(self, paths: Iterable[Path]) -> set[Path]:
        """Read files and return those that changed since they were last read. A new file counts as changed."""
        changed = set()
        for path in paths:
            now = self._read(path)
            if now == ABSENT and path not in self._hashes:
                continue  # A temporary file of an editor, which is gone already.
            if now is not None and self._hashes.get(path) != now:
                self._hashes[path] = now
                self._moment = None
                changed.add(path)
        return changed

    def known(self) -> set[Path]:
        """Return all files that were read."""
        return set(self._hashes)

    def hash(self, path: Path) -> str | None:
        """Return the hash of a file when it was last read, or None if it never was."""
        return self._hashes.get(path)

    @property
    def moment(self) -> Moment:
        """The current state of the files."""
        if self._moment is None:
            self._moment = MappingProxyType(dict(self._hashes))
        return self._moment

    def text(self, digest: str) -> str | None:
        """Return the text with a hash: "" for a missing file, None if it is not kept or not text."""
        if digest == ABSENT:
            return ""
        content = self._kept.get(digest)
        if content is None or b"\0" in content:
            return None
        return content.decode("utf-8", "replace")

    def _read(self, path: Path) -> str | None:
        """Return the hash of a file, or None if the path is not a file."""
        try:
            content = read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError:
            return None
        if not content and path.name.endswith(LOG):
            return ABSENT
        digest = content_hash(content)
        if len(content) <= _KEPT_FILE and digest not in self._kept:
            self._kept[digest] = content
            self._size += len(content)
            while self._size > _KEPT_ALL:
                self._size -= len(self._kept.pop(next(iter(self._kept))))
        return digest


class Links:
    """The files behind links (linked files, and files in linked folders), and the paths that lead to them."""

    def __init__(self) -> None:
        self._names: dict[Path, set[Path]] = {}
        self._real: dict[Path, Path] = {}

    def take(self, paths: Iterable[Path]) -> None:
        """Resolve these paths again."""
        folders: dict[Path, str] = {}
        for path in paths:
            if path in self._real:
                self._names[self._real.pop(path)].discard(path)
            if path.parent not in folders:
                folders[path.parent] = os.path.realpath(path.parent)
            real = Path(os.path.realpath(path)) if path.is_symlink() else Path(folders[path.parent], path.name)
            if real != path:
                self._real[path] = real
                self._names.setdefault(real, set()).add(path)

    def names(self, paths: Iterable[Path]) -> set[Path]:
        """Return the other paths of these files."""
        return {name for path in paths for name in self._names.get(path, ())}

    def folders(self) -> set[Path]:
        """Return the folders of the linked files."""
        return {real.parent for real, names in self._names.items() if names}


def without_twins(folders: Iterable[Path], others: Iterable[Path]) -> frozenset[Path]:
    """Return `folders` and those of `others` that are not the same folder under another path.

    The system reports changes of a folder under only one of its paths.
    """
    others = sorted(others)
    if not others:
        return frozenset(folders)
    found = {os.path.realpath(folder): folder for folder in folders}
    for folder in others:
        found.setdefault(os.path.realpath(folder), folder)
    return frozenset(found.values())
