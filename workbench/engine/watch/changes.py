"""Changes of files as they settle: one batch for what belongs together.

Folders are watched one by one, not as trees: `.git`, environments and caches are never looked at, however large. A
batch is complete when nothing more comes for a few milliseconds; it waits longer while a file looks half written,
while git works, or where so many files change that somebody switches a branch.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.walk import STATE_FOLDER
from workbench.engine.watch.listening import NoNoticeError, forced, look, notified, poll, remote_kind
from workbench.engine.watch.unusable import looks_unfinished

_UNFINISHED = 0.15
_MANY = 20
_QUIET = 0.2
_LOCKED = 10.0
_SLEPT = 2.0
_BETWEEN = 0.1
"""Seconds that a new watch is given to begin."""
_IGNORED_FOLDERS = frozenset({".git", STATE_FOLDER, "__pycache__", ".adk", ".mypy_cache", ".ruff_cache", ".venv"})
_IGNORED_SUFFIXES = (".pyc", ".pyo", ".swp", ".swx", ".swo", "~", ".tmp", ".part", ".crdownload")


@dataclass(frozen=True)
class Batch:
    """Files that changed together (absolute paths). `all_files`: nobody knows which, because the machine slept, a
    folder was gone for a while, or more happened at once than the system keeps."""

    paths: frozenset[Path]
    all_files: bool = False


class Changes:
    """`folders` says which folders are to be watched now; it is asked again after each batch. `root` is where the
    project is."""

    def __init__(self, root: Path, folders: Callable[[], Collection[Path]]) -> None:
        self._root = root
        self._folders = folders
        self._queue: asyncio.Queue[Batch] = asyncio.Queue()
        self._watched: frozenset[Path] = frozenset()
        self._stop = asyncio.Event()
        self._again = asyncio.Event()
        self.polling = ""
        """Why folders are looked at again and again; "" while the system tells of changes."""
        self.on_polling: Callable[[], None] = lambda: None
        """Called when `polling` was set."""
        self.gone = False
        """Whether the project's folder is not there: somebody moved or deleted it, or what it was mounted from."""
        self.on_gone: Callable[[], None] = lambda: None
        """Called when `gone` is another one."""
        self.armed = asyncio.Event()
        """Set once changes are seen."""

    def close(self) -> None:
        """Ends `batches`."""
        self._stop.set()

    def look_again(self) -> None:
        """The folders to be watched may be others now."""
        if self._existing() != self._watched:
            self._again.set()

    async def batches(self) -> AsyncIterator[Batch]:
        """The batches, until `close`."""
        pump = asyncio.create_task(self._pump())
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
                self.look_again()
        finally:
            self._stop.set()
            closing.cancel()
            getting.cancel()
            self._again.set()
            await asyncio.gather(pump, closing, getting, return_exceptions=True)

    async def _settled(self, batch: Batch) -> Batch:
        """The batch with what still comes and belongs to it."""
        if any(map(looks_unfinished, batch.paths)):
            batch = await self._more(batch, _UNFINISHED)
        until = time.monotonic() + _LOCKED
        while len(batch.paths) > _MANY or git_works(self._root, _LOCKED):
            size = len(batch.paths)
            batch = await self._more(batch, _QUIET)
            if (len(batch.paths) == size and not git_works(self._root, _LOCKED)) or time.monotonic() > until:
                break
        return batch

    async def _more(self, batch: Batch, seconds: float) -> Batch:
        """Waits for so long without a change."""
        with contextlib.suppress(TimeoutError):
            while True:
                found = await asyncio.wait_for(self._queue.get(), seconds)
                batch = Batch(batch.paths | found.paths, batch.all_files or found.all_files)
        return batch

    def _existing(self) -> frozenset[Path]:
        return frozenset(folder for folder in self._folders() if folder.is_dir() and os.access(folder, os.R_OK))

    async def _pump(self) -> None:
        """Keeps a watch on what there is to watch."""
        lost = False
        while not self._stop.is_set():
            existing = self._existing()
            self._see_root()
            if existing and not self.polling:
                self._poll_for(await asyncio.to_thread(self._why_polling, existing))
            before, self._watched = self._watched, existing
            if not self._watched:
                # Everything is gone: somebody moved or deleted the project. It may come back.
                lost = True
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), 0.5)
                continue
            self._again.clear()
            if self._stop.is_set():  # Which was told by what was just cleared.
                return
            if lost:
                self._queue.put_nowait(Batch(frozenset(), all_files=True))
            elif before != self._watched:
                if before:
                    self._queue.put_nowait(Batch(frozenset(files_in(self._watched - before))))
                self._look_soon()
            lost = False
            try:
                lost = await self._watch()
            except FileNotFoundError:
                await asyncio.sleep(_BETWEEN)
            except NoNoticeError as error:
                self._poll_for(str(error))
                self._look_soon()

    def _look_soon(self) -> None:
        """Look for saves that no watch saw, because it had not begun or the one before had ended."""
        asyncio.get_running_loop().call_later(_BETWEEN, self._queue.put_nowait, Batch(frozenset(), True))

    def _see_root(self) -> None:
        gone = not self._root.is_dir()
        if gone != self.gone:
            self.gone = gone
            self.on_gone()

    def _why_polling(self, folders: Collection[Path]) -> str:
        if forced():
            return "WATCHFILES_FORCE_POLLING is set"
        kind = remote_kind([self._root, *folders])
        return f"on {kind} nobody tells of changes made elsewhere" if kind else ""

    def _poll_for(self, why: str) -> None:
        if why:
            self.polling = why
            self.on_polling()

    async def _watch(self) -> bool:
        """Watch until the folders are others. Return True if some went or came back, with unknown changes."""
        awake = time.time() - time.monotonic()
        async for found, more in self._found():
            # The one clock goes on while the machine sleeps, the other one does not.
            slept = time.time() - time.monotonic() - awake > _SLEPT
            awake = time.time() - time.monotonic()
            paths = frozenset(filter(is_watched, found))
            if slept or more:
                self._queue.put_nowait(Batch(paths, all_files=True))
            elif paths:
                self._queue.put_nowait(Batch(paths))
            gone = any(not folder.is_dir() for folder in self._watched) if (not found or slept or more) else False
            # Folders elsewhere, such as that of the settings, are watched also while the project is gone.
            back = self.gone and self._root.is_dir()
            if gone or back or not self._watched.isdisjoint(paths):
                return True
        return False

    async def _found(self) -> AsyncIterator[tuple[set[Path], bool]]:
        """What changed in the folders, and nothing now and then, until they are to be others; True with what may not be
        all."""
        if not self.polling:
            async for told in notified(self._watched, self._again, self.armed):
                yield told
            return
        looked = await asyncio.to_thread(look, self._watched)
        self.armed.set()
        async for found in poll(self._watched, self._again, looked):
            yield found, False


