"""Saving and undoing of edits, which are stored as changed bytes of files.

Newer content is never overwritten. All files of an edit are written, or none. Edits of the project's files can be
undone.
"""

import base64
import contextlib
import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.files.file_access import content_hash, delete, read_regular, real_path, replace_content
from workbench.files.folders import STATE_FOLDER
from workbench.files.frozen_path import is_in_frozen_folder
from workbench.store.database.database import Connection, database
from workbench.store.database.values import EditRow, drop_edits, edits, newest_edit, put_edit


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file: the bytes `old` at `start` became `new`.

    `file` is absolute. `before` and `after` are digests of the whole content, or "" for no file.
    """

    file: Path
    start: int
    old: bytes
    new: bytes
    before: str
    after: str

    def reversed(self) -> "FileChange":
        """Return the opposite change."""
        return FileChange(self.file, self.start, self.new, self.old, self.after, self.before)

    def apply(self, content: bytes | None) -> bytes | None:
        """Return the content after the change, or None for no file. `content` must have the digest `before`."""
        if not self.after:
            return None
        content = content or b""
        return content[: self.start] + self.new + content[self.start + len(self.old) :]

    def as_json(self, root: Path) -> dict[str, Any]:
        """Return the change as JSON data. Raises ValueError if the file is not below `root`."""
        old, new = (base64.b64encode(part).decode("ascii") for part in (self.old, self.new))
        file = self.file.relative_to(root).as_posix()
        return {"file": file, "start": self.start, "old": old, "new": new, "before": self.before, "after": self.after}

    @classmethod
    def from_json(cls, data: dict[str, Any], root: Path) -> "FileChange":
        """Return the change in `data`. Raises KeyError, TypeError or ValueError if `as_json` did not write it."""
        old, new = (base64.b64decode(data[name], validate=True) for name in ("old", "new"))
        relative = Path(data["file"])
        if relative.is_absolute() or ".." in relative.parts:
            raise ValueError("the file is outside of the project")
        return cls(root / relative, int(data["start"]), old, new, str(data["before"]), str(data["after"]))


@dataclass(frozen=True, slots=True)
class Edit:
    """One action of the user with its `label`, and the changes that it made.

    An `earlier` edit was read from disk, so it was made before the program started, or is forged.
    """

    label: str
    changes: tuple[FileChange, ...]
    earlier: bool = False

    def reversed(self) -> "Edit":
        """Return the opposite edit."""
        return Edit(self.label, tuple(change.reversed() for change in reversed(self.changes)))


def change_of(file: Path, before: bytes | None, after: bytes | None) -> FileChange:
    """Return the change from one content of a file to another; None means that there is no file.

    Equal bytes at both ends are left out, so a small edit of a large file stays small.
    """
    old, new = before or b"", after or b""
    most = min(len(old), len(new))
    with ThreadPoolExecutor(2) as pool:  # Hashing releases the GIL.
        digests = pool.map(digest, (before, after))
        start = _length(most, lambda low, high: old[low:high] == new[low:high])
        ends = len(old), len(new)
        end = _length(
            most - start, lambda low, high: old[ends[0] - high : ends[0] - low] == new[ends[1] - high : ends[1] - low]
        )
    return FileChange(file, start, old[start : ends[0] - end], new[start : ends[1] - end], *digests)


def _length(most: int, is_same: Callable[[int, int], bool]) -> int:
    """Return the length of the common part, at most `most`. `is_same` compares the bytes from one distance to another.

    Each step halves the bytes that are compared, so all steps together read each byte about once.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_same(low, middle) else (low, middle - 1)
    return low


def digest(content: bytes | None) -> str:
    """Return the hash of a file's content, or "" for no file."""
    return "" if content is None else content_hash(content)


Did: TypeAlias = Literal["made", "drop", "undo", "redo"]
_MAX_EDITS = 200
"""Maximum number of edits that can be undone."""
_MAX_BYTES = 32 << 20
"""Maximum size of all edits that can be undone, in characters of their JSON."""


