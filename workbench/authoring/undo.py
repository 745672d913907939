"""Edits kept in the order they were made, across saves and restarts: `.workbench/undo.jsonl`.

Each line is one thing that happened: `{"did": "edit", "label", "changes": […]}`, `{"did": "made"}` (its files are
written), `{"did": "undo"}`, `{"did": "redo"}` or `{"did": "drop"}` (an edit that came to nothing). An edit is written
before its files are: one that was cut short is still known. A line that cannot be read ends what is known before it,
as nothing before it fits the files any more.
"""

import json
import os
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from workbench.atomic import replace_content
from workbench.authoring.edit import Edit, FileChange
from workbench.history.state_dir import make_state_dir
from workbench.regular_file import read_regular

Did: TypeAlias = Literal["made", "drop", "undo", "redo"]
FILE_NAME = "undo.jsonl"
_KEPT = 200
"""Edits that can be undone after a restart."""
_LARGEST = 32 << 20
"""Bytes from which on the file is written anew with the newest edits only."""


class UndoJournal:
    """What was done and undone. As long as `state` cannot be written it is kept in memory, and `lasting` is False."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE_NAME
        self.done: list[Edit] = []
        """Newest last: what `undo` would take back."""
        self.undone: list[Edit] = []
        """Newest last: what `redo` would make again."""
        self.lasting = True
        self.unfinished = False
        """Whether it is not known that the files of the newest edit were written."""
        self._size = 0
        self._replay()
        self._make()

    def edit(self, edit: Edit) -> None:
        """Keeps an edit that is about to be made. What was undone cannot be made again after it."""
        self._took("edit", edit)
        self._append(_edit_as_json(edit))

    def note(self, did: Did) -> None:
        """Keep what became of the newest edit; for "redo", of the one that was taken back last."""
        self._took(did, None)
        self._append({"did": did}, sync=did != "made")

    def _took(self, did: Literal["edit"] | Did, edit: Edit | None) -> None:
        self.unfinished = did == "edit"
        if edit is not None:
            self.done.append(edit)
            self.undone.clear()
        elif did == "drop":
            self.done.pop()
        elif did == "undo":
            self.undone.append(self.done.pop())
        elif did == "redo":
            self.done.append(self.undone.pop())

    def _replay(self) -> None:
        try:
            lines = read_regular(self._path).splitlines()
        except OSError:
            return
        for line in lines:
            try:
                data = json.loads(line)
                did = data["did"]
                edit = _edit(data) if did == "edit" else None
                if did not in ("edit", *get_args(Did)):
                    raise ValueError(did)
                self._took(did, edit)
            except (ValueError, KeyError, TypeError, IndexError, RecursionError):
                self.done.clear()
                self.undone.clear()
        del self.done[:-_KEPT]

    def _make(self) -> None:
        """Begins a file with what is known, so that it does not grow for ever."""
        try:
            make_state_dir(self._path.parent)
            self._rewrite()
            self.lasting = True
        except OSError:
            self.lasting = False

    def _rewrite(self) -> None:
        edits = [*self.done[-_KEPT:], *reversed(self.undone)]
        lines = [_edit_as_json(edit) for edit in edits]
        lines += [{"did": "undo"}] * len(self.undone)
        if not self.unfinished:
            lines.append({"did": "made"})
        content = b"".join(map(_line, lines))
        replace_content(self._path, content, mode=0o600)
        self._size = len(content)

    def _append(self, data: dict[str, Any], *, sync: bool = True) -> None:
        if not self.lasting:
            self._make()  # there may be room on the disk by now
            return
        line = _line(data)
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line)
                if sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._size += len(line)
            if self._size > _LARGEST:
                self.done = self.done[-_KEPT // 2 :]
                self._rewrite()
        except OSError:
            self.lasting = False


def _edit_as_json(edit: Edit) -> dict[str, Any]:
    return {"did": "edit", "label": edit.label, "changes": [change.as_json() for change in edit.changes]}


def _edit(data: dict[str, Any]) -> Edit:
    return Edit(str(data["label"]), tuple(FileChange.from_json(change) for change in data["changes"]))


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode("ascii") + b"\n"
