"""The folders in which bundles are unpacked. Each belongs to one host process at a time.

Agents may write next to their sources, so files are copies, and no two processes share a root. The next process that
takes a root makes it equal to its bundle again: it writes only what differs, and removes what agents left behind. A
file counts as unchanged if its status is the one that was recorded after it was written.
"""

import contextlib
import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from workbench.places.host.cache import Cache, Lock, mark_used, remove_all
from workbench.places.host.contents import Contents
from workbench.places.host.manifest import LINK, PROGRAM, Entry, ManifestError, encoded, folders_of, leads_out

_MOST_ROOTS = 1000
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_BYTE_CODE = "__pycache__"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_Status: TypeAlias = tuple[int, int, int, int]
_Index: TypeAlias = dict[str, tuple[str, int, _Status]]
"""Path → digest, mode and recorded status."""


class Root:
    """A root that this process holds. `files` is where the bundle is unpacked, `folder` has what belongs to it."""

    def __init__(self, folder: Path, lock: Lock) -> None:
        self.folder, self._lock = folder, lock
        self.files = folder / "files"
        self._index = folder / "index.json"

    def unpack(self, entries: Sequence[Entry], contents: Contents) -> int:
        """Make the files equal to a manifest, and return how many were written.

        If it is interrupted, the next call repairs the rest.

        Raises:
            ManifestError: a link leads out of the root.
            DamagedContentError: a content is not stored any more.
            OSError: something cannot be written, for example because the disk is full.
        """
        links = _targets(entries, contents)
        self.files.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark_used(self.folder / "used")
        before = self._recorded()
        wanted = {entry.path: entry for entry in entries}
        folders = folders_of(wanted)
        base = os.fsencode(self.files)
        unchanged = _clear(base, wanted, {encoded(folder) for folder in folders}, before)
        for folder in sorted(folders):
            with contextlib.suppress(FileExistsError):
                os.mkdir(base + b"/" + encoded(folder), 0o777)  # noqa: PTH102
        missing = [entry for entry in entries if entry.path not in unchanged]
        _forget_byte_code(self.files, missing, folders)
        status = {**unchanged, **{entry.path: _write(base, entry, links, contents) for entry in missing}}
        if missing or status.keys() != before.keys():
            self._record({entry.path: (entry.sha256, entry.mode, status[entry.path]) for entry in entries})
        return len(missing)

    def release(self) -> None:
        """Let other processes use the root."""
        with contextlib.suppress(OSError):
            mark_used(self.folder / "used")
        self._lock.release()

    def _recorded(self) -> _Index:
        try:
            rows = json.loads(self._index.read_bytes())
            return {path: (digest, mode, _status_of(status)) for path, digest, mode, status in rows}
        except (OSError, ValueError, TypeError):
            return {}

    def _record(self, index: _Index) -> None:
        draft = self._index.with_suffix(".tmp")
        draft.write_text(json.dumps([[path, *row] for path, row in index.items()]), "ascii")
        draft.replace(self._index)


def take_root(cache: Cache, project: str, entries: Sequence[Entry], contents: Contents) -> Root:
    """Return an unpacked root that no other process uses.

    `project` is the name of the project on the user's machine. The root that it used before is preferred.

    Raises:
        ManifestError, DamagedContentError, OSError: as in `Root.unpack`.
    """
    if not _SAFE.fullmatch(project) or project.startswith("."):
        raise ManifestError(f"{project[:200]!r} cannot be the name of a project")
    problem: OSError | None = None
    for number in range(_MOST_ROOTS):
        lock = cache.lock("root", f"{project}.{number}")
        root = Root(cache.roots / f"{project}.{number}", lock)
        try:
            if not lock.take():
                lock.release()
                continue
            root.unpack(entries, contents)
            return root
        except PermissionError as error:  # What an agent left there cannot be removed.
            lock.release()
            problem = error
        except BaseException:
            lock.release()
            raise
    raise problem or OSError(errno.EBUSY, "all roots of the project are in use", str(cache.roots))


def _targets(entries: Sequence[Entry], contents: Contents) -> Mapping[str, str]:
    links = {
        entry.path: contents.text(entry.sha256).decode("utf-8", "surrogateescape")
        for entry in entries
        if entry.mode == LINK
    }
    for path, target in links.items():
        if not target or "\0" in target or leads_out(path, links):
            raise ManifestError(f"the link {path!r} leads out of the bundle")
    return links


def _clear(base: bytes, wanted: Mapping[str, Entry], folders: set[bytes], before: _Index) -> dict[str, _Status]:
    """Remove what is not in the manifest, and return the status of the files that are and did not change."""
    unchanged: dict[str, _Status] = {}
    waiting = [b""]
    while waiting:
        above = waiting.pop()
        os.chmod(base + b"/" + above, 0o700)  # noqa: PTH101 - an agent may have made it read-only
        with os.scandir(base + b"/" + above) as found:
            for item in found:
                name = above + item.name
                path = name.decode("utf-8", "surrogateescape")
                if item.is_dir(follow_symlinks=False):
                    if name in folders:
                        waiting.append(name + b"/")
                        continue
                    if item.name == _BYTE_CODE.encode():
                        continue
                else:
                    entry, known = wanted.get(path), before.get(path)
                    status = _status(item.stat(follow_symlinks=False))
                    if entry is not None and known == (entry.sha256, entry.mode, status):
                        unchanged[path] = status
                        continue
                remove_all(Path(os.fsdecode(item.path)))
    return unchanged


def _write(base: bytes, entry: Entry, links: Mapping[str, str], contents: Contents) -> _Status:
    path = base + b"/" + encoded(entry.path)
    if entry.mode == LINK:
        os.symlink(encoded(links[entry.path]), path)  # noqa: PTH211
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o777 if entry.mode == PROGRAM else 0o666), "wb") as out:
            contents.copy(entry.sha256, out)
    return _status(os.lstat(path))


def _forget_byte_code(files: Path, missing: Sequence[Entry], folders: set[str]) -> None:
    """Delete the byte-code of modules that will be written. Python compares only size and second with the source's."""
    for above in {entry.path.rpartition("/")[0] for entry in missing if entry.path.endswith(".py")}:
        name = f"{above}/{_BYTE_CODE}" if above else _BYTE_CODE
        if name not in folders:
            remove_all(files / os.fsdecode(encoded(name)))


def _status(found: os.stat_result) -> _Status:
    """Return what changes whenever a file is written, even if its time is set back."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _status_of(row: Sequence[int]) -> _Status:
    size, modified, changed, inode = row
    return size, modified, changed, inode


def is_full(error: OSError) -> bool:
    """Return whether there is no space left, or the user may not use more."""
    return error.errno in _FULL
