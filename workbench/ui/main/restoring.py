"""The cursor and the split of the last session, which are restored when the folder is opened again.

Invalid stored values are ignored. Values are stored only if the state folder exists. Just opening a project creates no
files.
"""

import asyncio
import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.store.database.database import database
from workbench.store.database.values import get_value, set_value
from workbench.ui.screen.controller import Controller
from workbench.ui.tree.outline import ALL

_NAME = "screen"
_LONGEST = 2000
"""Maximum number of characters of a stored name."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """The cursor and the split at the end of a session.

    `cursor` names the row under the cursor by agent, evalset and case ID, or fewer for rows above a case. `share` is
    the tree's share of the width, between 0 and 1.
    """

    cursor: tuple[str, ...] = ()
    share: float | None = None


def read_view_state(folder: Path) -> ViewState:
    """Return the stored state. Missing or invalid values get their defaults."""
    try:
        text = database(folder).read(lambda connection: get_value(connection, _NAME))
        found = json.loads(text or "{}")
    except (OSError, ValueError, RecursionError):
        return ViewState()
    cursor, share = (found.get("cursor"), found.get("share")) if isinstance(found, dict) else (None, None)
    names = cursor if isinstance(cursor, list) and len(cursor) <= 3 else []
    is_named = all(isinstance(name, str) and len(name) <= _LONGEST for name in names)
    return ViewState(tuple(names) if is_named else (), share if isinstance(share, float) and 0 < share < 1 else None)


def save_view_state(folder: Path, state: ViewState) -> None:
    """Store the state if the folder exists and the state has changed.

    Raises:
        OSError: The state cannot be written.
    """
    if folder.is_dir() and state != read_view_state(folder):
        text = json.dumps(asdict(state))
        database(folder).write(lambda connection: set_value(connection, _NAME, text))


class Restoring(Controller):
    """Storage of the cursor and the split. The filter is not stored, because it would hide cases."""

    async def restore(self, *, run_wanted: bool) -> None:
        """Restore the split. Restore the cursor, too, unless a run starts or the user has already acted."""
        state = await asyncio.to_thread(read_view_state, self.session.state_dir)
        self.view.split.use(state.share)
        rows = self.view.rows
        touched = self.view.occupied or not rows.query.empty or len(rows.marks) or rows.cursor not in (None, ALL)
        if state.cursor and not run_wanted and not touched:
            row = rows.names().row(state.cursor, rows.outline)
            if row != ALL:
                self.view.tree_view.go_to(row)
                self.view.show_row()

    def save(self) -> None:
        """Store the current cursor and split. Errors are ignored."""
        rows = self.view.rows
        if self.session.workspace is None or not rows.entries:
            return
        row = rows.cursor or ALL
        shown = row.parent or ALL if row.kind in ("repeat", "passed") else row
        state = ViewState(rows.names().name_of(shown), self.view.split.share)
        with contextlib.suppress(OSError):
            save_view_state(self.session.state_dir, state)