class _Known(NamedTuple):
    """An edit with the ID of its row, and its JSON text."""

    id: int
    edit: Edit
    text: str


class UndoJournal:
    """The edits that were done and undone. Undo changes only files below `root`.

    While `state` cannot be written, edits are kept in memory and `lasting` is False.
    """

    def __init__(self, state: Path, root: Path) -> None:
        self._stored, self._root = database(state), root
        self._done: list[_Known] = []
        """Edits that can be undone, newest last."""
        self._undone: list[_Known] = []
        """Edits that can be redone, newest last."""
        self.lasting = True
        self.unfinished = False
        """Whether the files of the newest edit may not be written yet."""
        self._next = 1
        self._store([], self._read())

    @property
    def newest(self) -> Edit | None:
        """The newest edit that can be undone."""
        return self._done[-1].edit if self._done else None

    @property
    def undone(self) -> Edit | None:
        """The edit that was undone last, if it can be redone."""
        return self._undone[-1].edit if self._undone else None

    def edit(self, edit: Edit) -> None:
        """Store an edit before it is made, and forget undone edits. If there are too many, drop the oldest."""
        gone, self._undone = self._undone, []
        with contextlib.suppress(OSError):  # Another program may have stored edits since.
            self._next = max(self._next, (self._stored.read(newest_edit) or 0) + 1)
        changes = [change.as_json(self._root) for change in edit.changes]
        self._done.append(_Known(self._next, edit, json.dumps({"label": edit.label, "changes": changes})))
        self._next += 1
        self.unfinished = True
        if len(self._done) > _MAX_EDITS or sum(len(known.text) for known in self._done) > _MAX_BYTES:
            old = self._done[: -_MAX_EDITS // 2] or self._done[: len(self._done) // 2]
            del self._done[: len(old)]
            gone += old
        self._store(self._done[-1:], [known.id for known in gone])

    def note(self, did: Did) -> None:
        """Store the new state of the newest edit, or with "redo" of the edit that was undone last.

        "drop" deletes the newest edit.
        """
        self.unfinished = False
        known = (self._undone if did == "redo" else self._done).pop()
        if did == "drop":
            self._store([], [known.id])
            return
        if did != "made":  # The user decided on it, so it is now an edit of this start.
            known = known._replace(edit=replace(known.edit, earlier=False))
        (self._undone if did == "undo" else self._done).append(known)
        self._store([known], [], sync=did != "made")

    def _read(self) -> list[int]:
        """Read the stored edits. Return the IDs of those to delete: the unusable ones, and the oldest of too many."""
        try:
            rows, damaged = self._stored.read(edits) or ([], None)
        except OSError:
            return []
        useless = damaged or 0
        read: list[tuple[EditRow, _Known]] = []
        for row in rows:
            try:
                data = json.loads(row.edit)
                changes = tuple(FileChange.from_json(change, self._root) for change in data["changes"])
                read.append((row, _Known(row.id, Edit(str(data["label"]), changes, earlier=True), row.edit)))
            except (ValueError, KeyError, TypeError, RecursionError):
                useless = max(useless, row.id)
        self._next = max([useless, *(row.id for row in rows)]) + 1
        for row, known in read:
            if row.id < useless:
                continue
            if row.state == "undone":
                self._undone.insert(0, known)
            else:
                self._done.append(known)
                self.unfinished = row.state == "making"
        old = [known.id for known in self._done[:-_MAX_EDITS]]
        del self._done[:-_MAX_EDITS]
        return [*old, *(row.id for row in rows if row.id <= useless), *([damaged] if damaged else [])]

    def _store(self, changed: Sequence[_Known], gone: Sequence[int], *, sync: bool = True) -> None:
        """Store edits and delete others. If that failed before, all edits are stored again."""

        def change(connection: Connection) -> None:
            drop_edits(connection, gone)
            for known in changed if self.lasting else (*self._done, *self._undone):
                put_edit(connection, EditRow(known.id, self._state(known), known.text))

        try:
            self._stored.write(change, sync=sync)
            self.lasting = self._stored.is_lasting
        except OSError:
            self.lasting = False

    def _state(self, known: _Known) -> str:
        if known in self._undone:
            return "undone"
        return "making" if self.unfinished and known is self._done[-1] else "done"


Contents: TypeAlias = Mapping[Path, tuple[bytes | None, bytes | None]]
"""File → its current and its new content. None means that there is no file."""
_NOT_EDITED = frozenset({".git", STATE_FOLDER})
"""Folders in which the workbench edits nothing. Git runs programs that are named in files of its folder."""


class ChangedOnDiskError(Exception):
    """A file has changed since the edit began; nothing was written.

    `theirs` is the file's content now, or None if it was deleted.
    """

    def __init__(self, file: Path, theirs: bytes | None) -> None:
        super().__init__(f"{file} was {'deleted' if theirs is None else 'changed'} by another program")
        self.file = file
        self.theirs = theirs


class NothingToUndoError(Exception):
    """There is no edit to undo or redo."""


class Saver(UndoJournal):
    """Saves, undoes and redoes edits, and records them in the state folder `state`.

    Undo changes only files of the project in `root`, and only edits of such files are recorded.
    """

    def save(self, label: str, contents: Contents) -> Edit:
        """Write the new contents of one or more files as one edit.

        `contents` maps each file to its content when the edit began and its new content. None stands for a missing
        file. The caller must validate the new contents. If nothing changes, the edit has no changes and is not
        recorded.

        Raises:
            ChangedOnDiskError: a file now has another content. No file was changed.
            OSError: a file is read-only, or cannot be read or written, or two of them are one file with different new
                contents. No file was changed.
        """
        for file, (before, _) in contents.items():
            if before is not None and file.exists() and not os.access(file, os.W_OK):
                os.close(os.open(file, os.O_WRONLY))  # Raises the specific error, such as a read-only file system.
                raise PermissionError(13, "the file is read-only", str(file))
        theirs = {file: _content(file) for file in contents}
        changes = [change_of(file, before, after) for file, (before, after) in contents.items()]
        edit = Edit(label, tuple(change for change in changes if change.before != change.after))
        if not edit.changes:
            return edit
        _refuse_overwriting(edit, contents, theirs)
        is_recorded = all(change.file.is_relative_to(self._root) for change in edit.changes)
        if is_recorded:
            self.edit(edit)
        try:
            _write(edit, {change.file: contents[change.file] for change in edit.changes})
        except BaseException:
            if is_recorded and not _is_begun(edit):
                self.note("drop")
            raise
        if is_recorded:
            self.note("made")
        return edit

    def undo(self) -> Edit:
        """Undo the newest edit, and return it.

        Raises:
            NothingToUndoError: there is no edit.
            ChangedOnDiskError: as in `save`. The edit can still be undone later.
            OSError: as in `save`, or a file is not in the project. The edit can still be undone later.
        """
        edit = self.newest
        if edit is None:
            raise NothingToUndoError("there is nothing to undo")
        self._refuse_outside(edit)
        back = edit.reversed()
        _write(back, _read_for(back))
        self.note("undo")
        return edit

    def redo(self) -> Edit:
        """Repeat the edit that was undone last, and return it.

        Raises:
            NothingToUndoError: there is no such edit.
            ChangedOnDiskError: as in `save`.
            OSError: as in `save`.
        """
        edit = self.undone
        if edit is None:
            raise NothingToUndoError("there is nothing to redo")
        self._refuse_outside(edit)
        _write(edit, _read_for(edit))
        self.note("redo")
        return edit

    def interrupted(self) -> Edit | None:
        """Return the newest edit if it was only partly written when the program or machine stopped, else None.

        None is also returned if the files have changed since, or cannot be read.
        """
        edit = self.newest
        if edit is None or not self.unfinished:
            return None
        try:
            self._refuse_outside(edit)
            states = [digest(_content(change.file)) for change in edit.changes]
        except OSError:
            return None
        pairs = list(zip(states, edit.changes, strict=True))
        known = all(state in (change.before, change.after) for state, change in pairs)
        return edit if known and any(state == change.before for state, change in pairs) else None

    def resume(self) -> Edit | None:
        """Write the rest of an interrupted edit and return the edit, or None if there is none.

        Raises:
            OSError: a file cannot be read or written.
        """
        edit = self.interrupted()
        if edit is not None:
            left = tuple(change for change in edit.changes if digest(_content(change.file)) == change.before)
            rest = Edit(edit.label, left)
            _write(rest, _read_for(rest))
            self.note("made")
        return edit

    def forget_interrupted(self) -> None:
        """Leave the files of an interrupted edit as they are. The edit can no longer be completed or undone."""
        if self.interrupted() is not None:
            self.note("drop")

    def _refuse_outside(self, edit: Edit) -> None:
        """Raise OSError if a file, with links followed, is outside the project, or is git's or the workbench's own."""
        root = real_path(self._root)
        for change in edit.changes:
            file = real_path(change.file)
            parts = file.relative_to(root).parts if file.is_relative_to(root) else ()
            if not parts or not _NOT_EDITED.isdisjoint(part.lower() for part in parts):
                why = "undo changes only files of the project"
                raise OSError(errno.EINVAL, why, str(change.file))


def _refuse_overwriting(edit: Edit, contents: Contents, theirs: Mapping[Path, bytes | None]) -> None:
    """Raise the errors of `Saver.save` about files that would be overwritten. `theirs` is their content on disk."""
    written: dict[Path, str] = {}
    for change in edit.changes:
        if theirs[change.file] != contents[change.file][0]:
            raise ChangedOnDiskError(change.file, theirs[change.file])
        if written.setdefault(real_path(change.file), change.after) != change.after:
            why = "it links to another file of this edit, which would be overwritten: edit one of them at a time"
            raise OSError(errno.EINVAL, why, str(change.file))


def _read_for(edit: Edit) -> Contents:
    """Return current and new contents for an edit, without files that already have the new content.

    Raises:
        ChangedOnDiskError: a file has another content than before and after the edit.
    """
    read: dict[Path, tuple[bytes | None, bytes | None]] = {}
    for change in edit.changes:
        content = _content(change.file)
        found = digest(content)
        if found == change.after:
            continue
        if found != change.before:
            raise ChangedOnDiskError(change.file, content)
        read[change.file] = (content, change.apply(content))
    return read


def _write(edit: Edit, contents: Contents) -> None:
    """Write all files of an edit or none: if one fails, restore those written before it."""
    hashes = {change.file: change.after for change in edit.changes}
    written: list[Path] = []
    try:
        for file, (_, after) in contents.items():
            _put(file, after, hashes[file])
            written.append(file)
    except BaseException:
        for file in written:
            with contextlib.suppress(OSError):
                _put(file, contents[file][0])
        raise


def _is_begun(edit: Edit) -> bool:
    """Return whether a file has its new content, because it could not be restored. Undo can then still do it."""
    try:
        return any(digest(_content(change.file)) == change.after for change in edit.changes)
    except OSError:
        return True


def _put(file: Path, content: bytes | None, known_hash: str = "") -> None:
    # The folder of an evalset's recordings exists only as long as it has some.
    in_folder_of_recordings = is_in_frozen_folder(file)
    if content is not None:
        if in_folder_of_recordings:
            file.parent.mkdir(exist_ok=True)
        replace_content(file, content, known_hash=known_hash)
        return
    delete(file)
    if in_folder_of_recordings:
        with contextlib.suppress(OSError):
            file.parent.rmdir()


def _content(file: Path) -> bytes | None:
    try:
        return read_regular(file)
    except FileNotFoundError:
        return None
