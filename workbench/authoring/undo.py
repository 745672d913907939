"""The undo journal: edits in the order they were made, across restarts, in `.workbench/undo.jsonl`.

Each line is one event:

- `{"did": "edit", "label", "changes": […]}`: an edit, recorded before its files are written.
- `{"did": "made"}`: its files are written.
- `{"did": "undo"}`, `{"did": "redo"}`.
- `{"did": "drop"}`: the edit failed.

An unreadable line makes all lines before it useless, since they no longer match the files.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from workbench.authoring.edit import Edit, FileChange
from workbench.state_folder import append_stored, make_state_dir, read_stored, replace_stored

Did: TypeAlias = Literal["made", "drop", "undo", "redo"]
FILE_NAME = "undo.jsonl"
_MAX_EDITS = 200
"""Number of edits that can be undone after a restart."""
_MAX_BYTES = 32 << 20
"""Size above which the file is rewritten with the newest edits only."""


class UndoJournal:
    """The edits that were done and undone.

    While `state` cannot be written, they are kept in memory and `lasting` is False. Only files below `root` can be
    changed back.
    """

    def __init__(self, state: Path, root: Path) -> None:
        self._path, self._root = state / FILE_NAME, root
        self.done: list[Edit] = []
        """Edits that can be undone, newest last."""
        self.undone: list[Edit] = []
        """Edits that can be redone, newest last."""
        self.lasting = True
        self.unfinished = False
        """Whether the files of the newest edit may not be written yet."""
        self._size = 0
        self._replay()
        self._make()

    def edit(self, edit: Edit) -> None:
        """Record an edit before it is made. Undone edits can then no longer be redone."""
        self._apply("edit", edit)
        self._append(self._as_json(edit))

    def note(self, did: Did) -> None:
        """Record what happened to the newest edit, or for "redo" to the one undone last."""
        self._apply(did, None)
        if did in ("undo", "redo"):  # The user decided on it, so it is now an edit of this start.
            edits = self.undone if did == "undo" else self.done
            edits[-1] = replace(edits[-1], earlier=False)
        self._append({"did": did}, sync=did != "made")

    def _apply(self, did: Literal["edit"] | Did, edit: Edit | None) -> None:
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
            lines = read_stored(self._path).splitlines()
        except OSError:
            return
        for line in lines:
            try:
                data = json.loads(line)
                did = data["did"]
                edit = self._edit(data) if did == "edit" else None
                if did not in ("edit", *get_args(Did)):
                    raise ValueError(did)
                self._apply(did, edit)
            except (ValueError, KeyError, TypeError, IndexError, RecursionError):
                self.done.clear()
                self.undone.clear()
        del self.done[:-_MAX_EDITS]

    def _make(self) -> None:
        """Rewrite the file with the known edits, so that it does not grow forever."""
        try:
            make_state_dir(self._path.parent)
            self._rewrite()
            self.lasting = True
        except OSError:
            self.lasting = False

    def _rewrite(self) -> None:
        edits = [*self.done[-_MAX_EDITS:], *reversed(self.undone)]
        lines = [self._as_json(edit) for edit in edits]
        lines += [{"did": "undo"}] * len(self.undone)
        if not self.unfinished:
            lines.append({"did": "made"})
        content = b"".join(map(_line, lines))
        replace_stored(self._path, content)
        self._size = len(content)

    def _append(self, data: dict[str, Any], *, sync: bool = True) -> None:
        if not self.lasting:
            self._make()  # The disk may have space again.
            return
        line = _line(data)
        try:
            append_stored(self._path, line, sync=sync)
            self._size += len(line)
            if self._size > _MAX_BYTES:
                self.done = self.done[-_MAX_EDITS // 2 :]
                self._rewrite()
        except OSError:
            self.lasting = False

    def _as_json(self, edit: Edit) -> dict[str, Any]:
        changes = [change.as_json(self._root) for change in edit.changes]
        return {"did": "edit", "label": edit.label, "changes": changes}

    def _edit(self, data: dict[str, Any]) -> Edit:
        changes = tuple(FileChange.from_json(change, self._root) for change in data["changes"])
        return Edit(str(data["label"]), changes, earlier=True)


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode("ascii") + b"\n"