def is_watched(path: Path) -> bool:
    """Whether anybody could care about this file: no temporary file of an editor, no byte-code, nothing of git's."""
    name = path.name
    if name.endswith(_IGNORED_SUFFIXES) or name.startswith((".#", "#")) or name == "4913":
        return False
    return _IGNORED_FOLDERS.isdisjoint(path.parts)


def files_in(folders: Collection[Path]) -> list[Path]:
    """The files of folders that came: no event told of them."""
    found: list[Path] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [path for path in folder.iterdir() if path.is_file() and is_watched(path)]
    return found


_BETWEEN_STEPS = 0.5
"""Seconds that git needs at most from one commit of a rebase to the next."""
_IN_STEPS = ("rebase-merge", "rebase-apply", "sequencer")


def git_works(root: Path, longest: float) -> bool:
    """Whether git changes the repository that `root` lies in, just now. A lock older than `longest` seconds was left by
    a git that died; a rebase that did nothing for a while waits for its user."""
    folder = _git_folder(root)
    if folder is None:
        return False
    return _age(folder / "index.lock") < longest or any(_age(folder / name) < _BETWEEN_STEPS for name in _IN_STEPS)


def _git_folder(root: Path) -> Path | None:
    place = next((step / ".git" for step in (root, *root.parents) if (step / ".git").exists()), None)
    if place is None or place.is_dir():
        return place
    # A work tree, or a submodule: a file that says where.
    try:
        said = place.read_text(encoding="utf-8", errors="surrogateescape").partition("gitdir:")[2].strip()
    except OSError:
        return None
    return place.parent / said if said else None


def _age(path: Path) -> float:
    try:
        return abs(time.time() - path.stat().st_mtime)
    except (OSError, ValueError):
        return float("inf")
