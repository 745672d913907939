"""Edits on their way to the disk: nobody's newer content is overwritten, nothing is half written, all can be undone."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

from workbench.atomic import replace_content
from workbench.authoring.edit import Edit, change_of, digest
from workbench.authoring.undo import UndoJournal
from workbench.regular_file import read_regular

Contents: TypeAlias = Mapping[Path, tuple[bytes | None, bytes | None]]
"""File → what it holds and what it is to hold; None is no file."""


class ChangedOnDiskError(Exception):
    """A file is not what it was when the edit was begun. `theirs` is what it holds now, None if it is gone. Nothing
    was written."""

    def __init__(self, file: Path, theirs: bytes | None) -> None:
        super().__init__(f"{file} was {'deleted' if theirs is None else 'changed'} by somebody else meanwhile")
        self.file = file
        self.theirs = theirs


class NothingToUndoError(Exception):
    """There is no edit to take back, or none to make again."""


class Saver:
    """Saves edits, takes them back, makes them again; remembers them in the state folder `state`."""

    def __init__(self, state: Path) -> None:
        self._journal = UndoJournal(state)

    @property
    def lasting(self) -> bool:
        """Whether edits can still be undone after a restart."""
        return self._journal.lasting

    def save(self, label: str, contents: Contents) -> Edit:
        """Make an edit of one file or several: each goes from the content it had when the edit was begun to a new one;
        None is no file. Validating the new content is the caller's part.

        Raises:
            ChangedOnDiskError: a file holds something else by now.
            OSError: a file cannot be written, or is read-only in a folder where it could be replaced. In both cases
                every file is as it was.
        """
        _refuse_read_only(contents)
        with ThreadPoolExecutor(1) as pool:
            found = pool.map(_content, contents)
            changes = [change_of(file, before, after) for file, (before, after) in contents.items()]
        theirs = dict(zip(contents, found, strict=True))
        edit = Edit(label, tuple(change for change in changes if change.before != change.after))
        if not edit.changes:
            return edit
        for change in edit.changes:
            if theirs[change.file] != contents[change.file][0]:
                raise ChangedOnDiskError(change.file, theirs[change.file])
        self._journal.edit(edit)
        try:
            _write(edit, {change.file: contents[change.file] for change in edit.changes})
        except BaseException:
            self._journal.note("drop")
            raise
        self._journal.note("made")
        return edit

    def undo(self) -> Edit:
        """Takes the newest edit back; what it was.

        Raises:
            NothingToUndoError: there is none.
            ChangedOnDiskError, OSError: as `save`; the edit can still be taken back later.
        """
        if not self._journal.done:
            raise NothingToUndoError("there is nothing to undo")
        edit = self._journal.done[-1]
        back = edit.reversed()
        _write(back, _read_for(back))
        self._journal.note("undo")
        return edit

    def redo(self) -> Edit:
        """Makes the edit again that was taken back last; what it is.

        Raises:
            NothingToUndoError: there is none.
            ChangedOnDiskError, OSError: as `save`.
        """
        if not self._journal.undone:
            raise NothingToUndoError("there is nothing to redo")
        edit = self._journal.undone[-1]
        _write(edit, _read_for(edit))
        self._journal.note("redo")
        return edit

    def interrupted(self) -> Edit | None:
        """The newest edit, if this program or the machine was stopped before all of it was on the disk: a file still
        holds what it held before. None if it was written, or the files have moved on."""
        if not (self._journal.done and self._journal.unfinished):
            return None
        edit = self._journal.done[-1]
        try:
            states = [digest(_content(change.file)) for change in edit.changes]
        except OSError:
            return None
        pairs = list(zip(states, edit.changes, strict=True))
        known = all(state in (change.before, change.after) for state, change in pairs)
        return edit if known and any(state == change.before for state, change in pairs) else None

    def resume(self) -> Edit | None:
        """Makes the rest of an interrupted edit; what it is, None if there is none.

        Raises:
            OSError: a file cannot be written.
        """
        edit = self.interrupted()
        if edit is not None:
            left = tuple(change for change in edit.changes if digest(_content(change.file)) == change.before)
            rest = Edit(edit.label, left)
            _write(rest, _read_for(rest))
            self._journal.note("made")
        return edit

    def forget_interrupted(self) -> None:
        """Leaves an interrupted edit as it is: it can no longer be made or undone."""
        if self.interrupted() is not None:
            self._journal.note("drop")


def _refuse_read_only(contents: Contents) -> None:
    for file, (before, _) in contents.items():
        if before is not None and file.exists() and not os.access(file, os.W_OK):
            os.close(os.open(file, os.O_WRONLY))  # says why: permissions, or a file system that is read-only
            raise PermissionError(13, "the file is read-only", str(file))


def _read_for(edit: Edit) -> Contents:
    """What the files hold, which is what the edit was made for, and what they are to hold. A file that holds that
    already is left out: whoever did it, perhaps we, when we were killed before we could write it down."""
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
    """Writes all files of an edit, or none: where one cannot be written, those before it get their old content back."""
    hashes = {change.file: change.after for change in edit.changes}
    written: list[Path] = []
    try:
        for file, (_, after) in contents.items():
            _put(file, after, hashes[file])
            written.append(file)
    except BaseException:
        for file in written:
            _put(file, contents[file][0])
        raise


def _put(file: Path, content: bytes | None, known_hash: str = "") -> None:
    if content is None:
        file.unlink()
    else:
        replace_content(file, content, known_hash=known_hash)


def _content(file: Path) -> bytes | None:
    try:
        return read_regular(file)
    except FileNotFoundError:
        return None
