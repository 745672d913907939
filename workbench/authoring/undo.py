"""The edits that were done and undone, in the order they were made, across restarts.

They are rows of the database, each in one of three states: `making` (stored before its files are written), `done` or
`undone`. A damaged row makes all rows before it useless, since they no longer match the files.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from workbench.authoring.edit import Edit, FileChange
from workbench.database.database import Connection, database
from workbench.database.values import EditRow, drop_edits, edits, put_edit

Did: TypeAlias = Literal["made", "drop", "undo", "redo"]
_MAX_EDITS = 200
"""Number of edits that can be undone after a restart."""
_MAX_BYTES = 32 << 20
"""Size above which only the newest edits stay."""


class _Known(NamedTuple):
    """An edit with the id of its row, and its JSON text."""

    id: int
    edit: Edit
    text: str


class UndoJournal:
    """The edits that were done and undone.

    While `state` cannot be written, they are kept in memory and `lasting` is False. Only files below `root` can be
    changed back.
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
    def done(self) -> list[Edit]:
        """Edits that can be undone, newest last."""
        return [known.edit for known in self._done]

    @property
    def undone(self) -> list[Edit]:
        """Edits that can be redone, newest last."""
        return [known.edit for known in self._undone]

    def edit(self, edit: Edit) -> None:
        """Store an edit before it is made. Undone edits can then no longer be redone."""
        gone, self._undone = self._undone, []
        self._done.append(_Known(self._next, edit, self._as_text(edit)))
        self._next += 1
        self.unfinished = True
        if len(self._done) > _MAX_EDITS or sum(len(known.text) for known in self._done) > _MAX_BYTES:
            old = self._done[: -_MAX_EDITS // 2] or self._done[: len(self._done) // 2]
            del self._done[: len(old)]
            gone += old
        self._store(self._done[-1:], [known.id for known in gone])

    def note(self, did: Did) -> None:
        """Store what happened to the newest edit, or for "redo" to the one undone last."""
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
        """Read the stored edits. Return those that are of no use."""
        try:
            rows, damaged = self._stored.read(edits) or ([], None)
        except OSError:
            return []
        useless = damaged or 0
        read: list[tuple[EditRow, _Known]] = []
        for row in rows:
            try:
                read.append((row, _Known(row.id, self._from_text(row.edit), row.edit)))
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

    def _as_text(self, edit: Edit) -> str:
        return json.dumps({"label": edit.label, "changes": [change.as_json(self._root) for change in edit.changes]})

    def _from_text(self, text: str) -> Edit:
        data = json.loads(text)
        changes = tuple(FileChange.from_json(change, self._root) for change in data["changes"])
        return Edit(str(data["label"]), changes, earlier=True)
